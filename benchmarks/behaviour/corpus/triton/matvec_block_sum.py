# mypy: ignore-errors
# ruff: noqa: N803
import triton
import triton.language as tl


@triton.jit
def matvec(a, x, y, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    acc = tl.zeros((BLOCK,), tl.float32)
    for at in range(0, cols, BLOCK):
        j = at + tl.arange(0, BLOCK)
        acc += tl.load(a + row * cols + j, mask=j < cols, other=0.0) * tl.load(x + j, mask=j < cols, other=0.0)
    tl.store(y + row, tl.sum(acc, axis=0))
