# mypy: ignore-errors
# ruff: noqa: N803
import triton
import triton.language as tl


@triton.autotune(
    configs=[
        triton.Config({"BM": 64, "BN": 64, "BK": 32}, num_stages=3, num_warps=4),
        triton.Config({"BM": 128, "BN": 64, "BK": 32}, num_stages=4, num_warps=8),
    ],
    key=["M", "N", "K"],
)
@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pid = tl.program_id(0)
    across = tl.cdiv(N, BN)
    rm = pid // across * BM + tl.arange(0, BM)
    rn = pid % across * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(tl.cdiv(K, BK)):
        left = K - k0 * BK
        ta = tl.load(a + rm[:, None] * K + (k0 * BK + rk)[None, :], mask=rk[None, :] < left, other=0.0)
        tb = tl.load(b + (k0 * BK + rk)[:, None] * N + rn[None, :], mask=rk[:, None] < left, other=0.0)
        acc += tl.dot(ta, tb)
    tl.store(c + rm[:, None] * N + rn[None, :], acc, mask=(rm[:, None] < M) & (rn[None, :] < N))
