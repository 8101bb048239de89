# mypy: ignore-errors
# ruff: noqa: N803
import triton
import triton.language as tl


@triton.jit
def layernorm(x, g, b, y, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x += row * cols
    acc = tl.zeros((BLOCK,), tl.float32)
    for at in range(0, cols, BLOCK):
        j = at + tl.arange(0, BLOCK)
        acc += tl.load(x + j, mask=j < cols, other=0.0)
    mean = tl.sum(acc, axis=0) / cols
    acc = tl.zeros((BLOCK,), tl.float32)
    for at in range(0, cols, BLOCK):
        j = at + tl.arange(0, BLOCK)
        d = tl.where(j < cols, tl.load(x + j, mask=j < cols, other=0.0) - mean, 0.0)
        acc += d * d
    rstd = tl.rsqrt(tl.sum(acc, axis=0) / cols + eps)
    for at in range(0, cols, BLOCK):
        j = at + tl.arange(0, BLOCK)
        v = tl.load(x + j, mask=j < cols, other=0.0)
        w = tl.load(g + j, mask=j < cols)
        tl.store(y + row * cols + j, (v - mean) * rstd * w + tl.load(b + j, mask=j < cols), mask=j < cols)
