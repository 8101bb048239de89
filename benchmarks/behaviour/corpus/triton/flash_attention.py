# mypy: ignore-errors
# ruff: noqa: N803
import triton
import triton.language as tl


@triton.jit
def flash(q, k, v, o, n, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rd = tl.arange(0, D)
    tq = tl.load(q + rm[:, None] * D + rd[None, :], mask=rm[:, None] < n, other=0.0)
    m = tl.full((BM,), float("-inf"), tl.float32)
    norm = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for start in range(0, n, BN):
        rn = start + tl.arange(0, BN)
        tk = tl.load(k + rn[None, :] * D + rd[:, None], mask=rn[None, :] < n, other=0.0)
        s = tl.where(rn[None, :] < n, tl.dot(tq, tk) * scale, float("-inf"))
        bigger = tl.maximum(m, tl.max(s, 1))
        p = tl.exp(s - bigger[:, None])
        fix = tl.exp(m - bigger)
        norm = norm * fix + tl.sum(p, 1)
        tv = tl.load(v + rn[:, None] * D + rd[None, :], mask=rn[:, None] < n, other=0.0)
        acc = acc * fix[:, None] + tl.dot(p, tv)
        m = bigger
    tl.store(o + rm[:, None] * D + rd[None, :], acc / norm[:, None], mask=rm[:, None] < n)
