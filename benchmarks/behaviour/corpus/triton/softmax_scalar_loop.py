# mypy: ignore-errors
import triton
import triton.language as tl


@triton.jit
def softmax(x, y, cols):
    row = tl.program_id(0)
    top = float("-inf")
    for j in range(cols):
        top = tl.maximum(top, tl.load(x + row * cols + j))
    total = 0.0
    for j in range(cols):
        total += tl.exp(tl.load(x + row * cols + j) - top)
    for j in range(cols):
        tl.store(y + row * cols + j, tl.exp(tl.load(x + row * cols + j) - top) / total)
