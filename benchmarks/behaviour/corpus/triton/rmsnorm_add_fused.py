# mypy: ignore-errors
# ruff: noqa: N803
import triton
import triton.language as tl


@triton.jit
def add_rmsnorm(x, res, w, y, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    keep = j < cols
    v = tl.load(x + row * cols + j, mask=keep, other=0.0) + tl.load(res + row * cols + j, mask=keep, other=0.0)
    tl.store(res + row * cols + j, v, mask=keep)
    scale = tl.rsqrt(tl.sum(v * v, axis=0) / cols + eps)
    tl.store(y + row * cols + j, v * scale * tl.load(w + j, mask=keep), mask=keep)
