# mypy: ignore-errors
# ruff: noqa: N803
import triton
import triton.language as tl


@triton.jit
def step(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def recurrence(a, b, h, length, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    t = tl.arange(0, BLOCK)
    keep = t < length
    av = tl.load(a + row * length + t, mask=keep, other=1.0)
    bv = tl.load(b + row * length + t, mask=keep, other=0.0)
    _, out = tl.associative_scan((av, bv), 0, step)
    tl.store(h + row * length + t, out, mask=keep)
