# mypy: ignore-errors
# ruff: noqa: N803
import triton
import triton.language as tl

NOTE = "tl.dot(a, b) with num_stages=4, tl.atomic_add and tl.sum"


@triton.jit
def flash_dot_split_k(x, y, n, BLOCK: tl.constexpr):
    """Flash attention: tl.dot over tiles, online softmax (m_i, l_i), tl.atomic_add for split-K, tl.debug_barrier()."""
    tile = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)  # shared memory tile, num_stages=4
    m_i = tl.load(x + tile, mask=tile < n, other=0.0)  # tl.max(acc, 1)
    l_i = 0.5 * m_i * (1.0 + tl.erf(m_i * 0.70710678))  # tl.sum(p, 1)
    tl.store(y + tile, l_i, mask=tile < n)
