"""Kernels of every toolchain are read in their own language: what means nothing is left out, and only that."""

# ruff: noqa: E501 - tables of sources

from __future__ import annotations

import time
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kfd.prompting import pylexing
from kfd.prompting.answers import Drafted, Rejected, RejectReason, parse
from kfd.prompting.features import behaviour, normal_form
from kfd.prompting.language import PYTHON, C, of_path, of_toolchain
from kfd.tasks import load, pack
from kfd.tasks.markers import find
from kfd.tasks.report import Problems
from kfd.tasks.spec import KernelFile

TASKS = Path(__file__).resolve().parents[2] / "tasks"

OPENCL_BLOCK = """// [TUNE] GROUP in {32, 64}
// [LAUNCH] scratch part: float32[n // 2]
// [LAUNCH] launch solve grid(ceildiv(n, GROUP)) block(GROUP) args(x, y, n)
kernel void solve(global const float *x, global float *y, long n)
{
    if (get_global_id(0) < n) y[get_global_id(0)] = 2 * x[get_global_id(0)];
}
"""
TRITON_BLOCK = '''# [TUNE] BLOCK in {64, 128}
# [LAUNCH] launch solve grid(ceildiv(n, BLOCK)) args(x, y, n, BLOCK=BLOCK)
@triton.jit
def solve(x, y, n, BLOCK: tl.constexpr):
    """Twice the input."""
    j = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    half = n // 2
    tl.store(y + j, 2 * tl.load(x + j, mask=j < n), mask=j < n)
'''


def kernel_of(block: str, path: str) -> KernelFile:
    sign = "#" if path.endswith(".py") else "//"
    text = f"{sign} [EVOLVE_START]\n{block}{sign} [EVOLVE_END]\n"
    problems = Problems()
    marked = find(text, path, PurePosixPath(path).suffix, problems)
    assert not problems.found
    return KernelFile(path=path, text=text, blocks=tuple(mark.block for mark in marked))


def answered(block: str, changed: str, path: str, tag: str = "") -> Drafted | Rejected:
    return parse(f"```{tag}\n{changed}```\n", "stop", "rewrite", kernel_of(block, path), "solve")


# ---- comments that mean something ----

CHANGES = [
    ("{32, 64}", "{64, 32}"), ("n // 2", "n // 4"), ("n // 2", "n"), ("block(GROUP)", "block(1)"), ("args(x, y, n)", "args(y, x, n)"),
    ("// [TUNE] GROUP in {32, 64}\n", ""), ("// [LAUNCH] scratch part: float32[n // 2]\n", ""),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new"), CHANGES)
def test_a_change_of_a_statement_alone_is_a_candidate(old: str, new: str) -> None:
    changed = OPENCL_BLOCK.replace(old, new)
    assert changed != OPENCL_BLOCK
    assert isinstance(answered(OPENCL_BLOCK, changed, "kernel.cl"), Drafted)


@pytest.mark.parametrize(
    ("old", "new"), [("{64, 128}", "{128, 64}"), ("grid(ceildiv(n, BLOCK))", "grid(n)"), ("n // 2", "n // 4")]
)
def test_in_python_too(old: str, new: str) -> None:
    changed = TRITON_BLOCK.replace(old, new)
    assert changed != TRITON_BLOCK
    assert isinstance(answered(TRITON_BLOCK, changed, "kernel.py", "python"), Drafted)


@pytest.mark.parametrize(
    ("path", "block", "old", "new"),
    [
        ("kernel.cl", OPENCL_BLOCK, "{32, 64}", "{ 32,64 }"),
        ("kernel.cl", OPENCL_BLOCK, "grid(ceildiv(n, GROUP)) block", "grid( ceildiv(n,GROUP) )  block"),
        ("kernel.cl", OPENCL_BLOCK, "kernel void", "// [NOTE] launch it\nkernel void"),
        ("kernel.py", TRITON_BLOCK, "n // 2", "n//2  # one half"),
        ("kernel.py", TRITON_BLOCK, "# [TUNE] BLOCK in", "#[TUNE]   BLOCK  in"),
        ("kernel.py", TRITON_BLOCK, "tl.store(y + j, 2 *", "tl.store(\n  y + j,  # there\n\n 2 *"),
        ("kernel.py", TRITON_BLOCK, "    half", "\n\n# a remark\n    half"),
    ],
)
def test_spacing_and_remarks_are_no_change(path: str, block: str, old: str, new: str) -> None:
    changed = block.replace(old, new)
    assert changed != block
    result = answered(block, changed, path)
    assert isinstance(result, Rejected)
    assert result.reason is RejectReason.NO_OP


def test_a_misspelt_statement_is_not_the_one_that_it_replaces() -> None:
    one = "// [TUNE A in {1}\n// [LAUNCH] x\nint a;\n"
    assert normal_form("// (TUNE) A in {1}\nint a;\n") != normal_form("int a;\n")
    assert normal_form(one) == normal_form(one.replace("int a", "int  a"))


# ---- Python ----


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("a // b", "a // c"),
        ("if a:\n  b\nc", "if a:\n  b\n  c"),
        ("a\nb", "a b"),
        ("'# a'", "'# b'"),
        ('"""a\n # b\n"""', '"""a\n # c\n"""'),
        ("a ** b", "a * *b"),
        ("x = 1", "x == 1"),
        ("if a:\n  if b:\n    c\n  d", "if a:\n  if b:\n    c\n    d"),
        (r"'\'# a'", r"'\'# b'"),
    ],
)
def test_python_that_means_something_else_has_another_form(one: str, two: str) -> None:
    assert normal_form(one, PYTHON) != normal_form(two, PYTHON)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("if a:\n  b\n", "if a:\n\tb"),
        ("f(a,\n    b)", "f(a, b)"),
        ("a = \\\n  b", "a = b"),
        ("a  # b", "a"),
        ("a\r\nb\r\n", "a\nb\n"),
        ("\n\n# c\na", "a"),
        ("if a:\n  b\n # odd\n  c", "if a:\n    b\n    c"),
    ],
)
def test_python_that_means_the_same_has_the_same_form(one: str, two: str) -> None:
    assert normal_form(one, PYTHON) == normal_form(two, PYTHON)


@pytest.mark.parametrize(
    "ending", ['x = """\n', "x = (1,\n", "x = 1 \\\n", "y = '''a\\'''\n", 'x = "a"\nz = [\n'], ids=range(5)
)
def test_python_that_would_swallow_what_follows_is_rejected(ending: str) -> None:
    result = answered(TRITON_BLOCK, TRITON_BLOCK + ending, "kernel.py")
    assert isinstance(result, Rejected)
    assert result.reason is RejectReason.OUTSIDE_BLOCK


@pytest.mark.parametrize("more", ['x = """a ( """\n', "x = 'it(s'  # ( [\n", "x = [\n 1,\n]\n", "y = r'''a'''\n"])
def test_python_that_closes_is_accepted(more: str) -> None:
    assert isinstance(answered(TRITON_BLOCK, TRITON_BLOCK + more, "kernel.py"), Drafted)


@pytest.mark.parametrize(
    "code", ["# def solve(x):\n", '"""\ndef solve(x):\n"""\n', "solve(x)\n", "def solved(x):\n    pass\n"]
)
def test_a_call_a_comment_or_a_string_defines_no_kernel(code: str) -> None:
    assert not pylexing.defines(code, "solve")
    result = answered(TRITON_BLOCK, code, "kernel.py")
    assert isinstance(result, Rejected)
    assert result.reason is RejectReason.MISSING_ENTRY


def test_a_tag_on_the_first_line_is_no_python() -> None:
    result = parse(
        f"```\npython\n{TRITON_BLOCK.replace('2 *', '3 *')}```",
        "stop",
        "rewrite",
        kernel_of(TRITON_BLOCK, "k.py"),
        "solve",
    )
    assert isinstance(result, Drafted)
    assert "\npython\n" not in result.kernel.text


PIECES = [
    "a",
    " ",
    "\n",
    "\t",
    "#",
    "'",
    '"',
    '"""',
    "'''",
    "\\",
    "(",
    ")",
    "//",
    "def solve(",
    "# [TUNE] A in {1}\n",
    "r'",
    "[LAUNCH]",
]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_any_text_is_read_in_both_languages(text: str) -> None:
    for language in (C, PYTHON):
        normal_form(text, language)
        language.open_end(text)
        assert language.code_only(text).count("\n") == text.count("\n")
    assert all(0 <= level <= 3 for level in behaviour(text, "triton"))


@pytest.mark.parametrize(
    "text", ["'" * 300_000, '"""' * 100_000, "(" * 300_000, "\\\n" * 200_000, " \n" * 200_000, "a = a * " * 50_000, "#" * 400_000, "\\'" * 150_000,
             "\n".join(" " * depth + "if a:" for depth in range(1000)), "x = [:" + " " * 100_000, "def " * 100_000, "# [TUNE] " * 50_000]
)  # fmt: skip
def test_hostile_python_costs_little(text: str) -> None:
    began = time.process_time()
    normal_form(text, PYTHON)
    behaviour(text, "triton")
    PYTHON.open_end(text)
    PYTHON.defines(text, "solve")
    assert time.process_time() - began < 3


def test_languages_follow_from_paths_and_toolchains() -> None:
    assert of_path("kernel.py") is PYTHON
    assert {of_path(f"kernel{suffix}") for suffix in (".cl", ".cu", ".sycl", ".cpp", ".txt")} == {C}
    assert of_toolchain("triton") is PYTHON
    assert {of_toolchain(name) for name in ("cpp", "opencl", "sycl", "cuda", "sim", "nothing")} == {C}


@pytest.mark.parametrize("name", sorted(path.name for path in TASKS.iterdir() if (path / "config.yaml").exists()))
def test_every_shipped_kernel_is_its_own_normal_form_and_nothing_elses(name: str) -> None:
    spec = load(pack(TASKS / name)).spec
    language = of_path(spec.kernel.path)
    assert of_toolchain(spec.toolchain) is language
    assert language.defines(spec.kernel.text, spec.entry)
    assert all(language.open_end(content) == "" for content in spec.kernel.contents())
    form = normal_form(spec.kernel.text, language)
    assert form == normal_form(spec.kernel.text.replace("\n", "  \n"), language)
    sign = "#" if language is PYTHON else "//"
    first = spec.kernel.contents()[0]
    tuned = spec.kernel.with_contents((f"{sign} [TUNE] EXTRA in {{1, 2}}\n{first}", *spec.kernel.contents()[1:]))
    assert normal_form(tuned.text, language) != form
