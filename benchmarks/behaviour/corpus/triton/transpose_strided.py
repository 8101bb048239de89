# mypy: ignore-errors
# ruff: noqa: N803
import triton
import triton.language as tl


@triton.jit
def transpose(x, y, rows, cols, BLOCK: tl.constexpr):
    i = tl.program_id(0)
    for at in range(0, cols, BLOCK):
        for t in range(BLOCK):
            if at + t < cols:
                tl.store(y + (at + t) * rows + i, tl.load(x + i * cols + at + t))
