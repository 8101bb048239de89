"""Levels of small device kernels: what a construct is for decides where it counts."""

# ruff: noqa: E501 - tables of sources

from __future__ import annotations

import time

import pytest

from kfd.prompting.features import behaviour

CUDA = 'extern "C" __global__ void solve(const float *x, const float *b, float *y, int n) {{\n{}\n}}\n'
INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x;"
TILE = f"{INDEX} __shared__ float s[64]; s[t] = x[i]; __syncthreads(); y[i] = s[63 - t];"
TREE = f"{INDEX} __shared__ float s[64]; float v = x[i] * 2.0f; s[t] = v; __syncthreads(); for (int h = 32; h > 0; h /= 2) {{ if (t < h) s[t] += s[t + h]; __syncthreads(); }} y[i] = s[0];"


@pytest.mark.parametrize(
    ("body", "levels"),
    [
        (f"{INDEX} y[i] = x[i];", (0, 0, 0)),
        (TILE, (2, 0, 0)),
        # Names that begin like the array's are other names.
        (TILE.replace("int i = ", "int share = n, i = ").replace("s[t] = x[i];", "s[t] = i < share ? x[i] : 0.0f;"), (2, 0, 0)),
        (TREE, (0, 0, 1)),
        (f"{TREE} atomicAdd(y, s[0]);", (0, 0, 3)),
        (f"{INDEX} __shared__ int s; if (t == 0) s = 0; __syncthreads(); atomicAdd(&s, 1); __syncthreads(); y[i] = s;", (0, 0, 1)),
        (f"{INDEX} float v = x[i]; v += __shfl_xor_sync(~0u, v, 1); y[i] = v;", (0, 0, 2)),
        (f"{INDEX} for (int j = t; j < n; j += blockDim.x) y[j] = x[j];", (1, 0, 0)),
        (f"{INDEX} float4 v = ((const float4 *)x)[i]; ((float4 *)y)[i] = v;", (1, 0, 0)),
        (f"{INDEX} float acc[4] = {{}}; for (int j = 0; j < n; ++j) for (int k = 0; k < 4; ++k) acc[k] += x[i * 4 + k] * b[j]; for (int k = 0; k < 4; ++k) y[i * 4 + k] = acc[k];", (2, 0, 0)),
        (f"{TILE} float acc[4] = {{}}; for (int k = 0; k < 4; ++k) acc[k] += s[k]; y[i] = acc[0];", (3, 0, 0)),
        (f"{INDEX} __shared__ float s[64]; __pipeline_memcpy_async(s + t, x + i, 4); __syncthreads(); y[i] = s[63 - t];", (3, 0, 0)),
        # A staged row that is changed in its own place is still a tile; one that is combined with its neighbour is not.
        (f"{INDEX} __shared__ float s[64]; s[t] = x[i]; __syncthreads(); s[t] = expf(s[t] - 1.0f); __syncthreads(); y[i] = s[63 - t];", (2, 0, 0)),
        (f"{INDEX} __shared__ float s[64]; s[t] = x[i]; __syncthreads(); float v = t >= 1 ? s[t - 1] : 0.0f; __syncthreads(); s[t] += v; __syncthreads(); y[i] = s[t];", (0, 0, 1)),
        (f"{TILE} float acc[4] = {{}}; for (int k = 0; k < 4; ++k) acc[k] = fmaf(s[k], s[k + 1], acc[k]); y[i] = acc[0];", (3, 0, 0)),
        ('int i = threadIdx.x; float v = x[i], w; asm volatile("shfl.sync.bfly.b32 %0, %1, 1, 31, -1;" : "=f"(w) : "f"(v)); y[i] = w;', (0, 0, 2)),
        ('int i = threadIdx.x; asm volatile("red.global.add.f32 [%0], %1;" :: "l"(y), "f"(x[i]));', (0, 0, 3)),
        (f"{INDEX} float m = -1, d = 0; for (int j = 0; j < n; ++j) {{ float u = fmaxf(m, x[j]); d = d * __expf(m - u) + __expf(x[j] - u); m = u; }} y[i] = d;", (0, 2, 0)),
        (f"{INDEX} y[i] = fmaxf(x[i] + b[i], 0.0f);", (0, 1, 0)),
        (f"{INDEX} y[i] = x[i] + b[i];", (0, 0, 0)),
        (f"{INDEX} float r = 0; for (int j = 0; j < n; ++j) {{ r += x[j + 4]; r -= x[j]; y[j] = r; }}", (0, 3, 0)),
    ],
    ids=range(21),
)  # fmt: skip
def test_what_a_construct_is_for_decides(body: str, levels: tuple[int, int, int]) -> None:
    assert behaviour(CUDA.format(body), "cuda") == levels


def test_a_tile_that_is_handed_to_a_helper_is_still_a_tile() -> None:
    helper = "__device__ void fill(float *to, const float *from, int i) { to[threadIdx.x] = from[i]; }\n"
    source = helper + CUDA.format(f"{INDEX} __shared__ float s[64]; fill(s, x, i); __syncthreads(); y[i] = s[63 - t];")
    assert behaviour(source, "cuda") == (2, 0, 0)


def test_templates_count_as_they_are_used() -> None:
    helper = (
        "template <bool SUM> __device__ void put(float *y, float v, int i) {\n"
        "  if constexpr (SUM) { atomicAdd(y, v); } else { y[i] = v; }\n}\n"
    )
    for value, level in (("false", 0), ("true", 3)):
        source = helper + CUDA.format(f"{INDEX} put<{value}>(y, x[i], i);")
        assert behaviour(source, "cuda") == (0, 0, level)


@pytest.mark.parametrize(
    ("given", "level"),
    [("#define WIDE 1\n", 1), ("", 0), ("// [TUNE] WIDE in {0, 1}\n", 1)],
    ids=["defined", "never defined", "a tunable"],
)
def test_branches_of_the_preprocessor(given: str, level: int) -> None:
    body = f"{INDEX}\n#ifdef WIDE\n((float4 *)y)[i] = ((const float4 *)x)[i];\n#endif\ny[i] = x[i];"
    assert behaviour(given + CUDA.format(body), "cuda") == (level, 0, 0)


def test_only_kernels_of_the_launch_plan_count() -> None:
    other = 'extern "C" __global__ void other(float *y) { atomicAdd(y, 1.0f); }\n'
    source = CUDA.format(f"{INDEX} y[i] = x[i];") + other
    assert behaviour(source, "cuda") == (0, 0, 3)
    assert behaviour("// [LAUNCH] launch solve grid(n) block(64) args(x, x, y, n)\n" + source, "cuda") == (0, 0, 0)


def test_partial_results_of_one_kernel_that_another_combines_are_global() -> None:
    first = 'extern "C" __global__ void first(const float *x, float *p, int n) { float v = 0; for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) v += x[i]; v += __shfl_xor_sync(~0u, v, 1); if (threadIdx.x == 0) p[blockIdx.x] = v; }\n'
    second = 'extern "C" __global__ void second(const float *p, float *y, int n) { float v = 0; for (int i = 0; i < n; ++i) v += p[i]; *y = v; }\n'
    assert behaviour(first + second, "cuda") == (1, 0, 3)
    assert behaviour(first, "cuda") == (1, 0, 2)


TILES = "@triton.jit\ndef solve(x, y, n, B: tl.constexpr):\n    i = tl.arange(0, B)\n    acc = tl.zeros((B, B), tl.float32)\n    for k in {loop}:\n        acc += tl.dot(tl.load(x + i[:, None] * n + k + i[None, :]), tl.load(x + i[:, None] * n + i[None, :]))\n    tl.store(y + i[:, None] * B + i[None, :], acc)\n"


@pytest.mark.parametrize(
    ("loop", "memory"),
    [("range(0, n, B)", 2), ("tl.range(0, n, B)", 2), ("tl.range(0, n, B, num_stages=1)", 2), ("tl.range(0, n, B, num_stages=3)", 3)],
)  # fmt: skip
def test_stages_of_a_triton_loop(loop: str, memory: int) -> None:
    assert behaviour(TILES.format(loop=loop), "triton") == (memory, 0, 0)


HOSTILE_C = [
    "__shared__ float a[" * 20_000, "kernel void k(local float *x){x[0]=y[0];}" * 3000, "#define A(x) A(x) A(x)\nA(A(A(1)))\n" * 100,
    "x[" * 100_000, "a a, " * 60_000, 'extern "C" {' * 9000, "parallel_for(" * 20_000, "void f(){parallel_for(" * 1000,
    "kernel void k(){" + "if(0)x;" * 20_000 + "}", "kernel void k(){" + "a[b]=c[d];" * 20_000 + "}",
    "kernel void k(){" + "float a[4];a[0]+=1;" * 5000 + "}", "kernel void k(global float *x){" + "m -= x[1];" * 6000 + "}",
    'asm("shfl' * 20_000, "template<int A>void f(){}f<1>();" * 3000, "kernel void k(){" + "for(i=threadIdx.x;i<n;i+=64)" * 3000 + "}",
    "#define a " + "b a" * 1000 + "\n" + "a " * 30_000, "using x = y<;" * 9000, "typedef a b;" * 9000, "a<" * 60_000,
    "0" * 200_000, "__shared__ float " + "x" * 100_000 + "[4];",
]  # fmt: skip
HEAD = "@triton.jit\ndef f(x):\n"
HOSTILE_PYTHON = [
    HEAD + "    x = x + x\n" * 9000, HEAD + "".join(f"    v{i} = v{i - 1} + v{i - 1}\n" for i in range(1, 5000)) + "    tl.store(v4999, 1)\n",
    HEAD + "    y = " + " + ".join(["x"] * 30_000), HEAD + "    tl.store(x + y, tl.load(x))\n" * 4000, "not " * 30_000 + "1",
    HEAD + "    for i in range(3):\n        a += b * b\n" * 3000, "lambda: " * 20_000 + "1", "-" * 100_000 + "1", "x=" * 60_000,
    HEAD + "".join(f"    v{i} = tl.load(v{i - 1}) + tl.load(v{i - 1}) + v{max(0, i - 2)}\n" for i in range(1, 2000)) + "    tl.store(x + tl.arange(0, 4), v1999 + tl.sum(v3))\n",
    "".join(f"@triton.jit\ndef f{i}():\n    f{i + 1}()\n" for i in range(3000)),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(HOSTILE_C)))
def test_hostile_device_code_costs_little(number: int) -> None:
    start = time.process_time()
    for toolchain in ("cuda", "cpp"):
        assert all(0 <= level <= 3 for level in behaviour(HOSTILE_C[number], toolchain))
    assert time.process_time() - start < 5


@pytest.mark.parametrize("number", range(len(HOSTILE_PYTHON)))
def test_hostile_python_costs_little(number: int) -> None:
    start = time.process_time()
    assert all(0 <= level <= 3 for level in behaviour(HOSTILE_PYTHON[number], "triton"))
    assert time.process_time() - start < 3


def test_an_online_softmax_whose_factor_is_guarded() -> None:
    source = (
        "@triton.jit\ndef solve(x, y, n, B: tl.constexpr):\n    m = float('-inf')\n    d = 0.0\n    for k in range(n):\n"
        "        v = tl.load(x + k)\n        u = tl.maximum(m, v)\n        f = tl.where(u > 0, tl.exp(m - u), 0.0)\n"
        "        d = d * f + tl.exp(v - u)\n        m = u\n    tl.store(y, d)\n"
    )
    assert behaviour(source, "triton") == (0, 2, 0)


CL = "kernel void solve(global const float *x, global float *y, volatile global int *p)\n{{\n{}\n}}\n"
SYCL = 'extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclex::nd_range_kernel<1>)) void solve(const float *x, float *y, int *p)\n{{\nauto g = syclex::get_nd_item<1>().get_group();\n{}\n}}\n'


@pytest.mark.parametrize(
    ("form", "toolchain", "body", "levels"),
    [
        (CL, "opencl", "y[0] = x[0];", (0, 0, 0)),
        (CL, "opencl", "float4 v = vload4(0, x); vstore4(v, 0, y);", (1, 0, 0)),
        (CL, "opencl", "local float part[64]; part[get_local_id(0)] = x[get_global_id(0)]; barrier(CLK_LOCAL_MEM_FENCE);", (2, 0, 0)),
        (CL, "opencl", "local float part[64]; part[0] = x[0]; prefetch(x, 1);", (3, 0, 0)),
        (CL, "opencl", "y[0] = sub_group_reduce_add(x[0]);", (0, 0, 2)),
        (CL, "opencl", "y[0] = work_group_reduce_max(x[0]);", (0, 0, 2)),
        (CL, "opencl", "atomic_add(p, 1);", (0, 0, 3)),
        (CL, "opencl", "y[0] = native_exp(x[0]);", (0, 0, 0)),
        (CL, "opencl", "// float4 local float part[64]; barrier( atomic_add(\ny[0] = x[0];", (0, 0, 0)),
        (CL, "opencl", 'char c = "float4 barrier(";', (0, 0, 0)),
        (CL, "opencl", "float local_sum = 0; float atomics = local_sum;", (0, 0, 0)),
        (SYCL, "sycl", "static syclex::work_group_static<float[64]> part; part[0] = x[0]; sycl::group_barrier(g);", (2, 0, 0)),
        (SYCL, "sycl", "y[0] = sycl::reduce_over_group(g, x[0], sycl::plus<>());", (0, 0, 2)),
        (SYCL, "sycl", "sycl::vec<float, 4> v; v.load(0, x);", (1, 0, 0)),
        (SYCL, "sycl", "sycl::atomic_ref<int, sycl::memory_order::relaxed, sycl::memory_scope::device> a(*p); a += 1;", (0, 0, 3)),
    ],
    ids=range(15),
)  # fmt: skip
def test_constructs_of_opencl_and_sycl(form: str, toolchain: str, body: str, levels: tuple[int, int, int]) -> None:
    assert behaviour(form.format(body), toolchain) == levels


@pytest.mark.parametrize(
    ("body", "levels"),
    [
        ("tl.store(y, tl.load(x))", (0, 0, 0)),
        ("tl.store(y + tl.arange(0, 64), 2)", (1, 0, 0)),
        ("s = tl.sum(tl.load(x + tl.arange(0, 64)))", (1, 0, 2)),
        ("for at in range(4):\n        tl.store(y + tl.arange(0, 64), 2)", (1, 0, 0)),
        ("c = tl.dot(a, b)", (2, 0, 0)),
        ("tl.atomic_add(y, 1.0)", (0, 0, 3)),
        ("tl.debug_barrier()", (0, 0, 1)),
        ('"""tl.dot(a, b) tl.sum("""', (0, 0, 0)),
        ("tl.store(y + tl.arange(0, 64) * n, 2)", (0, 0, 0)),
    ],
)
def test_constructs_of_triton(body: str, levels: tuple[int, int, int]) -> None:
    assert behaviour(f"@triton.jit\ndef solve(x, y, n):\n    {body}\n", "triton") == levels
