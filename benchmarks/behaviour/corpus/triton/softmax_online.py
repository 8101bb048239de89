# mypy: ignore-errors
# ruff: noqa: N803
import triton
import triton.language as tl


@triton.jit
def softmax(x, y, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    m = float("-inf")
    d = 0.0
    for at in range(0, cols, BLOCK):
        j = at + tl.arange(0, BLOCK)
        v = tl.load(x + row * cols + j, mask=j < cols, other=float("-inf"))
        bigger = tl.maximum(m, tl.max(v, axis=0))
        d = d * tl.exp(m - bigger) + tl.sum(tl.exp(v - bigger), axis=0)
        m = bigger
    for at in range(0, cols, BLOCK):
        j = at + tl.arange(0, BLOCK)
        v = tl.load(x + row * cols + j, mask=j < cols, other=float("-inf"))
        tl.store(y + row * cols + j, tl.exp(v - m) / d, mask=j < cols)
