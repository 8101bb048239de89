# mypy: ignore-errors
import triton
import triton.language as tl


@triton.jit
def matmul(a, b, c, n, k):
    i = tl.program_id(0)
    j = tl.program_id(1)
    acc = 0.0
    for step in range(k):
        acc += tl.load(a + i * k + step) * tl.load(b + step * n + j)
    tl.store(c + i * n + j, acc)
