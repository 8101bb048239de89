"""Comments, names, dead code and host code change nothing of a kernel's behaviour, in any language."""

# ruff: noqa: E501 - tables of sources

from __future__ import annotations

import ast
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.behaviour.corpus import LANGUAGES, Kernel, kernels
from kfd.prompting.features import behaviour

KERNELS: dict[str, list[Kernel]] = {name: [each for each in kernels() if each.language == name] for name in LANGUAGES}
REMARKS = [
    "__shared__ float tile[16][16]; __syncthreads();", "atomicAdd(&sum, v); grid.sync()", "tl.dot(a, b); tl.atomic_add(p, v)",
    "float4 v = vload4(0, x); prefetch", "sub_group_reduce_add(v); __shfl_xor_sync(m, v, 1)", "m = m * exp(a - b) + c",
    "#pragma omp parallel for reduction(+:s)", "wmma::mma_sync joint_matrix", "_mm256_loadu_ps(p); std::atomic<int> n",
    "local float part[64]; barrier(CLK_LOCAL_MEM_FENCE);", "sycl::local_accessor<float> t; [TUNE", "num_stages=4",
]  # fmt: skip
WORDS = [
    "tile",
    "shared",
    "atomicAdd_",
    "barrier",
    "warp_shuffle",
    "float4_",
    "prefetch_stage",
    "wmma",
    "online_exp",
    "local_acc",
    "simd",
    "reduce",
]
UNUSED_C = """
static inline float never_called_helper(const float *p, int n) {
    float acc[4][4];
    float m = 0.0f, d = 0.0f;
    for (int i = 0; i < n; i += 64)
        for (int j = i; j < i + 64; ++j) { acc[0][0] += p[j]; d = d * exp(m - p[j]) + 1.0f; }
    return acc[0][0] + d;
}
"""
UNUSED = {
    "cpp": UNUSED_C + "static void never_called_too(int *p) { __atomic_fetch_add(p, 1, 0); }\n",
    "cuda": UNUSED_C + "__device__ float never_called_too(float v, int *p) { __shared__ float s[32]; s[threadIdx.x] = v; __syncthreads();\n"
    "  atomicAdd(p, 1); return __shfl_down_sync(~0u, s[0], 1); }\n",
    "opencl": UNUSED_C.replace("static inline ", "").replace("const float *", "global const float *")
    + "float never_called_too(float v, volatile global int *p) { atomic_add(p, 1); return sub_group_reduce_add(v); }\n",
    "sycl": UNUSED_C + "template <class G> float never_called_too(G g, float v) { sycl::group_barrier(g); return sycl::reduce_over_group(g, v, sycl::plus<float>()); }\n",
}  # fmt: skip
HOST = {
    "cuda": "struct Never { float4 pad; int warp_id; };\nextern \"C\" int never_start(float *x, int n) { float4 tile[16] = {}; int num_blocks = n;\n"
    "  for (int i = 0; i < n; i += 64) tile[0].x += i; return num_blocks + (int)tile[0].x; }\n",
    "sycl": "static int never_start(sycl::queue &queue, int n) { std::vector<sycl::float4> shared_tile(n); std::atomic<int> count{0};\n"
    "  count.fetch_add(1); queue.ext_oneapi_submit_barrier(); return count; }\n",
}  # fmt: skip
SWITCHED_OFF = "#if 0\n__shared__ float off[4]; atomicAdd(p, 1); _mm256_loadu_ps(q);\n#pragma omp atomic\n#endif\n#define NEVER_USED(p) { float4 v = *(float4 *)(p); barrier(1); sub_group_reduce_add(1); }\n"
HOST_PYTHON = (
    "\n\ndef never_start(x):\n    tile = tl.dot(x, tl.trans(x))\n    for stage in range(4):\n        tl.atomic_add(x, tl.sum(tile, axis=0))\n    return tile\n"
)  # fmt: skip

quick = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize("language", LANGUAGES)
@quick
@given(data=st.data())
def test_comments_change_nothing(language: str, data: st.DataObject) -> None:
    kernel = data.draw(st.sampled_from(KERNELS[language]))
    sign = "#" if language == "triton" else "//"
    lines = kernel.text.split("\n")
    for _ in range(data.draw(st.integers(1, 6))):
        remark = data.draw(st.sampled_from(REMARKS))
        at = data.draw(st.integers(0, len(lines) - 1))
        if language != "triton" and data.draw(st.booleans()):
            lines[at] += f" /* {remark} */"
        elif not lines[at].endswith("\\"):
            lines[at] += f"  {sign} {remark}"
    assert behaviour("\n".join(lines), language) == behaviour(kernel.text, language)


def own_names(text: str, language: str) -> list[str]:
    """Names of parameters and variables that a kernel gives."""
    if language == "triton":
        tree = ast.parse(text)
        given_names = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
        set_names = {
            node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        keywords = {node.arg for node in ast.walk(tree) if isinstance(node, ast.keyword)}
        return sorted((given_names | set_names) - keywords - {"_"})
    found = re.findall(r"\b(?:float|int|double|int64_t|size_t|long|auto)\s+\*?\s*(\w+)\s*(?=[=;,)\[])", text)
    return sorted(
        name for name in set(found) if not re.search(rf"[.>]\s*{name}\b|\b{name}\s*\(|<[^<>]*\b{name}\b[^<>]*>", text)
    )


@pytest.mark.parametrize("language", LANGUAGES)
@quick
@given(data=st.data())
def test_names_change_nothing(language: str, data: st.DataObject) -> None:
    kernel = data.draw(st.sampled_from(KERNELS[language]))
    names = own_names(kernel.text, language)
    text = kernel.text
    for number, name in enumerate(
        data.draw(st.lists(st.sampled_from(names), max_size=6, unique=True)) if names else ()
    ):
        fresh = f"{data.draw(st.sampled_from(WORDS))}{number}"
        if fresh not in text:
            text = re.sub(rf"(?<![.\w]){name}\b", fresh, text)
    assert behaviour(text, language) == behaviour(kernel.text, language)


@pytest.mark.parametrize("language", ["cpp", "cuda", "opencl", "sycl"])
@pytest.mark.parametrize("what", ["unused function", "switched off", "host code"])
def test_dead_code_and_host_code_change_nothing(language: str, what: str) -> None:
    added = {"unused function": UNUSED[language], "switched off": SWITCHED_OFF, "host code": HOST.get(language, "")}[
        what
    ]
    for kernel in KERNELS[language]:
        assert behaviour(f"{kernel.text}\n{added}", language) == behaviour(kernel.text, language), kernel.path


def test_host_code_and_branches_that_are_never_taken_change_nothing_in_triton() -> None:
    for kernel in KERNELS["triton"]:
        levels = behaviour(kernel.text, "triton")
        assert behaviour(kernel.text + HOST_PYTHON, "triton") == levels, kernel.path
        name = re.findall(r"^def (\w+)\(", kernel.text, re.M)[-1]
        if f"{name}[" in kernel.text:
            continue
        branch = "    if False:\n        tl.atomic_add(never, tl.sum(tl.dot(never, never), axis=0))\n"
        assert behaviour(f"{kernel.text}{branch}", "triton") == levels, kernel.path


def test_a_jitted_function_that_the_launch_plan_does_not_start_changes_nothing() -> None:
    helper = (
        "\n\n@triton.jit\ndef never_started(p):\n    tl.atomic_add(p, tl.sum(tl.dot(tl.load(p), tl.load(p)), axis=0))\n"
    )
    for kernel in KERNELS["triton"]:
        started = re.findall(r"^def (\w+)\(", kernel.text, re.M)
        plan = "".join(f"# [LAUNCH] launch {name} grid(1) args(x)\n" for name in started)
        if len(started) == 1:
            assert behaviour(plan + kernel.text + helper, "triton") == behaviour(kernel.text, "triton"), kernel.path
