# ruff: noqa: N803
# Product of two matrices, a tile of the result for each program.
#
# [REFERENCE_START]
# c[i][j] = sum_l a[i][l] * b[l][j]
# [REFERENCE_END]
#
# [USER_INSTRUCTIONS_START]
# Triton kernels and a launch plan in comments; no other Python runs. No size need be a multiple of a tile. Results must
# stay within 1e-5 (relative L2) of double precision: give `tl.dot` the input precision "ieee", TF32 is too coarse.
# [USER_INSTRUCTIONS_END]
import triton
import triton.language as tl

# [EVOLVE_START]
# [TUNE] TILE in {32, 64}; DEPTH in {32, 16}
# [LAUNCH] launch matmul grid(ceildiv(n, TILE), ceildiv(m, TILE)) args(a, b, c, m, n, k, TILE=TILE, DEPTH=DEPTH)


@triton.jit
def matmul(a, b, c, m, n, k, TILE: tl.constexpr, DEPTH: tl.constexpr):
    rows = tl.program_id(1).to(tl.int64) * TILE + tl.arange(0, TILE)[:, None]
    columns = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)[None, :]
    total = tl.zeros((TILE, TILE), tl.float32)
    for at in range(0, k, DEPTH):
        across = at + tl.arange(0, DEPTH)[None, :]
        down = at + tl.arange(0, DEPTH)[:, None]
        left = tl.load(a + rows * k + across, mask=(rows < m) & (across < k), other=0.0)
        right = tl.load(b + down * n + columns, mask=(down < k) & (columns < n), other=0.0)
        total += tl.dot(left, right, input_precision="ieee")
    tl.store(c + rows * n + columns, total, mask=(rows < m) & (columns < n))


# [EVOLVE_END]
