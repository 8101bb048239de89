# mypy: ignore-errors
# ruff: noqa: N803
import triton
import triton.language as tl


@triton.jit
def transpose(x, y, rows, cols, B: tl.constexpr):
    ri = tl.program_id(0) * B + tl.arange(0, B)
    rj = tl.program_id(1) * B + tl.arange(0, B)
    t = tl.load(x + ri[:, None] * cols + rj[None, :], mask=(ri[:, None] < rows) & (rj[None, :] < cols))
    tl.store(y + rj[:, None] * rows + ri[None, :], tl.trans(t), mask=(rj[:, None] < cols) & (ri[None, :] < rows))
