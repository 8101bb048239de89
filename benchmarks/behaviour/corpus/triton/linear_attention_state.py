# mypy: ignore-errors
# ruff: noqa: N803
import triton
import triton.language as tl


@triton.jit
def linear_attention(q, k, v, o, n, D: tl.constexpr, B: tl.constexpr):
    head = tl.program_id(0) * n * D
    rd = tl.arange(0, D)
    state = tl.zeros((D, D), tl.float32)
    for start in range(0, n, B):
        rt = start + tl.arange(0, B)
        at = head + rt[:, None] * D + rd[None, :]
        keep = rt[:, None] < n
        tk = tl.load(k + at, mask=keep, other=0.0)
        tv = tl.load(v + at, mask=keep, other=0.0)
        state += tl.dot(tl.trans(tk), tv)
    for start in range(0, n, B):
        rt = start + tl.arange(0, B)
        at = head + rt[:, None] * D + rd[None, :]
        tl.store(o + at, tl.dot(tl.load(q + at, mask=rt[:, None] < n, other=0.0), state), mask=rt[:, None] < n)
