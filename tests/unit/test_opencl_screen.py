"""Assembly in device code for a processor is found in the text and in SPIR-V, whatever it hides behind."""

from __future__ import annotations

import struct
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfd_worker.harness.opencl_compile import assembly_line, has_assembly

HEADER = struct.pack("<5I", 0x07230203, 0x00010400, 0, 10, 0)


def op(code: int, *words: int) -> bytes:
    return struct.pack(f"<{1 + len(words)}I", (1 + len(words)) << 16 | code, *words)


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("a\nb\n__asm__(1);\n", 3),
        ("asm volatile(1);", 1),
        ("int x;\n__asm goto(1);", 2),
        ("a\n__as\\\nm__(1);\n", 2),
        ("a\\\nb\n__as\\ \nm__(1);\n", 3),
        ("__as??/\nm__(1);\n", 1),
        ("#undef __asm__\n", 1),
        ("/* a\nb */ asm(1);", 2),
        ('x = "a\\"b"; asm(1);', 1),
        ('#pragma push_macro("__asm__")\n', 1),
        ("char c = '\"'; asm(1); char d = '\"';", 1),
    ],
)
def test_assembly_is_found_with_its_line(source: str, line: int) -> None:
    assert assembly_line(source) == line


@pytest.mark.parametrize(
    "source", ["// asm(1);\n", "/* __asm__ */", 'x = "asm";', "int asmuth, __asm_, x__asm__;", "// a \\\nasm(1);\n", ""]
)
def test_what_only_looks_like_assembly_is_none(source: str) -> None:
    assert assembly_line(source) == 0


@given(st.text(alphabet="asm_\\\n/*\"'? ", max_size=60))
def test_any_text_has_an_answer_on_one_of_its_lines(source: str) -> None:
    assert 0 <= assembly_line(source) <= source.count("\n") + 1


@pytest.mark.parametrize("text", ["/*" * 200_000, '"' * 300_000, "\\\n" * 200_000 + "asm", "asm\n" * 100_000])
def test_hostile_text_costs_little(text: str) -> None:
    began = time.process_time()
    assembly_line(text)
    assert time.process_time() - began < 2


def test_spirv_is_walked_instruction_by_instruction() -> None:
    fine = HEADER + op(17, 6) + op(5, 1, 5609, 5610 | 1 << 16) + op(19, 2)
    assert not has_assembly(fine)
    for code in (5609, 5610, 5611):
        assert has_assembly(fine + op(code, 1, 2, 3))


@pytest.mark.parametrize(
    "module",
    [b"", HEADER[:16], HEADER + b"\0\0\0", b"\0" * 40, HEADER + b"\0" * 4, HEADER + struct.pack("<I", 9 << 16 | 17)],
)
def test_a_module_that_cannot_be_walked_is_not_taken(module: bytes) -> None:
    assert has_assembly(module)
