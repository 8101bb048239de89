"""Whatever is done to a good package, it loads or every problem has a file and a mend; nothing else is ever raised."""

# ruff: noqa: E501 - tables

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kfd.base.failure import BadInput
from kfd.tasks import load, problems
from kfd.tasks.archive import read
from kfd.tasks.spec import TaskSpec
from kfd.tasks.tar import Entry, write

FILES = {
    "config.yaml": (
        b"name: scale\ntarget: cpp:native\nkernel: kernel.cpp\ninterface:\n"
        b"  - {name: x, role: in, dtype: float32, shape: [n, 'm * 2']}\n  - {name: y, role: out, dtype: float32, shape: [n]}\n"
        b"  - {name: n, role: size}\n  - {name: k, role: scalar, dtype: float32}\ntolerance: {class: fp32, tau: 1e-5}\n"
        b"limits: {build_seconds: 60, memory_mb: 2048}\nbudget: {candidates: 24, hours: 8}\nflags: ['-O2']\n"
    ),
    "task.py": (
        b"CASES = [{'name': 'a', 'n': 8, 'm': 3}, {'name': 'b', 'n': 1, 'm': 1, 'timed': False}]\n\n"
        b"def make_inputs(case, generator):\n    return {}\n\ndef reference(x, k):\n    return x * k\n"
    ),
    "kernel.cpp": b'#include <cstdint>\n// [EVOLVE_START]\nextern "C" int solve();\n// [EVOLVE_END]\n',
}
PIECES = [b"\n", b"[", b"]", b"{", b"}", b":", b"- ", b"'", b'"', b"\\", b"\0", b"\xff", b"\t", b"#", b"&a ", b"*a", b"!!x ", b"0",
          b"-1", b"1e400", b"null", b"yes", b"[EVOLVE_END]", b"// [EVOLVE_START]\n", b"/*", b"def reference(): pass\n", b"%", b"?"]  # fmt: skip


@st.composite
def packages(draw: st.DrawFn) -> bytes:
    files = dict(FILES)
    for _ in range(draw(st.integers(1, 4))):
        name = draw(st.sampled_from(sorted(files)))
        data = files[name]
        at = draw(st.integers(0, len(data)))
        to = draw(st.integers(at, min(len(data), at + 30)))
        files[name] = data[:at] + draw(st.sampled_from(PIECES) | st.binary(max_size=4)) + data[to:]
    return write(Entry(name, data) for name, data in files.items())


def check(archive: bytes) -> None:
    found = problems(archive)
    if found:
        with pytest.raises(BadInput) as caught:
            load(archive)
        assert str(caught.value) == str(found[0])
        assert all(problem.mend and problem.file for problem in found)
        return
    task = load(archive)
    spec = task.spec
    assert isinstance(spec, TaskSpec)
    assert spec.kernel.text.encode() == task.files[spec.kernel.path]
    assert spec.kernel.blocks
    assert all(dict(case.sizes)["n"] >= 1 for case in spec.cases)
    assert any(case.timed for case in spec.cases)


def test_the_good_package_loads() -> None:
    archive = write(Entry(name, data) for name, data in FILES.items())
    assert problems(archive) == []
    check(archive)


@settings(max_examples=500, deadline=None)
@given(packages())
def test_a_damaged_package_loads_or_is_refused_in_words(archive: bytes) -> None:
    check(archive)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=2000), st.integers(0, 5000))
def test_damaged_archive_bytes_are_refused_in_words(noise: bytes, at: int) -> None:
    archive = write(Entry(name, data) for name, data in FILES.items())
    at %= len(archive)
    damaged = archive[:at] + noise + archive[at + len(noise) :]
    if damaged == archive:
        return
    try:
        entries = read(damaged)
    except BadInput:
        return
    # A change inside a file leaves a canonical archive, of another task.
    assert {name: entry.data for name, entry in entries.items()} != FILES
