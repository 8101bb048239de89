"""EVOLVE blocks of the recorded answers: softmax and matrix product as OpenCL C and as SYCL free functions.

One text serves both languages; ``Language`` fills in how each says kernel, group, local memory and barrier. Names of
kernels carry a tag, so that no two recorded kernels are the same text.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Language", "matmul", "softmax"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """How a device language says what every kernel needs."""

    name: str

    @property
    def _opencl(self) -> bool:
        return self.name == "opencl"

    @property
    def fence(self) -> str:
        """Language of the code fence."""
        return "c" if self._opencl else "cpp"

    @property
    def integer(self) -> str:
        """The 64-bit integer type."""
        return "long" if self._opencl else "int64_t"

    @property
    def exp(self) -> str:
        """The exponential."""
        return "exp" if self._opencl else "sycl::exp"

    def kernel(self, name: str, arguments: str, dimensions: int = 1) -> str:
        """A kernel's head and the ids it uses; pointers in ``arguments`` are written as ``in float *`` or ``out``."""
        if self._opencl:
            text = arguments.replace("in float", "global const float").replace("out float", "global float")
            ids = "".join(
                f"    const long g{d} = get_group_id({d}), t{d} = get_local_id({d});\n" for d in range(dimensions)
            )
            return f"kernel void {name}({text.replace('INT', 'long')})\n{{\n{ids}"
        text = arguments.replace("in float", "const float").replace("out float", "float").replace("INT", "int64_t")
        # The plan's first direction is SYCL's last one.
        last = dimensions - 1
        ids = f"    const auto item = get_nd_item<{dimensions}>();\n" + "".join(
            f"    const int64_t g{d} = item.get_group({last - d}), t{d} = item.get_local_id({last - d});\n"
            for d in range(dimensions)
        )
        return f"KERNEL({dimensions}) void {name}({text})\n{{\n{ids}"

    def local(self, name: str, extents: str) -> str:
        """A local array of floats."""
        if self._opencl:
            return f"    local float {name}{extents};\n"
        return f"    experimental::work_group_static<float{extents}> {name};\n"

    @property
    def barrier(self) -> str:
        """Wait for the group."""
        return "    barrier(CLK_LOCAL_MEM_FENCE);\n" if self._opencl else "    sycl::group_barrier(item.get_group());\n"


class softmax:  # noqa: N801 - a family of blocks
    """Blocks of the softmax tasks."""

    @staticmethod
    def initial_exp(language: Language) -> str:
        """The statement of the initial kernel that writes the result."""
        return f"        out[j] = {language.exp}(in[j] - largest) / (float)sum;\n"

    @staticmethod
    def fused(language: Language, top: str, *, maximum: bool = True) -> str:
        """One work-item for each row, each exponential computed once; without the maximum it overflows."""
        integer, exp = language.integer, language.exp
        find = (
            f"    for ({integer} j = 1; j < cols; ++j) {{\n        if (x[at + j] > {top}) {top} = x[at + j];\n    }}\n"
        )
        start = f"    float {top} = x[at];\n{find}" if maximum else f"    const float {top} = 0.0f;\n"
        return (
            "// [LAUNCH] launch solve grid(rows) block(1) args(x, y, cols)\n"
            + language.kernel("solve", "in float *x, out float *y, INT cols")
            + f"    const {integer} at = g0 * cols;\n{start}    double sum = 0.0;\n"
            f"    for ({integer} j = 0; j < cols; ++j) {{\n        y[at + j] = {exp}(x[at + j] - {top});\n"
            "        sum += y[at + j];\n    }\n    const float inverse = 1.0f / (float)sum;\n"
            f"    for ({integer} j = 0; j < cols; ++j) {{\n        y[at + j] *= inverse;\n    }}\n}}\n"
        )

    @staticmethod
    def group(
        language: Language, tag: str, size: int, *, undeclared: bool = False, argument_short: bool = False
    ) -> str:
        """A group for each row, reductions in local memory."""
        integer, exp = language.integer, language.exp
        arguments = "x, y" if argument_short else "x, y, cols"
        name = "missing" if undeclared else f"part_{tag}"
        return (
            f"// [TUNE] GROUP in {{{size}, {2 * size}}}\n"
            f"// [LAUNCH] launch solve grid(rows) block(GROUP) args({arguments})\n"
            + language.kernel("solve", "in float *x, out float *y, INT cols")
            + language.local(f"part_{tag}", "[GROUP]")
            + f"    const {integer} at = g0 * cols;\n    float top = -3.0e38f;\n"
            f"    for ({integer} j = t0; j < cols; j += GROUP) {{\n"
            "        top = x[at + j] > top ? x[at + j] : top;\n    }\n"
            f"    {name}[t0] = top;\n{language.barrier}"
            f"    for (int i = 0; i < GROUP; ++i) top = part_{tag}[i] > top ? part_{tag}[i] : top;\n{language.barrier}"
            f"    float sum = 0.0f;\n    for ({integer} j = t0; j < cols; j += GROUP) {{\n"
            f"        const float e = {exp}(x[at + j] - top);\n        y[at + j] = e;\n        sum += e;\n    }}\n"
            f"    part_{tag}[t0] = sum;\n{language.barrier}    sum = 0.0f;\n"
            f"    for (int i = 0; i < GROUP; ++i) sum += part_{tag}[i];\n    const float inverse = 1.0f / sum;\n"
            f"    for ({integer} j = t0; j < cols; j += GROUP) y[at + j] *= inverse;\n}}\n"
        )

    @staticmethod
    def online(language: Language, tag: str, size: int) -> str:
        """Maximum and sum in one pass, rescaled as the maximum grows."""
        integer, exp = language.integer, language.exp
        return (
            f"// [TUNE] GROUP in {{{size}, {2 * size}}}\n"
            "// [LAUNCH] launch solve grid(rows) block(GROUP) args(x, y, cols)\n"
            + language.kernel("solve", "in float *x, out float *y, INT cols")
            + language.local(f"tops_{tag}", "[GROUP]")
            + language.local(f"sums_{tag}", "[GROUP]")
            + f"    const {integer} at = g0 * cols;\n    float top = -3.0e38f, sum = 0.0f;\n"
            f"    for ({integer} j = t0; j < cols; j += GROUP) {{\n        const float v = x[at + j];\n"
            f"        const float higher = v > top ? v : top;\n"
            f"        sum = sum * {exp}(top - higher) + {exp}(v - higher);\n        top = higher;\n    }}\n"
            f"    tops_{tag}[t0] = top;\n    sums_{tag}[t0] = sum;\n{language.barrier}"
            f"    for (int i = 0; i < GROUP; ++i) top = tops_{tag}[i] > top ? tops_{tag}[i] : top;\n    sum = 0.0f;\n"
            f"    for (int i = 0; i < GROUP; ++i) sum += sums_{tag}[i] * {exp}(tops_{tag}[i] - top);\n"
            "    const float inverse = 1.0f / sum;\n"
            f"    for ({integer} j = t0; j < cols; j += GROUP) y[at + j] = {exp}(x[at + j] - top) * inverse;\n}}\n"
        )

    @staticmethod
    def split(language: Language, tag: str, size: int) -> str:
        """Sums into a scratch buffer, then every element by itself."""
        integer, exp = language.integer, language.exp
        return (
            f"// [TUNE] GROUP in {{{size}, {2 * size}}}\n"
            "// [LAUNCH] scratch sums: float32[rows, 2]\n"
            "// [LAUNCH] launch solve grid(rows) block(GROUP) args(x, sums, cols)\n"
            f"// [LAUNCH] launch scale_{tag} grid(ceildiv(cols, GROUP), rows) block(GROUP) args(x, sums, y, cols)\n"
            + language.kernel("solve", "in float *x, out float *sums, INT cols")
            + language.local("part", "[GROUP]")
            + f"    const {integer} at = g0 * cols;\n    float top = -3.0e38f;\n"
            f"    for ({integer} j = t0; j < cols; j += GROUP) top = x[at + j] > top ? x[at + j] : top;\n"
            f"    part[t0] = top;\n{language.barrier}"
            f"    for (int i = 0; i < GROUP; ++i) top = part[i] > top ? part[i] : top;\n{language.barrier}"
            f"    float sum = 0.0f;\n    for ({integer} j = t0; j < cols; j += GROUP) sum += {exp}(x[at + j] - top);\n"
            f"    part[t0] = sum;\n{language.barrier}    if (t0 == 0) {{\n        sum = 0.0f;\n"
            "        for (int i = 0; i < GROUP; ++i) sum += part[i];\n        sums[2 * g0] = top;\n"
            "        sums[2 * g0 + 1] = 1.0f / sum;\n    }\n}\n"
            + language.kernel(f"scale_{tag}", "in float *x, in float *sums, out float *y, INT cols", 2)
            + f"    const {integer} j = g0 * GROUP + t0, at = g1 * cols + j;\n"
            f"    if (j < cols && t1 == 0) y[at] = {exp}(x[at] - sums[2 * g1]) * sums[2 * g1 + 1];\n}}\n"
        )


class matmul:  # noqa: N801 - a family of blocks
    """Blocks of the matrix product tasks."""

    @staticmethod
    def elements(language: Language, tag: str, size: int, *, last: bool = True) -> str:
        """A work-item for each element of c."""
        integer = language.integer
        end = "k" if last else "k - 1"
        return (
            f"// [TUNE] GROUP in {{{size}, {2 * size}}}\n"
            "// [LAUNCH] launch solve grid(ceildiv(n, GROUP), m) block(GROUP) args(a, b, c, n, k)\n"
            + language.kernel("solve", "in float *a, in float *b, out float *c, INT n, INT k", 2)
            + f"    const {integer} j = g0 * GROUP + t0, i = g1 + t1;\n    if (j >= n) return;\n"
            f"    float sum_{tag} = 0.0f;\n"
            f"    for ({integer} l = 0; l < {end}; ++l) sum_{tag} += a[i * k + l] * b[l * n + j];\n"
            f"    c[i * n + j] = sum_{tag};\n}}\n"
        )

    @staticmethod
    def rows(language: Language, tag: str, count: int) -> str:
        """A work-item for some rows of one column."""
        integer = language.integer
        return (
            "// [TUNE] GROUP in {32, 64}\n"
            f"// [LAUNCH] launch solve grid(ceildiv(n, GROUP), ceildiv(m, {count})) block(GROUP) "
            "args(a, b, c, m, n, k)\n"
            + language.kernel("solve", "in float *a, in float *b, out float *c, INT m, INT n, INT k", 2)
            + f"    const {integer} j = g0 * GROUP + t0, first = g1 * {count} + t1;\n    if (j >= n) return;\n"
            f"    float sums_{tag}[{count}];\n    for (int r = 0; r < {count}; ++r) sums_{tag}[r] = 0.0f;\n"
            f"    for ({integer} l = 0; l < k; ++l) {{\n        const float right = b[l * n + j];\n"
            f"        for (int r = 0; r < {count}; ++r) {{\n"
            f"            const {integer} i = first + r < m ? first + r : m - 1;\n"
            f"            sums_{tag}[r] += a[i * k + l] * right;\n        }}\n    }}\n"
            f"    for (int r = 0; r < {count}; ++r) {{\n"
            f"        if (first + r < m) c[(first + r) * n + j] = sums_{tag}[r];\n    }}\n}}\n"
        )

    @staticmethod
    def tiled(language: Language, tag: str, size: int, *, undeclared: bool = False) -> str:
        """Tiles of both matrices in local memory."""
        integer = language.integer
        right = "tile_of_b" if undeclared else f"right_{tag}"
        return (
            f"// [TUNE] TILE in {{{size}}}\n"
            "// [LAUNCH] launch solve grid(ceildiv(n, TILE), ceildiv(m, TILE)) block(TILE, TILE) "
            "args(a, b, c, m, n, k)\n"
            + language.kernel("solve", "in float *a, in float *b, out float *c, INT m, INT n, INT k", 2)
            + language.local(f"left_{tag}", "[TILE][TILE]")
            + language.local(f"right_{tag}", "[TILE][TILE]")
            + f"    const {integer} j = g0 * TILE + t0, i = g1 * TILE + t1;\n    float sum = 0.0f;\n"
            f"    for ({integer} l = 0; l < k; l += TILE) {{\n"
            f"        left_{tag}[t1][t0] = i < m && l + t0 < k ? a[i * k + l + t0] : 0.0f;\n"
            f"        {right}[t1][t0] = j < n && l + t1 < k ? b[(l + t1) * n + j] : 0.0f;\n    {language.barrier}"
            f"        for (int s = 0; s < TILE; ++s) sum += left_{tag}[t1][s] * right_{tag}[s][t0];\n"
            f"    {language.barrier}    }}\n    if (i < m && j < n) c[i * n + j] = sum;\n}}\n"
        )
