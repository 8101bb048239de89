# mypy: ignore-errors
# ruff: noqa: N803
import triton
import triton.language as tl


@triton.jit
def diag_times(diag, b, c, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(b + row * cols + j, mask=j < cols)
    tl.store(c + row * cols + j, v * tl.load(diag + row), mask=j < cols)
