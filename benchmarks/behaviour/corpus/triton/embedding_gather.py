# mypy: ignore-errors
# ruff: noqa: N803
import triton
import triton.language as tl


@triton.jit
def gather(ids, table, out, dim, BLOCK: tl.constexpr):
    token = tl.program_id(0)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    row = tl.load(ids + token)
    tl.store(out + token * dim + j, tl.load(table + row * dim + j, mask=j < dim), mask=j < dim)
