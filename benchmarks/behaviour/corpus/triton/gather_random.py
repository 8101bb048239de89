# mypy: ignore-errors
import triton
import triton.language as tl


@triton.jit
def permute(index, x, y, n):
    i = tl.program_id(0)
    at = tl.load(index + i)
    tl.store(y + i, tl.load(x + at, mask=at < n, other=0.0))
