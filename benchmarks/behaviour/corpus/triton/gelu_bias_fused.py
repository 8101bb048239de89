# mypy: ignore-errors
# ruff: noqa: N803
import triton
import triton.language as tl


@triton.jit
def bias_gelu(x, bias, res, y, n, cols, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = i < n
    v = tl.load(x + i, mask=keep, other=0.0) + tl.load(bias + i % cols, mask=keep, other=0.0)
    g = 0.5 * v * (1.0 + tl.erf(v * 0.70710678))
    tl.store(y + i, g + tl.load(res + i, mask=keep, other=0.0), mask=keep)
