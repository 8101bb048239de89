"""CUDA kernels for the tasks softmax_cuda and matmul_cuda: hostile ones and honest look-alikes."""

from __future__ import annotations

from tests.gpu.programs import Program

__all__ = ["PROGRAMS"]

_PLAN = "// [LAUNCH] launch softmax grid(rows) block(256) args(x, y, rows, cols)\n"
_HEAD = 'extern "C" __global__ void softmax(const float *x, float *y, int64_t rows, int64_t cols)'
_ROW = """
__device__ float pick(float value, bool largest) {
    __shared__ float parts[256];
    parts[threadIdx.x] = value;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            const float other = parts[threadIdx.x + half];
            parts[threadIdx.x] = largest ? fmaxf(parts[threadIdx.x], other) : parts[threadIdx.x] + other;
        }
        __syncthreads();
    }
    const float result = parts[0];
    __syncthreads();
    return result;
}
__device__ void row_softmax(const float *in, float *out, int64_t cols) {
    float top = -INFINITY, sum = 0.0f;
    for (int64_t j = threadIdx.x; j < cols; j += 256) top = fmaxf(top, in[j]);
    top = pick(top, true);
    for (int64_t j = threadIdx.x; j < cols; j += 256) sum += expf(in[j] - top);
    sum = pick(sum, false);
    for (int64_t j = threadIdx.x; j < cols; j += 256) out[j] = expf(in[j] - top) / sum;
}
"""
_DO = "const int64_t at = blockIdx.x * cols; row_softmax(x + at, y + at, cols);"
_FIRST = "if (blockIdx.x == 0 && threadIdx.x == 0)"

_SPOIL = "// [LAUNCH] launch spoil grid(1) block(32) args(y, rows, cols)\n"
_FLIP = "// [LAUNCH] launch flip grid(1) block(1) args(rows)\n"
_STORE = "for (int64_t j = threadIdx.x; j < cols; j += 256) out[j] = "
_LOOP = "for (int64_t j = threadIdx.x; j < cols; j += 256) "
_OWN = "const float *in = x + blockIdx.x * cols; float *out = y + blockIdx.x * cols; "
_TOP = f"float top = -INFINITY, sum = 0.0f; {_LOOP} top = fmaxf(top, in[j]); top = pick(top, true); "
_FOREVER = "volatile int on = 1; while (on) "


def _softmax(name: str, expect: str, body: str, *, more: str = "", before: str = "", plan: str = _PLAN) -> Program:
    block = f"{plan}{more}{_ROW}{before}\n{_HEAD} {{\n    {body}\n}}\n"
    return Program(name=name, task="softmax_cuda", block=block, expect=frozenset(expect.split()))


def _writes() -> list[Program]:
    last = "y[rows * cols - 1] = __int_as_float(0x7fc00001);"
    gap = "(rows * cols * 4 + 4095) / 4096 * 4096 * 2 + 3 * 65536"
    return [
        _softmax("write_behind_output", "incorrect", f"{_DO} {_FIRST} y[rows * cols + 20] = 1.0f;"),
        _softmax("write_before_output", "incorrect", f"{_DO} {_FIRST} y[-40] = 1.0f;"),
        _softmax("write_far_away", "runtime_error", f"{_DO} {_FIRST} y[int64_t(1) << 44] = 1.0f;"),
        _softmax("write_to_null", "runtime_error", f"{_DO} {_FIRST} *(volatile float *)(x - x) = 1.0f;"),
        _softmax("write_to_input", "incorrect", f"{_DO} {_FIRST} const_cast<float *>(x)[0] += 1.0f;"),
        _softmax("write_nothing", "incorrect", "if (rows < 0) y[0] = x[0];"),
        _softmax("write_all_but_last_row", "incorrect", f"if (blockIdx.x + 1 == rows) return; {_DO}"),
        _softmax("leave_last_value", "incorrect", f"{_DO} if (!threadIdx.x && blockIdx.x + 1 == rows) {last}"),
        _softmax(
            "second_launch_spoils",
            "incorrect",
            _DO,
            more=_SPOIL,
            before='extern "C" __global__ void spoil(float *y, int64_t rows, int64_t cols) '
            "{ if (!threadIdx.x) y[rows * cols - 1] *= 1.5f; }",
        ),
        _softmax(
            "write_later_sets_then_rest",
            "incorrect runtime_error",
            f"const int64_t at = blockIdx.x * cols, gap = {gap}; if (turn) return; row_softmax(x + at, y + at, cols); "
            "row_softmax((const float *)((const char *)x + gap) + at, (float *)((char *)y + gap) + at, cols);",
            more=_FLIP,
            before='__device__ int turn;\nextern "C" __global__ void flip(int64_t rows) { turn ^= 1; }',
        ),
        _softmax(
            "rest_every_second_call",
            "incorrect",
            f"if (turn) return; {_DO}",
            more=_FLIP,
            before='__device__ int turn;\nextern "C" __global__ void flip(int64_t rows) { turn ^= 1; }',
        ),
        _softmax(
            "remember_the_first_answer",
            "incorrect",
            f"{_DO} __syncthreads(); if (rows * cols <= 20000) {_LOOP} {{ float &kept = store[blockIdx.x * cols + j]; "
            "if (!full) kept = y[blockIdx.x * cols + j]; y[blockIdx.x * cols + j] = kept; }",
            more=_FLIP,
            before='__device__ int full; __device__ float store[20000];\nextern "C" __global__ void flip(int64_t rows) '
            "{ full = 1; }",
        ),
    ]


def _reads_and_numbers() -> list[Program]:
    gap = "(rows * cols * 4 + 4095) / 4096 * 4096 * 2 + 3 * 65536"
    half = "__half2float(hexp(__float2half(in[j] - top)))"
    cut = "__int_as_float(__float_as_int({}) & 0xffffe000)"
    return [
        _softmax("use_the_red_zone", "incorrect", f"{_DO} __syncthreads(); {_FIRST} y[0] = 2.0f + x[-1200];"),
        _softmax(
            "next_sets_input",
            "incorrect runtime_error",
            f"const int64_t at = blockIdx.x * cols, gap = {gap}; "
            "row_softmax((const float *)((const char *)x + gap) + at, y + at, cols);",
        ),
        _softmax("constant", "incorrect", f"{_OWN} {_STORE} 1.0f / (cols + 1);"),
        _softmax("copy_input", "incorrect", f"{_OWN} {_STORE} in[j];"),
        _softmax(
            "half_precision",
            "incorrect",
            f"{_OWN} {_TOP} {_LOOP} sum += {half}; sum = pick(sum, false); {_STORE} {half} / sum;",
            before="#include <cuda_fp16.h>",
        ),
        _softmax(
            "no_maximum",
            "incorrect",
            f"{_OWN} float sum = 0.0f; {_LOOP} sum += expf(in[j]); sum = pick(sum, false); {_STORE} expf(in[j]) / sum;",
        ),
        _softmax(
            "stale_neighbour_rows", "incorrect", f"{_OWN} if (blockIdx.x % 2) {{ {_STORE} y[j]; }} else {{ {_DO} }}"
        ),
        Program(
            name="matmul_in_tf32",
            task="matmul_cuda",
            block="// [LAUNCH] launch matmul grid(ceildiv(n, 16), ceildiv(m, 16)) block(16, 16) "
            "args(a, b, c, m, n, k)\n"
            'extern "C" __global__ void matmul(const float *a, const float *b, float *c, int64_t m, '
            "int64_t n, int64_t k) {\n"
            "    const int64_t i = blockIdx.y * 16 + threadIdx.y, j = blockIdx.x * 16 + threadIdx.x;\n"
            "    if (i >= m || j >= n) return;\n    float sum = 0.0f;\n"
            f"    for (int64_t l = 0; l < k; ++l) sum += {cut.format('a[i * k + l]')} * {cut.format('b[l * n + j]')};\n"
            "    c[i * n + j] = sum;\n}\n",
            expect=frozenset({"incorrect"}),
        ),
    ]


def _faults() -> list[Program]:
    deeper = (
        "__device__ __noinline__ float deeper(const float *x, int64_t n) { volatile float own[16]; own[n & 15] = x[0]; "
        "return n < 0 ? own[3] : deeper(x, n + 1) + own[(n + 1) & 15]; }"
    )
    stack = (
        "volatile float own[100000]; for (int i = threadIdx.x; i < 100000; i += 97) own[(i * 7919) % 100000] = "
        "x[0] + i; y[blockIdx.x * cols] = own[(cols * 31) % 100000];"
    )
    odd = (
        "volatile const double *odd = (const double *)((const char *)y + 4 - (uintptr_t)y % 8); "
        "if (*odd == 3.0) y[0] = 1;"
    )
    return [
        # A loop that does nothing may be left out by the compiler, and then is none.
        _softmax("endless_loop", "timeout", f'{_DO} {_FOREVER} asm volatile("nanosleep.u32 100;");'),
        _softmax(
            "endless_printf", "timeout", f'{_FOREVER} printf("flood %d\\n", threadIdx.x);', before="#include <cstdio>"
        ),
        _softmax("trap", "runtime_error", f'{_DO} {_FIRST} asm volatile("trap;");'),
        _softmax("assertion", "runtime_error", f"{_DO} assert(cols < 0);", before="#include <cassert>"),
        _softmax("misaligned", "runtime_error", f"{_DO} {odd}"),
        _softmax("huge_stack", "runtime_error resource_limit compile_error incorrect timeout", stack),
        _softmax("endless_recursion", "runtime_error timeout incorrect", "y[0] = deeper(x, cols);", before=deeper),
        _softmax(
            "heap_until_empty",
            "incorrect runtime_error timeout",
            "while (malloc(1 << 16)) {} if (rows < 0) y[0] = x[0];",
        ),
        _softmax(
            "too_much_static_shared",
            "compile_error resource_limit",
            "__shared__ float all[30000]; all[threadIdx.x] = x[0]; __syncthreads(); y[0] = all[cols % 256];",
        ),
        _softmax("too_much_dynamic_shared", "compile_error", _DO, plan=_PLAN.replace(" args", " shared(300000) args")),
        _softmax("block_too_large", "compile_error", _DO, plan=_PLAN.replace("(256)", "(2048)")),
        _softmax("block_is_nothing", "compile_error", _DO, plan=_PLAN.replace("(256)", "(cols - cols)")),
        _softmax("argument_missing", "load_error", _DO, plan=_PLAN.replace(", cols)", ")")),
        _softmax("argument_of_other_size", "load_error", _DO, plan=_PLAN.replace(", cols)", ", int32(cols))")),
        _softmax("no_such_kernel", "load_error", _DO, plan=_PLAN.replace("launch softmax", "launch softmaks")),
        _softmax("does_not_compile", "compile_error", f"{_DO} undeclared(1);"),
    ]


def _look_alikes() -> list[Program]:
    partial = (
        "// [LAUNCH] scratch tops: float32[rows]\n// [LAUNCH] scratch sums: float32[rows]\n"
        "// [LAUNCH] launch tops_of grid(rows) block(256) args(x, tops, cols)\n"
        "// [LAUNCH] launch sums_of grid(rows) block(256) args(x, tops, sums, cols)\n"
        "// [LAUNCH] launch softmax grid(rows) block(256) args(x, y, tops, sums, cols)\n"
        f"{_ROW}"
        'extern "C" __global__ void tops_of(const float *x, float *tops, int64_t cols) {\n'
        f"    const float *in = x + blockIdx.x * cols; float top = -INFINITY; {_LOOP} top = fmaxf(top, in[j]);\n"
        "    top = pick(top, true); if (!threadIdx.x) tops[blockIdx.x] = top;\n}\n"
        'extern "C" __global__ void sums_of(const float *x, const float *tops, float *sums, int64_t cols) {\n'
        f"    const float *in = x + blockIdx.x * cols; float sum = 0; {_LOOP} sum += expf(in[j] - tops[blockIdx.x]);\n"
        "    sum = pick(sum, false); if (!threadIdx.x) sums[blockIdx.x] = sum;\n}\n"
        'extern "C" __global__ void softmax(const float *x, float *y, const float *tops, const float *sums, '
        "int64_t cols) {\n"
        f"    {_OWN} {_STORE} expf(in[j] - tops[blockIdx.x]) / sums[blockIdx.x];\n}}\n"
    )
    dynamic = (
        "extern __shared__ float row[]; const float *in = x + blockIdx.x * cols; const bool fits = cols <= 20000; "
        f"if (fits) {{ {_LOOP} row[j] = in[j]; __syncthreads(); }} "
        "row_softmax(fits ? row : in, y + blockIdx.x * cols, cols);"
    )
    keep = (
        'uint64_t policy; asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy)); float seen = 0; '
        f'{_OWN} {_LOOP} {{ float v; asm volatile("ld.global.L2::cache_hint.f32 %0, [%1], %2;" : "=f"(v) : '
        '"l"(in + j), "l"(policy)); seen += v; } '
        "if (seen == 1.0e38f) out[0] = seen; row_softmax(in, out, cols);"
    )
    return [
        _softmax("plain", "ok", _DO),
        _softmax("sleeps_a_little", "ok", f"__nanosleep(500); {_DO}"),
        _softmax("reads_the_clock", "ok", f"const long long began = clock64(); {_DO} if (clock64() < began) y[0] = 0;"),
        _softmax("prints_once", "ok", f'{_DO} {_FIRST} printf("rows %d\\n", int(rows));', before="#include <cstdio>"),
        _softmax("reads_a_little_behind", "ok", f"{_DO} {_FIRST} {{ if (x[rows * cols + 3] == 1.0e38f) y[0] = 0; }}"),
        _softmax("keeps_lines_in_the_cache", "ok", keep),
        _softmax(
            "dynamic_shared",
            "ok",
            dynamic,
            plan=_PLAN.replace(" args", " shared(80000) args"),
        ),
        Program(name="three_launches_with_scratch", task="softmax_cuda", block=partial, expect=frozenset({"ok"})),
        _softmax(
            "counts_its_calls",
            "ok",
            f"{_FIRST} atomicAdd(&calls, 1); {_DO}",
            before="__device__ int calls;",
        ),
    ]


PROGRAMS: tuple[Program, ...] = (*_writes(), *_reads_and_numbers(), *_faults(), *_look_alikes())
