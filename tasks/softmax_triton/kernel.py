# ruff: noqa: N803
# Softmax over the rows of a matrix, one program a row.
#
# [REFERENCE_START]
# y[i][j] = exp(x[i][j] - max_k x[i][k]) / sum_k exp(x[i][k] - max_k x[i][k])
# [REFERENCE_END]
#
# [USER_INSTRUCTIONS_START]
# Triton kernels and a launch plan in comments; no other Python runs. Constants in the plan are numbers or tunables, so
# loop over the columns in blocks: their number differs from case to case, and rows and columns are odd at times.
# Results must stay within 1e-5 (relative L2) of double precision.
# [USER_INSTRUCTIONS_END]
import triton
import triton.language as tl

# [EVOLVE_START]
# [TUNE] BLOCK in {1024, 2048, 4096}
# [LAUNCH] launch softmax grid(rows) warps(4) args(x, y, cols, BLOCK=BLOCK)


@triton.jit
def softmax(x, y, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x += row * cols
    y += row * cols
    largest = tl.full((BLOCK,), float("-inf"), tl.float32)
    for at in range(0, cols, BLOCK):
        j = at + tl.arange(0, BLOCK)
        largest = tl.maximum(largest, tl.load(x + j, mask=j < cols, other=float("-inf")))
    top = tl.max(largest, axis=0)
    total = tl.zeros((BLOCK,), tl.float32)
    for at in range(0, cols, BLOCK):
        j = at + tl.arange(0, BLOCK)
        total += tl.exp(tl.load(x + j, mask=j < cols, other=float("-inf")) - top)
    scale = 1.0 / tl.sum(total, axis=0)
    for at in range(0, cols, BLOCK):
        j = at + tl.arange(0, BLOCK)
        tl.store(y + j, tl.exp(tl.load(x + j, mask=j < cols, other=float("-inf")) - top) * scale, mask=j < cols)


# [EVOLVE_END]
