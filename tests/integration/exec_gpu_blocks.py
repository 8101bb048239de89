"""EVOLVE blocks of the recorded answers for CUDA and Triton. Each is a whole block: tunables, launch plan, kernels."""

from __future__ import annotations

__all__ = ["matmul_cuda", "matmul_triton", "softmax_cuda", "softmax_triton"]

_WARPS = """__device__ float {name}(float value, bool largest) {{
    __shared__ float parts[32];
    for (int step = 16; step > 0; step /= 2) {{
        const float other = __shfl_xor_sync(0xffffffffu, value, step);
        value = largest ? fmaxf(value, other) : value + other;
    }}
    __syncthreads();
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    value = threadIdx.x % 32 < THREADS / 32 ? parts[threadIdx.x % 32] : (largest ? -INFINITY : 0.0f);
    for (int step = 16; step > 0; step /= 2) {{
        const float other = __shfl_xor_sync(0xffffffffu, value, step);
        value = largest ? fmaxf(value, other) : value + other;
    }}
    return value;
}}

"""
_HEAD = """extern "C" __global__ void softmax(const float *x, float *y, int64_t cols) {
    const float *in = x + blockIdx.x * cols;
    float *out = y + blockIdx.x * cols;
"""


def softmax_cuda(name: str, how: str = "warps", *, threads: str = "256, 512", wrong: str = "") -> str:
    """A block a row. ``how``: ``warps`` (three passes), ``online`` (two), ``kept`` (the row in shared memory).

    ``wrong``: ``undeclared`` does not compile, ``maximum`` leaves the maximum out, ``beyond`` writes behind the rows.
    """
    shared = " shared(cols * 4)" if how == "kept" else ""
    plan = f"// [TUNE] THREADS in {{{threads}}}\n"
    plan += f"// [LAUNCH] launch softmax grid(rows) block(THREADS){shared} args(x, y, cols)\n"
    reduce = f"{name}_over_block"
    body = {"warps": _three_passes, "online": _online, "kept": _kept}[how](reduce)
    if wrong == "undeclared":
        body = body.replace("expf(", "fast_expf(", 1)
    if wrong == "maximum":
        body = body.replace(f"top = {reduce}(top, true);", "top = 0.0f;")
    if wrong == "beyond":
        body = body.replace("out[j] =", "out[j + 40000000000] =")
    return plan + _WARPS.format(name=reduce) + _HEAD + body + "}\n"


def _three_passes(reduce: str) -> str:
    return f"""    float top = -INFINITY, sum = 0.0f;
    for (int64_t j = threadIdx.x; j < cols; j += THREADS) top = fmaxf(top, in[j]);
    top = {reduce}(top, true);
    for (int64_t j = threadIdx.x; j < cols; j += THREADS) sum += expf(in[j] - top);
    const float scale = 1.0f / {reduce}(sum, false);
    for (int64_t j = threadIdx.x; j < cols; j += THREADS) out[j] = expf(in[j] - top) * scale;
"""


def _online(reduce: str) -> str:
    return f"""    float mine = -INFINITY, sum = 0.0f;
    for (int64_t j = threadIdx.x; j < cols; j += THREADS) {{
        const float value = in[j], higher = fmaxf(mine, value);
        sum = sum * expf(mine - higher) + expf(value - higher);
        mine = higher;
    }}
    const float top = {reduce}(mine, true);
    const float scale = 1.0f / {reduce}(mine > -INFINITY ? sum * expf(mine - top) : 0.0f, false);
    for (int64_t j = threadIdx.x; j < cols; j += THREADS) out[j] = expf(in[j] - top) * scale;
"""


def _kept(reduce: str) -> str:
    return f"""    extern __shared__ float row[];
    float top = -INFINITY, sum = 0.0f;
    for (int64_t j = threadIdx.x; j < cols; j += THREADS) {{
        row[j] = in[j];
        top = fmaxf(top, row[j]);
    }}
    top = {reduce}(top, true);
    for (int64_t j = threadIdx.x; j < cols; j += THREADS) {{
        row[j] = expf(row[j] - top);
        sum += row[j];
    }}
    const float scale = 1.0f / {reduce}(sum, false);
    for (int64_t j = threadIdx.x; j < cols; j += THREADS) out[j] = row[j] * scale;
"""


def matmul_cuda(name: str, each: int = 4, *, wrong: str = "") -> str:
    """A tile of 16 ``each`` squared a block, ``each`` squared values a thread.

    ``wrong``: ``undeclared`` does not compile, ``short`` leaves the last step out, ``cut`` rounds as TF32 does,
    ``beyond`` writes far behind the result.
    """
    load = "__int_as_float(__float_as_int({}) & 0xffffe000)" if wrong == "cut" else "{}"
    left, right = load.format("a[row * k + l]"), load.format("b[l * n + column]")
    last = "k - 1" if wrong == "short" else "k"
    size = "WIDTH" if wrong == "undeclared" else "TILE"
    other = 2 if each == 4 else 4
    out = "c[(i + 40000000000) * n + j]" if wrong == "beyond" else "c[i * n + j]"
    return f"""// [TUNE] EACH in {{{each}, {other}}}; DEPTH in {{16, 8}}
// [LAUNCH] launch matmul grid(ceildiv(n, 16 * EACH), ceildiv(m, 16 * EACH)) block(16, 16) args(a, b, c, m, n, k)
constexpr int TILE = 16 * EACH;

extern "C" __global__ void matmul(const float *a, const float *b, float *c, int64_t m, int64_t n, int64_t k) {{
    __shared__ float {name}_left[DEPTH][TILE + 1], {name}_right[DEPTH][{size}];
    const int64_t top = blockIdx.y * int64_t(TILE), first = blockIdx.x * int64_t(TILE);
    const int thread = threadIdx.y * 16 + threadIdx.x;
    float sums[EACH][EACH] = {{}};
    for (int64_t at = 0; at < {last}; at += DEPTH) {{
        for (int one = thread; one < TILE * DEPTH; one += 256) {{
            const int64_t row = top + one / DEPTH, l = at + one % DEPTH;
            {name}_left[one % DEPTH][one / DEPTH] = row < m && l < {last} ? {left} : 0.0f;
        }}
        for (int one = thread; one < TILE * DEPTH; one += 256) {{
            const int64_t l = at + one / TILE, column = first + one % TILE;
            {name}_right[one / TILE][one % TILE] = l < {last} && column < n ? {right} : 0.0f;
        }}
        __syncthreads();
        #pragma unroll
        for (int step = 0; step < DEPTH; ++step) {{
            float down[EACH], across[EACH];
            for (int e = 0; e < EACH; ++e) down[e] = {name}_left[step][threadIdx.y + 16 * e];
            for (int e = 0; e < EACH; ++e) across[e] = {name}_right[step][threadIdx.x + 16 * e];
            for (int i = 0; i < EACH; ++i)
                for (int j = 0; j < EACH; ++j) sums[i][j] = fmaf(down[i], across[j], sums[i][j]);
        }}
        __syncthreads();
    }}
    for (int e = 0; e < EACH; ++e)
        for (int f = 0; f < EACH; ++f) {{
            const int64_t i = top + threadIdx.y + 16 * e, j = first + threadIdx.x + 16 * f;
            if (i < m && j < n) {out} = sums[e][f];
        }}
}}
"""


def softmax_triton(name: str, how: str = "online", *, block: int = 2048, warps: int = 8, wrong: str = "") -> str:
    """A program a row. ``how``: ``online`` (two passes), ``whole`` (one load of a row of up to 8192 columns).

    ``wrong``: ``undeclared`` does not compile, ``maximum`` leaves the maximum out, ``beyond`` stores without a mask.
    """
    if how == "whole":
        plan = f"# [LAUNCH] launch softmax grid(rows) warps({warps}) args(x, y, cols, BLOCK=8192)\n"
        body = f"""    j = tl.arange(0, BLOCK)
    {name} = tl.load(x + j, mask=j < cols, other=float("-inf"))
    {name} = tl.exp({name} - tl.max({name}, axis=0))
    tl.store(y + j, {name} / tl.sum({name}, axis=0), mask=j < cols)
"""
    else:
        plan = f"# [TUNE] BLOCK in {{{block}, {block * 2}}}\n"
        plan += f"# [LAUNCH] launch softmax grid(rows) warps({warps}) args(x, y, cols, BLOCK=BLOCK)\n"
        body = f"""    {name} = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for at in range(0, cols, BLOCK):
        j = at + tl.arange(0, BLOCK)
        value = tl.load(x + j, mask=j < cols, other=float("-inf"))
        higher = tl.maximum({name}, value)
        keep = tl.where(higher > float("-inf"), tl.exp({name} - higher), 0.0)
        total = total * keep + tl.where(j < cols, tl.exp(value - higher), 0.0)
        {name} = higher
    top = tl.max({name}, axis=0)
    scale = 1.0 / tl.sum(tl.where({name} > float("-inf"), total * tl.exp({name} - top), 0.0), axis=0)
    for at in range(0, cols, BLOCK):
        j = at + tl.arange(0, BLOCK)
        tl.store(y + j, tl.exp(tl.load(x + j, mask=j < cols, other=float("-inf")) - top) * scale, mask=j < cols)
"""
    if wrong == "undeclared":
        body = body.replace("tl.exp(", "tl.fast_exp(", 1)
    if wrong == "maximum":
        body = body.replace(f"tl.exp({name} - tl.max({name}, axis=0))", f"tl.exp({name})")
    if wrong == "beyond":
        body = body.replace("axis=0), mask=j < cols)", "axis=0))").replace("* scale, mask=j < cols)", "* scale)")
    head = "\n\n@triton.jit\ndef softmax(x, y, cols, BLOCK: tl.constexpr):\n    row = tl.program_id(0).to(tl.int64)\n"
    return f"{plan}{head}    x += row * cols\n    y += row * cols\n{body}"


def matmul_triton(name: str, tile: int = 64, *, warps: int = 4, wrong: str = "") -> str:
    """A square tile a program.

    ``wrong``: ``undeclared`` does not compile, ``short`` leaves the last step out, ``cut`` asks for TF32, ``beyond``
    stores without a mask.
    """
    precision = "tf32" if wrong == "cut" else "ieee"
    last = "k - 1" if wrong == "short" else "k"
    mask = "" if wrong == "beyond" else ", mask=(rows < m) & (columns < n)"
    named = "DEPTH=DEPTH, TILE=TILE"
    dot = "tl.product" if wrong == "undeclared" else "tl.dot"
    return f"""# [TUNE] TILE in {{{tile}, {tile // 2}}}; DEPTH in {{32, 16}}; WARPS in {{{warps}, {12 - warps}}}
# [LAUNCH] launch matmul grid(ceildiv(m, TILE) * ceildiv(n, TILE)) warps(WARPS) args(a, b, c, m, n, k, {named})


@triton.jit
def matmul(a, b, c, m, n, k, TILE: tl.constexpr, DEPTH: tl.constexpr):
    across_tiles = tl.cdiv(n, TILE)
    rows = (tl.program_id(0) // across_tiles).to(tl.int64) * TILE + tl.arange(0, TILE)[:, None]
    columns = (tl.program_id(0) % across_tiles).to(tl.int64) * TILE + tl.arange(0, TILE)[None, :]
    {name} = tl.zeros((TILE, TILE), tl.float32)
    for at in range(0, {last}, DEPTH):
        across = at + tl.arange(0, DEPTH)[None, :]
        down = at + tl.arange(0, DEPTH)[:, None]
        left = tl.load(a + rows * k + across, mask=(rows < m) & (across < {last}), other=0.0)
        right = tl.load(b + down * n + columns, mask=(down < {last}) & (columns < n), other=0.0)
        {name} = {dot}(left, right, {name}, input_precision="{precision}")
    tl.store(c + rows * n + columns, {name}{mask})
"""
