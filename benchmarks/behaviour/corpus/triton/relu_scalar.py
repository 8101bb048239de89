# mypy: ignore-errors
import triton
import triton.language as tl


@triton.jit
def relu(x, y, n):
    i = tl.program_id(0)
    if i < n:
        v = tl.load(x + i)
        tl.store(y + i, tl.where(v > 0, v, 0.0))
