"""What nvcc, ptxas and cuobjdump print, and which kernels a cubin has."""

from __future__ import annotations

from pathlib import Path

import pytest

from kfd_worker.toolchains.cubin import kernels
from kfd_worker.toolchains.elf import ElfError
from kfd_worker.toolchains.nvcc_messages import parse_messages
from kfd_worker.toolchains.ptxas import KernelUse, as_facts, parse_ptxas, parse_res_usage, short_text

DATA = Path(__file__).parents[1] / "data" / "profiles"


def read(name: str) -> str:
    return (DATA / name).read_text()


def test_messages_of_every_stage_are_read() -> None:
    found = parse_messages(read("nvcc.txt"), box_path="/job/source/kernel.cu", kernel_path="kernel.cu")
    assert [(one.file, one.line, one.severity) for one in found] == [
        ("kernel.cu", 5, "error"),
        ("kernel.cu", 4, "warning"),
        ("kernel.cu", 1, "fatal error"),
        ("kernel.cu", 0, "error"),
        ("", 0, "fatal error"),
    ]
    assert found[0].text == 'identifier "zz" is undefined'
    assert found[3].text.startswith("ptxas: Entry function 'big' uses too much shared data")
    assert found[4].text == "nvcc: Unsupported gpu architecture 'sm_990'"


def test_errors_are_kept_when_warnings_flood() -> None:
    flood = "\n".join(f"k.cu({line}): warning #177-D: variable v{line} unused" for line in range(1, 300))
    found = parse_messages(f"{flood}\nk.cu(900): error: expected a ;", box_path="k.cu", kernel_path="k.cu")
    assert len(found) == 20
    assert found[-1].line == 900


def test_lines_of_the_assembler_have_no_line_of_the_source() -> None:
    text = "ptxas /tmp/tmpxft_1-6_k.ptx, line 40; error   : Unknown modifier '.instr'"
    (one,) = parse_messages(text, box_path="/job/source/kernel.cu", kernel_path="kernel.cu")
    assert (one.file, one.line, one.severity) == ("kernel.cu", 0, "error")
    assert one.text == "ptxas: Unknown modifier '.instr' (line 40 of the PTX)"


def test_resources_of_ptxas() -> None:
    other, softmax = parse_ptxas(read("ptxas.txt"))
    assert other.name == "_Z5otherPf"
    assert softmax == KernelUse(
        name="softmax",
        registers=14,
        spill_store_bytes=0,
        spill_load_bytes=0,
        stack_bytes=0,
        shared_bytes=1024,
        barriers=1,
    )
    assert as_facts((softmax,)) == (
        ("ptxas.softmax", "registers=14 spill_stores=0 spill_loads=0 stack=0 shared=1024 barriers=1"),
    )


def test_spills_are_told_loudly() -> None:
    text = (
        "ptxas info    : Compiling entry function 'k' for 'sm_90'\n"
        "ptxas info    : Function properties for k\n"
        "    96 bytes stack frame, 104 bytes spill stores, 112 bytes spill loads\n"
        "ptxas info    : Used 255 registers, used 2 barriers, 96 bytes cumulative stack size, 8192 bytes smem, "
        "568 bytes cmem[0], 8 bytes cmem[2]\n"
    )
    (one,) = parse_ptxas(text)
    assert (one.registers, one.spill_store_bytes, one.spill_load_bytes) == (255, 104, 112)
    assert (one.constant_bytes, one.barriers, one.shared_bytes) == (576, 2, 8192)
    assert "SPILLS: 216 bytes" in short_text(one)


def test_resources_of_cuobjdump() -> None:
    found = {one.name: one for one in parse_res_usage(read("res_usage.txt"))}
    assert found["softmax"].registers == 14
    assert found["softmax"].shared_bytes == 2048
    assert found["_Z5otherPf"].registers == 8


@pytest.mark.parametrize("text", ["", "\n" * 10_000, "ptxas info    : Used 12", "REG:1 STACK:2", "\0" * 100])
def test_nothing_is_read_from_nothing(text: str) -> None:
    assert parse_ptxas(text) == ()
    assert parse_res_usage(text) == ()


@pytest.mark.parametrize(
    "data", [b"", b"\x7fELF\x02\x01\x01" + bytes(60), b"\x7fELF\x01" + bytes(80), b"#!/bin/sh\n" + bytes(80)]
)
def test_what_is_no_device_code_is_refused(data: bytes) -> None:
    with pytest.raises(ElfError):
        kernels(data)


def test_a_damaged_table_of_sections_is_refused() -> None:
    head = bytearray(b"\x7fELF\x02\x01\x01" + bytes(57))
    head[0x12:0x14] = (190).to_bytes(2, "little")
    head[0x28:0x30] = (2**63).to_bytes(8, "little")
    head[0x3A:0x3E] = (64).to_bytes(2, "little") + (3).to_bytes(2, "little")
    with pytest.raises(ElfError, match="damaged"):
        kernels(bytes(head))
