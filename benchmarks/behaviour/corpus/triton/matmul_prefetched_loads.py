# mypy: ignore-errors
# ruff: noqa: N803
import triton
import triton.language as tl


@triton.jit
def matmul(a, b, c, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    pa = a + rm[:, None] * K + rk[None, :]
    pb = b + rk[:, None] * N + rn[None, :]
    ta = tl.load(pa)
    tb = tl.load(pb)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(BK, K, BK):
        na = tl.load(pa + k0)
        nb = tl.load(pb + k0 * N)
        acc += tl.dot(ta, tb)
        ta = na
        tb = nb
    acc += tl.dot(ta, tb)
    tl.store(c + rm[:, None] * N + rn[None, :], acc)
