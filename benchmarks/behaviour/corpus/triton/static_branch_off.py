# mypy: ignore-errors
# ruff: noqa: N803
import triton
import triton.language as tl

ATOMIC = tl.constexpr(False)


@triton.jit
def square(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0.0)
    if ATOMIC:
        tl.atomic_add(y, tl.sum(v * v, axis=0))
    else:
        tl.store(y + i, v * v, mask=i < n)
