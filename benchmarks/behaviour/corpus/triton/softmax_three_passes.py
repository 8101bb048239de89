# mypy: ignore-errors
# ruff: noqa: N803
import triton
import triton.language as tl


@triton.jit
def softmax(x, y, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x += row * cols
    y += row * cols
    top = float("-inf")
    for at in range(0, cols, BLOCK):
        j = at + tl.arange(0, BLOCK)
        top = tl.maximum(top, tl.max(tl.load(x + j, mask=j < cols, other=float("-inf")), axis=0))
    total = 0.0
    for at in range(0, cols, BLOCK):
        j = at + tl.arange(0, BLOCK)
        total += tl.sum(tl.exp(tl.load(x + j, mask=j < cols, other=float("-inf")) - top), axis=0)
    for at in range(0, cols, BLOCK):
        j = at + tl.arange(0, BLOCK)
        v = tl.load(x + j, mask=j < cols, other=float("-inf"))
        tl.store(y + j, tl.exp(v - top) / total, mask=j < cols)
