# mypy: ignore-errors
# ruff: noqa: N803
import triton
import triton.language as tl


@triton.jit
def partial(x, parts, n, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    i = p * BLOCK + tl.arange(0, BLOCK)
    tl.store(parts + p, tl.sum(tl.load(x + i, mask=i < n, other=0.0), axis=0))


@triton.jit
def finish(parts, out, count, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK,), tl.float32)
    for at in range(0, count, BLOCK):
        i = at + tl.arange(0, BLOCK)
        acc += tl.load(parts + i, mask=i < count, other=0.0)
    tl.store(out, tl.sum(acc, axis=0))
