# mypy: ignore-errors
# ruff: noqa: N803
import triton
import triton.language as tl


@triton.jit
def attention(q, k, v, o, n, scale, D: tl.constexpr, BM: tl.constexpr, N: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.arange(0, N)
    rd = tl.arange(0, D)
    tq = tl.load(q + rm[:, None] * D + rd[None, :])
    tk = tl.load(k + rn[:, None] * D + rd[None, :], mask=rn[:, None] < n, other=0.0)
    s = tl.where(rn[None, :] < n, tl.dot(tq, tl.trans(tk)) * scale, float("-inf"))
    s = tl.exp(s - tl.max(s, axis=1)[:, None])
    p = s / tl.sum(s, axis=1)[:, None]
    tv = tl.load(v + rn[:, None] * D + rd[None, :], mask=rn[:, None] < n, other=0.0)
    tl.store(o + rm[:, None] * D + rd[None, :], tl.dot(p, tv))
