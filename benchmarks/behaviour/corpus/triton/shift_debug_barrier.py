# mypy: ignore-errors
# ruff: noqa: N803
import triton
import triton.language as tl


@triton.jit
def rotate(x, scratch, y, BLOCK: tl.constexpr):
    base = tl.program_id(0) * BLOCK
    i = tl.arange(0, BLOCK)
    tl.store(scratch + base + i, tl.load(x + base + i) * 2.0)
    tl.debug_barrier()
    tl.store(y + base + i, tl.load(scratch + base + (BLOCK - 1 - i)))
