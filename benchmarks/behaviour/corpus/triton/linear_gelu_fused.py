# mypy: ignore-errors
# ruff: noqa: N803
import triton
import triton.language as tl


@triton.jit
def linear_gelu(x, w, bias, y, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        rk = k0 + tl.arange(0, BK)
        acc += tl.dot(tl.load(x + rm[:, None] * K + rk[None, :]), tl.load(w + rk[:, None] * N + rn[None, :]))
    acc += tl.load(bias + rn)[None, :]
    acc = 0.5 * acc * (1.0 + tl.erf(acc * 0.70710678))
    tl.store(y + rm[:, None] * N + rn[None, :], acc)
