"""Compiler messages, exported symbols, flags."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfd.base.digest import digest_of
from kfd.base.work import BuildSpec, VerdictCode
from kfd.tasks import load, pack
from kfd_worker.sandbox.box import Ended, Limit
from kfd_worker.toolchains.cpp import Cpp
from kfd_worker.toolchains.elf import ElfError, exported_symbols
from kfd_worker.toolchains.gcc_messages import MAX_MESSAGES, parse_messages
from kfd_worker.toolchains.port import Refused

BOX = "/job/source/kernel.cpp"
TASK = load(pack(Path(__file__).resolve().parents[2] / "tasks" / "softmax_rows")).spec


def messages(text: str):  # type: ignore[no-untyped-def]
    return parse_messages(text, box_path=BOX, kernel_path="kernel.cpp")


def ended(log: str, code: int = 1) -> Ended:
    return Ended(
        code=code,
        started=True,
        limit=Limit.NONE,
        log=log.encode(),
        log_dropped=0,
        stdout=b"",
        wall_ns=1,
        cpu_ns=1,
        peak_bytes=0,
    )


def build(flags: tuple[str, ...] = (), defines: tuple[tuple[str, str], ...] = ()) -> BuildSpec:
    return BuildSpec(
        task=digest_of(b""),
        source="",
        kernel_path="kernel.cpp",
        toolchain="cpp",
        target="cpp:native",
        flags=flags,
        defines=defines,
    )


def test_an_error_has_file_line_column_and_text_without_the_box() -> None:
    (one,) = messages(f"{BOX}:12:5: error: 'x' was not declared; see {BOX}\n   12 |  x;\n")
    assert (one.file, one.line, one.column, one.severity) == ("kernel.cpp", 12, 5, "error")
    assert one.text == "'x' was not declared; see kernel.cpp"


def test_linker_and_driver_messages_are_messages() -> None:
    text = "/usr/bin/ld: /scratch/kernel.o: in function `solve': kernel.cpp:(.text+0x5): undefined reference to `foo'\n"
    assert any("undefined reference to `foo'" in one.text for one in messages(text))
    assert messages("cc1plus: fatal error: no such file\n")[0].text == "no such file"


def test_a_flood_is_capped_and_errors_outlive_notes() -> None:
    text = "".join(f"{BOX}:{n}:1: note: here\n" for n in range(900)) + f"{BOX}:999:1: error: the point\n"
    found = messages(text)
    assert len(found) == MAX_MESSAGES
    assert found[-1].text == "the point"


@given(st.text(max_size=300))
def test_no_text_breaks_the_parser(text: str) -> None:
    assert all(len(one.text) <= 600 and one.line >= 0 for one in messages(text))


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"\x7fELF\x02\x01" + b"\xff" * 200, b"#!/bin/sh\n" * 40])
def test_a_damaged_library_is_an_error_not_a_crash(data: bytes) -> None:
    with pytest.raises(ElfError):
        exported_symbols(data)


@given(st.binary(max_size=400))
def test_no_bytes_break_the_elf_reader(data: bytes) -> None:
    try:
        exported_symbols(b"\x7fELF\x02\x01" + data)
    except ElfError:
        return


@pytest.mark.parametrize(
    "flag",
    ["-fplugin=/tmp/x.so", "-o/etc/passwd", "-B/tmp", "@file", "-Wl,-rpath,/", "-include/etc/passwd", "-x", "-wrapper",
     "-specs=x", "-O3 -o x", "-fopenmp\n-o", "/etc/passwd", "-I/", "-march=native;id", "-save-temps", "-dumpdir"],
)  # fmt: skip
def test_flags_that_reach_beyond_the_compilation_are_refused(flag: str) -> None:
    with pytest.raises(Refused):
        Cpp().request(build(flags=(flag,)), TASK, None)


def test_definitions_are_checked_as_flags_are() -> None:
    assert "-DTILE=8" in Cpp().request(build(defines=(("TILE", "8"),)), TASK, None).argv
    with pytest.raises(Refused):
        Cpp().request(build(defines=(("TILE", "8 -o x"),)), TASK, None)


def test_fast_math_reaches_the_compiler_and_never_the_linker() -> None:
    argv = Cpp().request(build(flags=("-ffast-math",)), TASK, None).argv
    script = argv[2]
    compiling, linking = script.split("|| exit $?; ")[0:2]
    assert '"$@"' in compiling
    assert "fast-math" not in linking
    assert "$@" not in linking
    assert "-ffast-math" in argv[4:]


@pytest.mark.parametrize(
    ("log", "code", "expected"),
    [
        (f"{BOX}:1:1: error: nope\n", 1, VerdictCode.COMPILE_ERROR),
        ("cc1plus: out of memory allocating 65536 bytes\n", 1, VerdictCode.RESOURCE_LIMIT),
        ("g++: fatal error: Killed signal terminated program cc1plus\n", 1, VerdictCode.RESOURCE_LIMIT),
        ("as: kernel.o: No space left on device\n", 1, VerdictCode.RESOURCE_LIMIT),
        ("", 139, VerdictCode.COMPILE_ERROR),
    ],
)
def test_a_failed_build_is_a_verdict(log: str, code: int, expected: VerdictCode) -> None:
    box = ended(log, code)
    toolchain = Cpp()
    verdict = toolchain.verdict(build(), box, toolchain.diagnostics(build(), box))
    assert verdict is not None
    assert verdict.code is expected


def test_a_compiler_that_cannot_be_run_is_no_verdict() -> None:
    assert Cpp().verdict(build(), ended("g++: not found\n", 127), ()) is None
