# mypy: ignore-errors
# ruff: noqa: N803
import triton
import triton.language as tl


@triton.jit
def conv3(x, g, y, n, BLOCK: tl.constexpr):
    i = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)) * 2
    keep = i + 3 < n
    d0 = tl.load(x + i, mask=keep, other=0.0)
    d1 = tl.load(x + i + 1, mask=keep, other=0.0)
    d2 = tl.load(x + i + 2, mask=keep, other=0.0)
    d3 = tl.load(x + i + 3, mask=keep, other=0.0)
    g0 = tl.load(g)
    g1 = tl.load(g + 1)
    g2 = tl.load(g + 2)
    m1 = (d0 - d2) * g0
    m2 = (d1 + d2) * 0.5 * (g0 + g1 + g2)
    m3 = (d2 - d1) * 0.5 * (g0 - g1 + g2)
    m4 = (d1 - d3) * g2
    tl.store(y + i, m1 + m2 + m3, mask=keep)
    tl.store(y + i + 1, m2 - m3 - m4, mask=keep)
