# mypy: ignore-errors
# ruff: noqa: N803
import triton
import triton.language as tl


@triton.jit
def smooth(x, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    inside = (j > 0) & (j < cols - 1)
    p = x + row * cols + j
    for _ in range(2):
        v = (tl.load(p - 1, mask=inside) + tl.load(p, mask=inside) + tl.load(p + 1, mask=inside)) / 3.0
        tl.debug_barrier()
        tl.store(p, v, mask=inside)
        tl.debug_barrier()
