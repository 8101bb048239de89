"""Every way a package can be wrong has an error with file, line and mend."""

# ruff: noqa: E501 - one mistake a line, so that the table can be read

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from kfd.base.digest import digest_of
from kfd.base.failure import BadInput
from kfd.base.instant import MINUTE, SECOND
from kfd.tasks import load, problems
from kfd.tasks.signature import c_signature
from kfd.tasks.spec import Role
from kfd.tasks.tar import Entry, write

CONFIG = """\
name: softmax-rows
description: Softmax over the rows of a matrix
flavour: native
target: cpp:native
kernel: kernel.cpp
entry: solve
interface:
  - {name: x, role: in, dtype: float32, shape: [rows, cols]}
  - {name: y, role: out, dtype: float32, shape: [rows, cols]}
  - {name: rows, role: size}
  - {name: cols, role: size}
tolerance: {class: fp32}
baseline: reference
target_speedup: 2.0
limits: {build_seconds: 60, run_seconds: 30, memory_mb: 2048}
budget: {candidates: 24, hours: 8}
flags: ["-O2"]
"""
TASK = """\
import torch

CASES = [
    {"name": "wide", "rows": 64, "cols": 8191},
    {"name": "odd", "rows": 3, "cols": 17, "timed": False},
]


def make_inputs(case, generator):
    return {"x": torch.randn(case["rows"], case["cols"], generator=generator)}


def reference(x):
    return torch.softmax(x, dim=-1)
"""
KERNEL = """\
#include <cstdint>

// [EVOLVE_START]
extern "C" int solve(const float *x, float *y, int64_t rows, int64_t cols) { return 0; }
// [EVOLVE_END]
"""
GOOD = {"config.yaml": CONFIG, "task.py": TASK, "kernel.cpp": KERNEL}


def archive(files: dict[str, str | bytes]) -> bytes:
    return write(Entry(name, data.encode() if isinstance(data, str) else data) for name, data in files.items())


def changed(file: str, old: str, new: str) -> bytes:
    text = GOOD[file]
    assert old in text
    return archive({**GOOD, file: text.replace(old, new, 1)})


def line_of(file: str, word: str) -> int:
    return GOOD[file][: GOOD[file].index(word)].count("\n") + 1


def test_a_good_package_loads_with_all_it_says() -> None:
    data = archive({**GOOD, "recorded/nothing/rewrite.0.md": "hi"})
    task = load(data)
    spec = task.spec
    assert problems(data) == []
    assert spec.digest == digest_of(data)
    assert spec.targets == ("cpp:native",)
    assert spec.toolchain == "cpp"
    assert [(p.name, p.role, p.dtype, p.shape) for p in spec.parameters] == [
        ("x", Role.IN, "float32", ("rows", "cols")),
        ("y", Role.OUT, "float32", ("rows", "cols")),
        ("rows", Role.SIZE, "int64", ()),
        ("cols", Role.SIZE, "int64", ()),
    ]
    assert [(c.name, dict(c.sizes), c.timed) for c in spec.cases] == [
        ("wide", {"rows": 64, "cols": 8191}, True),
        ("odd", {"rows": 3, "cols": 17}, False),
    ]
    assert (spec.tolerance.tau, spec.tolerance.a, spec.tolerance.b) == (1e-5, 1e-4, 1e-5)
    assert (spec.limits.build_ns, spec.limits.run_ns, spec.limits.memory_bytes) == (
        MINUTE,
        30 * SECOND,
        2 << 30,
    )
    assert (spec.budget_candidates, spec.budget_ns) == (24, 8 * 60 * MINUTE)
    assert spec.flags == ("-O2",)
    assert spec.has_recordings
    assert spec.reference_text == "def reference(x):\n    return torch.softmax(x, dim=-1)"
    assert spec.kernel.contents()[0].startswith('extern "C" int solve')
    assert task.files["kernel.cpp"] == KERNEL.encode()
    assert c_signature(spec) == 'extern "C" int solve(const float *x, float *y, int64_t rows, int64_t cols)'


def test_defaults_hold_where_keys_are_absent() -> None:
    keep = ("name", "target:", "kernel", "interface", "  -")
    config = "".join(line for line in CONFIG.splitlines(True) if line.startswith(keep))
    spec = load(archive({**GOOD, "config.yaml": config})).spec
    assert (spec.entry, spec.flavour, spec.baseline, spec.target_speedup) == (
        "solve",
        "native",
        "reference",
        2.0,
    )
    assert (spec.tolerance.error_class, spec.limits.run_ns, spec.budget_candidates) == ("fp32", MINUTE, 24)


# (file, old, new, message, mend, word whose line is meant in the good file; "" for line 1 or none)
WRONG: list[tuple[str, str, str, str, str, str]] = [
    ("config.yaml", "entry: solve", "entry: [solve", "YAML", "brackets", ""),
    ("config.yaml", "entry: solve", "entry:\tsolve: x", "YAML", "", "entry"),
    ("config.yaml", "baseline: reference", "baselin: reference", "unknown key baselin", "`baseline`", "baseline"),
    ("config.yaml", "name: softmax-rows", "task_name: softmax-rows", "unknown key task_name", "name", "name"),
    ("config.yaml", "hours: 8", "hour: 8", "unknown key budget.hour", "`hours`", "budget"),
    ("config.yaml", "{name: rows, role: size}", "{name: rows, rol: size}", "unknown key interface\\[2\\].rol", "role", "{name: rows"),
    ("config.yaml", "kernel: kernel.cpp\n", "", "missing key kernel", "kernel", ""),
    ("config.yaml", "target: cpp:native\n", "", "neither target nor targets", "target", ""),
    ("config.yaml", "target: cpp:native", "target: cpp:native\ntargets: [cpp:native]", "both", "one", ""),
    ("config.yaml", "target: cpp:native", "target: cpp:natve", "target 'cpp:natve'", "cpp:native", "target"),
    ("config.yaml", "flavour: native", "flavour: kernelbench", "flavour", "native", "flavour"),
    ("config.yaml", "target_speedup: 2.0", "target_speedup: fast", "target_speedup is 'fast'", "number", "target_speedup"),
    ("config.yaml", "target_speedup: 2.0", "target_speedup: .inf", "target_speedup", "number", "target_speedup"),
    ("config.yaml", "target_speedup: 2.0", "target_speedup: 0", "outside", "1 to", "target_speedup"),
    ("config.yaml", "candidates: 24", "candidates: 2.5", "budget.candidates", "integer", "budget"),
    ("config.yaml", "candidates: 24", "candidates: true", "budget.candidates", "integer", "budget"),
    ("config.yaml", "candidates: 24", "candidates:", "has no value", "", "budget"),
    ("config.yaml", "memory_mb: 2048", "memory_mb: 1", "outside", "64", "limits"),
    ("config.yaml", "entry: solve", "entry: yes", "entry is 'yes'", "quotes", "entry"),
    ("config.yaml", "entry: solve", "entry: solve me", "entry is 'solve me'", "C function name", "entry"),
    ("config.yaml", "entry: solve", "entry: int", "entry is 'int'", "C function name", "entry"),
    ("config.yaml", "dtype: float32", "dtype: float", "dtype is 'float'", "`float32`", "{name: x"),
    ("config.yaml", "role: in,", "role: input,", "role is 'input'", "`in`", "{name: x"),
    ("config.yaml", "role: out,", "role: in,", "no argument is `out`", "out", "  - {name: x"),
    ("config.yaml", "shape: [rows, cols]", "shape: [rows, cols +]", "ends too early", "names", "{name: x"),
    ("config.yaml", "shape: [rows, cols]", "shape: [rows, __import__('os')]", "unexpected character", "", "{name: x"),
    ("config.yaml", "shape: [rows, cols]", "shape: rows", "shape is 'rows'", "list", "{name: x"),
    ("config.yaml", ", shape: [rows, cols]", "", "x has no shape", "shape", "{name: x"),
    ("config.yaml", "dtype: float32, ", "", "x has no dtype", "dtype", "{name: x"),
    ("config.yaml", "{name: rows, role: size}", "{name: rows, role: size, shape: [1]}", "has a shape", "away", "{name: rows"),
    ("config.yaml", "{name: rows, role: size}", "{name: rows, role: size, dtype: int32}", "dtype int32", "int64", "{name: rows"),
    ("config.yaml", "{name: rows, role: size}", "{name: rows, role: scalar}", "no usable dtype", "float32", "{name: rows"),
    ("config.yaml", "{name: y, role", "{name: x, role", "x is there twice", "Rename", "{name: y"),
    ("config.yaml", "{name: y, role", "{name: class, role", "'class' cannot be used", "free", "{name: y"),
    ("config.yaml", "{name: y, role", "{name: lambda, role", "'lambda' cannot be used", "free", "{name: y"),
    ("config.yaml", "{class: fp32}", "{class: fp23}", "class is 'fp23'", "fp32", "tolerance"),
    ("config.yaml", "{class: fp32}", "fp32", "tolerance is 'fp32'", "class", "tolerance"),
    ("config.yaml", "{class: fp32}", "{class: fp32, tau: -1}", "tau", "0 to 1", "tolerance"),
    ("config.yaml", "kernel: kernel.cpp", "kernel: kernal.cpp", "'kernal.cpp' is not in the package", "kernel.cpp", "kernel"),
    ("config.yaml", "kernel: kernel.cpp", "kernel: task.py", "'task.py' is not", "", "kernel"),
    ("config.yaml", "kernel: kernel.cpp", "kernel: ../kernel.cpp", "is not in the package", "", "kernel"),
    ("config.yaml", '["-O2"]', '["-fplugin=evil.so"]', "flag '-fplugin=evil.so'", "Flags", "flags"),
    ("config.yaml", '["-O2"]', '["-Ofast"]', "flag '-Ofast'", "Flags", "flags"),
    ("config.yaml", '["-O2"]', "[-Wl,-rpath=/tmp]", "flag '-Wl'", "Flags", "flags"),
    ("config.yaml", '["-O2"]', '["@args"]', "flag '@args'", "Flags", "flags"),
    ("config.yaml", "name: softmax-rows", "name: ../x", "name is '../x'", "letters", "name"),
    ("config.yaml", "entry: solve", "entry: solve\nentry: solve", "there twice", "Keep one", "interface"),
    ("config.yaml", "entry: solve", "entry: &a solve", "anchors", "out", "entry"),
    ("config.yaml", "entry: solve", "entry: !!python/name:os.system x", "tags", "away", "entry"),
    ("config.yaml", "entry: solve", "entry: other", "no function other", "extern", ""),
    ("task.py", "def reference(x):", "def reference(x:", "syntax error", "line", "def reference"),
    ("task.py", "def reference(x):", "def refrence(x):", "no function reference", "refrence", ""),
    ("task.py", "def make_inputs(case, generator):", "def make_inputs(case):", "make_inputs takes", "generator", "def make_inputs"),
    ("task.py", "def make_inputs(case, generator):", "def make_inputs(a, b, c):", "make_inputs takes", "generator", "def make_inputs"),
    ("task.py", "def make_inputs", "async def make_inputs", "async", "plain", "def make_inputs"),
    ("task.py", "def reference(x):", "def reference(z):", "does not take x", "reference\\(x\\)", "def reference"),
    ("task.py", "def reference(x):", "def reference(x, rows):", "takes rows", "shapes", "def reference"),
    ("task.py", "CASES = [", "CASE = [", "no CASES", "CASES", ""),
    ("task.py", "CASES = [", "CASES = list(x) or [", "not a literal", "CASES", "CASES"),
    ("task.py", '"cols": 8191}', '"cols": 2 ** 13}', "'cols' of a case is not a literal", "number", '"wide"'),
    ("task.py", '"cols": 8191}', '"cols": 0}', "size 'cols'", "integers from 1", '"wide"'),
    ("task.py", '"cols": 8191}', '"cols": True}', "size 'cols'", "integers from 1", '"wide"'),
    ("task.py", '"cols": 8191}', '"cols": 1.0}', "size 'cols'", "integers from 1", '"wide"'),
    ("task.py", '"cols": 8191}', '"cols": -3}', "size 'cols'", "integers from 1", '"wide"'),
    ("task.py", '"cols": 8191}', '"colls": 8191}', "no size 'cols'", "'colls'", '"wide"'),
    ("task.py", '"cols": 8191}', '"cols": 99999999999}', "MiB of arguments", "smaller", '"wide"'),
    ("task.py", '"odd"', '"wide"', "'wide' is there twice", "Rename", '"odd"'),
    ("task.py", '"name": "odd", ', "", "a case has no name", "name", '"odd"'),
    ("task.py", '"name": "odd"', '"name": "../odd"', "not a word", "letters", '"odd"'),
    ("task.py", '"timed": False', '"timed": 0', "timed is 0", "True or False", '"odd"'),
    ("task.py", '"cols": 8191}', '"cols": 8191, "timed": False}', "no case is timed", "timed", "CASES"),
    ("kernel.cpp", "// [EVOLVE_START]\n", "", "\\[EVOLVE_END\\] without", "START", "extern"),
    ("kernel.cpp", "// [EVOLVE_END]\n", "", "never closed", "END", "// [EVOLVE_START]"),
    ("kernel.cpp", "// [EVOLVE_END]", "// [EVOLVE_START]", "inside the block", "nest", "// [EVOLVE_END]"),
    ("kernel.cpp", "// [EVOLVE_START]", "# [EVOLVE_START]", "not inside a comment", "comment", "// [EVOLVE_START]"),
    ("kernel.cpp", "// [EVOLVE_START]", "// [EVOLVE START]", "looks like a marker", "exactly", "// [EVOLVE_START]"),
    ("kernel.cpp", "// [EVOLVE_START]", "// [evolve_start]", "looks like a marker", "exactly", "// [EVOLVE_START]"),
    ("kernel.cpp", "// [EVOLVE_START]", "// EVOLVE-BLOCK-START", "looks like a marker", "exactly", "// [EVOLVE_START]"),
    ("kernel.cpp", "// [EVOLVE_START]", "/* [EVOLVE_START]", "does not end on its line", "Close", "// [EVOLVE_START]"),
    ("kernel.cpp", "// [EVOLVE_START]", "// [EVOLVE_START] \\", "backslash", "away", "// [EVOLVE_START]"),
    ("kernel.cpp", "// [EVOLVE_END]", "} // [EVOLVE_END]", "code on the line", "own", "// [EVOLVE_END]"),
    ("kernel.cpp", "// [EVOLVE_START]\n", "// [EVOLVE_START] [EVOLVE_END]\n", "two markers", "own line", "// [EVOLVE_START]"),
    ("kernel.cpp", "// [EVOLVE_START]\n", "// [EVOLVE_START]\n// [REFERENCE_START]\n", "inside the block", "nest", "extern"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("file", "old", "new", "message", "mend", "word"), WRONG, ids=[f"{w[0]}:{w[2][:40]!r}" for w in WRONG]
)
def test_each_mistake_is_named_with_file_line_and_mend(
    file: str, old: str, new: str, message: str, mend: str, word: str
) -> None:
    data = changed(file, old, new)
    with pytest.raises(BadInput, match=message) as caught:
        load(data)
    found = [problem for problem in problems(data) if re.search(message, str(problem))]
    assert found
    assert found[0].file in (file, "kernel.cpp", "config.yaml")
    assert found[0].mend
    assert re.search(mend, found[0].mend)
    assert caught.value.file
    if word:
        assert found[0].line == line_of(file, word)


def test_several_mistakes_are_told_together() -> None:
    data = archive(
        {
            "config.yaml": CONFIG.replace("baseline:", "baselin:").replace("role: in,", "role: input,"),
            "task.py": TASK.replace("8191", "0").replace("def reference(x)", "def reference(q)"),
            "kernel.cpp": KERNEL.replace("// [EVOLVE_END]\n", ""),
        }
    )
    found = problems(data)
    assert {problem.file for problem in found} == {"config.yaml", "task.py", "kernel.cpp"}
    assert len(found) >= 4
    assert all(problem.mend and problem.file for problem in found)


@pytest.mark.parametrize("name", list(GOOD))
def test_a_missing_file_is_named(name: str) -> None:
    data = archive({other: text for other, text in GOOD.items() if other != name})
    with pytest.raises(BadInput, match=r"not in the package|package has no") as caught:
        load(data)
    assert caught.value.mend


def test_a_folder_one_level_too_high_says_which_folder_is_meant() -> None:
    data = archive({**{f"softmax/{name}": text for name, text in GOOD.items()}, "README.md": "hi"})
    found = problems(data)
    assert any("softmax/config.yaml" in problem.mend for problem in found)


@pytest.mark.parametrize("name", list(GOOD))
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda text: text.encode("utf-16"), "UTF-16"),
        (lambda text: text.encode() + b"\n# caf\xe9\n", "not UTF-8"),
        (lambda text: text.encode() + b"\0", "NUL"),
    ],
)
def test_files_that_are_not_plain_utf8_are_refused(name: str, spoil: Callable[[str], bytes], message: str) -> None:
    with pytest.raises(BadInput, match=message) as caught:
        load(archive({**GOOD, name: spoil(GOOD[name])}))
    assert caught.value.file == name
    assert "UTF-8" in caught.value.mend


def test_a_byte_order_mark_and_crlf_are_accepted_and_the_kernel_keeps_every_byte() -> None:
    files = {name: b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode() for name, text in GOOD.items()}
    task = load(archive(dict(files)))
    assert task.spec.kernel.text.encode() == files["kernel.cpp"]
    content = task.spec.kernel.contents()[0]
    assert content.startswith("extern")
    assert content.endswith("}\r\n")
    assert task.spec.kernel.with_contents(("",)).text.count("[EVOLVE_") == 2


def test_an_empty_block_and_several_blocks_are_allowed() -> None:
    kernel = "// [EVOLVE_START]\n// [EVOLVE_END]\nint x;\n/* [EVOLVE_START] */\nint solve;\n/* [EVOLVE_END] */\n"
    spec = load(archive({**GOOD, "kernel.cpp": kernel})).spec
    assert spec.kernel.contents() == ("", "int solve;\n")
    empty = load(archive({**GOOD, "kernel.cpp": "// [EVOLVE_START]\n// [EVOLVE_END]\n"})).spec
    assert empty.kernel.is_empty


def test_reference_and_instructions_are_found_between_their_markers() -> None:
    task = TASK + "\n# [USER_INSTRUCTIONS_START]\n# Relieve the\n# exp unit.\n# [USER_INSTRUCTIONS_END]\n"
    reference = "// [REFERENCE_START]\ny = softmax(x);\n// [REFERENCE_END]\n"
    spec = load(archive({**GOOD, "task.py": task, "reference.cpp": reference})).spec
    assert spec.instructions == "Relieve the\nexp unit."
    assert spec.reference_text == "y = softmax(x);"


def test_an_evolve_block_outside_the_kernel_file_is_refused() -> None:
    with pytest.raises(BadInput, match="outside the kernel file"):
        load(archive({**GOOD, "task.py": TASK + "# [EVOLVE_START]\n# [EVOLVE_END]\n"}))


@pytest.mark.parametrize("name", ["recorded/rewrite.0.md", "recorded/xyz/rewrite.0.md", "recorded/nothing/rewrite.md"])
def test_a_recording_that_would_never_be_found_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match="never be found"):
        load(archive({**GOOD, name: "hi"}))


def test_shapes_that_are_empty_or_not_whole_are_refused_for_the_case_that_makes_them_so() -> None:
    for shape, message in (
        ("cols - 17", "is 0"),
        ("cols / 2", "remainder"),
        ("cols // (cols - 17)", "division by zero"),
    ):
        data = archive({**GOOD, "config.yaml": CONFIG.replace("[rows, cols]}", f'[rows, "{shape}"]}}', 1)})
        with pytest.raises(BadInput, match=message) as caught:
            load(data)
        assert (caught.value.file, caught.value.line > 0) == ("task.py", True)


@pytest.mark.parametrize(
    "config",
    ["[" * 50_000, "a: " * 50_000, "{" * 3000, "&a [*a]", "- " * 30_000, "\x07", "", "---\n---\n", "a: b\n" * 20_000, "? [x]\n: y"],
    ids=range(10),
)  # fmt: skip
def test_hostile_yaml_is_refused_and_quickly(config: str) -> None:
    found = problems(archive({**GOOD, "config.yaml": config}))
    assert found
    assert all(problem.mend for problem in found)


@pytest.mark.parametrize(
    "task",
    ["(" * 100_000, "x = " + "-" * 100_000 + "1", "CASES = [" + "[" * 500, "CASES = {**x}", "CASES = []"],
)
def test_hostile_python_is_refused_and_never_run(task: str) -> None:
    found = problems(archive({**GOOD, "task.py": task}))
    assert any(problem.file == "task.py" for problem in found)


def test_task_code_is_never_run(tmp_path: Path) -> None:
    trace = tmp_path / "ran"
    task = f"open({str(trace)!r}, 'w')\n" + TASK
    load(archive({**GOOD, "task.py": task}))
    assert not trace.exists()
