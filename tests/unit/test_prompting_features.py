"""Behaviour is what a source does, not how it is written; the normal form is what the compiler sees."""

# ruff: noqa: E501 - tables of sources

from __future__ import annotations

import re
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kfd.prompting.features import behaviour, normal_form

SCALAR = """
#include <cmath>
#include <cstdint>
extern "C" int solve(const float *x, float *y, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r) {
    const float *in = x + r * cols;
    float *out = y + r * cols;
    float top = in[0];
    for (int64_t c = 1; c < cols; ++c) top = in[c] > top ? in[c] : top;
    float sum = 0;
    for (int64_t c = 0; c < cols; ++c) sum += out[c] = std::exp(in[c] - top);
    for (int64_t c = 0; c < cols; ++c) out[c] /= sum;
  }
  return 0;
}
"""


def with_line(before: str, line: str, source: str = SCALAR) -> str:
    assert before in source
    return source.replace(before, f"{line}\n{before}", 1)


LOOP = "  for (int64_t r = 0; r < rows; ++r) {"
INNER = "    for (int64_t c = 0; c < cols; ++c) sum +="
TYPEDEF = "typedef float vec __attribute__((vector_size(32)));\n"
BLOCKED = SCALAR.replace(
    "for (int64_t c = 0; c < cols; ++c) out[c] /= sum;",
    "for (int64_t b = 0; b < cols; b += 64) for (int64_t c = b; c < b + 64 && c < cols; ++c) out[c] /= sum;",
)
NESTED = SCALAR.replace(
    "for (int64_t c = 0; c < cols; ++c) out[c] /= sum;",
    "for (int64_t a = 0; a < cols; a += 512) for (int64_t b = a; b < a + 512; b += 64)"
    " for (int64_t c = b; c < b + 64; ++c) out[c] /= sum;",
)


@pytest.mark.parametrize(
    ("source", "levels"),
    [
        (SCALAR, (0, 0, 0)),
        (with_line(INNER, "#pragma omp simd"), (1, 0, 0)),
        (with_line(INNER, "#pragma omp simd reduction(+:sum)"), (1, 0, 2)),
        (with_line(INNER, "#pragma GCC ivdep"), (1, 0, 0)),
        (TYPEDEF + SCALAR, (1, 0, 0)),
        (with_line(INNER, "__m256 v = _mm256_loadu_ps(in);"), (1, 0, 0)),
        (with_line(LOOP, "float buffer[1024];"), (2, 0, 0)),
        (BLOCKED, (2, 0, 0)),
        (NESTED, (3, 0, 0)),
        (with_line(INNER, "__builtin_prefetch(in + 64);"), (2, 0, 0)),
        (with_line(INNER, "__builtin_prefetch(in + 64);", BLOCKED), (3, 0, 0)),
        (SCALAR.replace("out[c] /= sum", "out[c] *= inv").replace(INNER, "float inv = 1.0f / sum;\n" + INNER), (0, 1, 0)),
        (SCALAR.replace("sum += out[c] = std::exp(in[c] - top)", "{ sum += in[c]; top = std::max(top, in[c]); }"), (0, 1, 0)),
        (SCALAR.replace("sum += out[c] = std::exp(in[c] - top)", "sum = sum * std::exp(old - top) + std::exp(in[c] - top)"), (0, 2, 0)),
        (with_line(INNER, "float p = 0.1f; p = p * in[0] + 0.5f; p = p * in[0] + 1.0f;"), (0, 2, 0)),
        (with_line(INNER, "int32_t bits; float e = in[0]; std::memcpy(&bits, &e, 4);"), (0, 2, 0)),
        (with_line(INNER, "float p = 0.1f; p = p * in[0] + 0.5f; sum = sum * std::exp(p) + p;"), (0, 3, 0)),
        (with_line(LOOP, "#pragma omp parallel for"), (0, 0, 0)),
        (with_line(LOOP, "#pragma omp parallel for simd schedule(static)"), (1, 0, 0)),
        (with_line(LOOP, "#pragma omp parallel for reduction(+:total)"), (0, 0, 2)),
        (with_line(INNER, "#pragma omp atomic"), (0, 0, 3)),
        (with_line(LOOP, "std::atomic<int> next{0};"), (0, 0, 3)),
        (with_line(INNER, "sum += _mm512_reduce_add_ps(v);"), (0, 0, 2)),
    ],
    ids=range(23),
)  # fmt: skip
def test_each_construct_counts_on_its_own_axis(source: str, levels: tuple[int, int, int]) -> None:
    assert behaviour(source, "cpp") == levels


RICH = TYPEDEF + with_line(
    LOOP, "#pragma omp parallel for reduction(+:total)", with_line(INNER, "__builtin_prefetch(in);", BLOCKED)
)

DEAD = """
#pragma omp parallel for reduction(+:s)
for (int64_t b = 0; b < n; b += 64) for (int64_t c = b; c < b + 64; ++c) { __builtin_prefetch(p); s = s * e(c) + 1.0f; }
#pragma omp atomic
float tile[64]; _mm256_loadu_ps(p);
"""


@pytest.mark.parametrize("source", [SCALAR, RICH], ids=["scalar", "rich"])
@pytest.mark.parametrize(
    "dead",
    [
        "/*" + DEAD + "*/",
        "".join(f"// {line}\n" for line in DEAD.splitlines()),
        "#if 0" + DEAD + "#endif",
        'const char *text = R"(' + DEAD + ')";',
        "static float unused(const float *p, int64_t n) { float s = 0;" + DEAD + "return s; }",
        "static int helper_a(int n) { std::atomic<int> q; return n; }\nstatic int helper_b(int n) { return helper_a(n); }",
        '#define UNUSED _Pragma("omp parallel for")',
    ],
    ids=["block comment", "line comments", "#if 0", "string", "unused function", "unused chain", "unused macro"],
)  # fmt: skip
def test_text_that_cannot_run_changes_nothing(dead: str, source: str) -> None:
    assert behaviour(f"{dead}\n{source}", "cpp") == behaviour(source, "cpp")
    assert behaviour(f"{source}\n{dead}\n", "cpp") == behaviour(source, "cpp")


def test_a_branch_that_is_never_taken_changes_nothing() -> None:
    source = with_line(LOOP, "  if (false) { float tile[64]; __builtin_prefetch(x); }")
    assert behaviour(source, "cpp") == (0, 0, 0)


def test_the_other_side_of_if_0_counts() -> None:
    source = with_line(LOOP, "#if 0\n#else\nfloat tile[64];\n#endif")
    assert behaviour(source, "cpp") == (2, 0, 0)


def test_a_helper_that_is_used_counts() -> None:
    helper = "static void fill(float *p) { float tile[64]; p[0] = tile[0]; }\n"
    used = helper + with_line(LOOP, "  fill(y);")
    assert behaviour(helper + SCALAR, "cpp") == (0, 0, 0)
    assert behaviour(used, "cpp") == (2, 0, 0)


def test_a_macro_that_is_used_counts() -> None:
    macro = '#define WIDE _Pragma("omp simd")\n'
    assert behaviour(macro + with_line(LOOP, "WIDE"), "cpp") == (1, 0, 0)


@pytest.mark.parametrize(
    "word", ["prefetch", "tile", "atomic", "barrier", "simd", "shared", "reduce", "omp", "vec4", "shuffle"]
)
def test_names_change_nothing(word: str) -> None:
    renamed = re.sub(r"\bsum\b", word, re.sub(r"\btop\b", f"my_{word}", SCALAR))
    assert behaviour(renamed, "cpp") == behaviour(SCALAR, "cpp")
    rich = re.sub(r"\bsum\b", word, RICH)
    assert behaviour(rich, "cpp") == behaviour(RICH, "cpp")


def test_a_variable_called_simd_in_a_clause_is_no_simd_pragma() -> None:
    source = with_line(LOOP, "#pragma omp parallel for firstprivate(simd) // simd atomic")
    assert behaviour(source, "cpp") == (0, 0, 0)


# ---- normal form ----


def test_the_normal_form_ignores_comments_and_spacing_and_nothing_else() -> None:
    base = normal_form(SCALAR)
    same = [
        SCALAR.replace("\n", "\r\n"),
        SCALAR.replace("  ", "\t"),
        SCALAR.replace(";\n", "; // done\n"),
        SCALAR.replace("return 0", "return /* zero */ 0"),
        SCALAR.replace("r < rows", "r<rows"),
        SCALAR + "\n\n/* end */",
    ]
    other = [
        SCALAR.replace("r < rows", "r <= rows"),
        SCALAR.replace("return 0", "return 00"),
        SCALAR.replace("#include <cmath>\n#include", "#include <cmath> #include"),
        SCALAR.replace("float sum", "floatsum"),
        SCALAR.replace("top", "t0p"),
        SCALAR.replace("std::exp", "std:: exp f"),
    ]
    assert {normal_form(text) for text in same} == {base}
    assert base not in {normal_form(text) for text in other}


@pytest.mark.parametrize(
    ("one", "two"),
    [("a + +b", "a ++b"), ("#define A\nB", "#define A B"), ('"a b"', '"a  b"'), ("'\\0'", "'0'"), ("a / *b", "a /*b"), ("x = R\"(a  b)\"", "x = R\"(a b)\"")],
)  # fmt: skip
def test_spacing_that_means_something_is_kept(one: str, two: str) -> None:
    assert normal_form(one) != normal_form(two)


@given(st.lists(st.sampled_from(["a", "1", "+", "(", '"x  y"', "'c'", "->", "#", "{"]), max_size=20), st.data())
def test_the_normal_form_is_the_same_for_any_spacing_between_tokens(words: list[str], data: st.DataObject) -> None:
    space = st.sampled_from([" ", "  ", "\t", " /* c */ ", " \\\n "])
    texts = ["".join(word + data.draw(space) for word in words) for _ in range(2)]
    assert normal_form(texts[0]) == normal_form(texts[1])


# ---- hostile text ----


@settings(max_examples=150, deadline=None)
@given(
    st.one_of(st.text(max_size=400), st.lists(st.sampled_from(re.findall(r"\w+|\W", RICH)), max_size=80).map("".join))
)
def test_any_text_has_a_behaviour_in_range(text: str) -> None:
    assert all(0 <= level <= 3 for level in behaviour(text, "cpp"))
    normal_form(text)


HOSTILE = [
    "(" * 300_000, "{" * 300_000, "for(;;)" * 60_000, "a=" * 200_000, "f(" * 150_000, "void f(){" * 30_000, "int a[1];" * 60_000,
    "#define A f()\n" * 30_000, "s += " + "(" * 200_000, "#if 0\n" * 60_000, "void f(){f();}\n" * 20_000, "/" * 400_000, "if(0){" * 50_000,
    "for(i=0;i<n;i+=4)for(j=i;j<n;++j){" * 9000, "x<" * 200_000, "\\\n" * 200_000, 'extern "C" {' * 30_000, "#pragma omp simd\n" * 25_000,
    "0" * 200_000, "x" * 200_000, "/* a" * 5000,
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_hostile_sources_cost_little(number: int) -> None:
    start = time.process_time()
    behaviour(HOSTILE[number], "cpp")
    normal_form(HOSTILE[number])
    assert time.process_time() - start < 5


def test_a_kernel_of_two_hundred_lines_costs_a_few_milliseconds() -> None:
    source = RICH.replace(
        "return 0;", "\n".join(f"  y[{n}] = x[{n}] * {n}.0f + y[{n}];" for n in range(170)) + "\n  return 0;"
    )
    behaviour(source, "cpp")
    times = []
    for _ in range(9):
        start = time.process_time()
        behaviour(source, "cpp")
        normal_form(source)
        times.append(time.process_time() - start)
    assert min(times) < 0.02


def test_many_threads_read_sources_at_the_same_time() -> None:
    sources = [
        "void f(float *x) {\n" + "".join(f"    x[{i}] = {n} * x[{i + 1}];\n" for i in range(200)) + "}\n"
        for n in range(16)
    ]
    alone = [behaviour(source, "cpp") for source in sources]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(4):
            assert list(pool.map(lambda source: behaviour(source, "cpp"), sources)) == alone
