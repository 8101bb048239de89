"""Which program runs an artifact, and why none does: never the candidate's fault."""

from __future__ import annotations

from typing import Any

import pytest

from kfd_worker.devices.cpu import cpu_flags, host_runtime
from kfd_worker.devices.port import Device
from kfd_worker.launcher.harnesses import Unfit, cuda_harness, fitting, host_harness
from kfd_worker.toolchains import package


def packed(**abi: str) -> bytes:
    told: dict[str, Any] = {
        "kind": "host-so",
        "toolchain": "cpp",
        "target": "cpp:native",
        "runtime": host_runtime(),
        "device": "",
        "features": "",
        **abi,
    }
    return package.write({"abi": told, "plan": {}, "tunables": {}, "entries": {}, "options": []}, b"payload")


HOPPER = cuda_harness(Device(id="GPU-1", name="H", facts=(("architecture", "sm_90"),)))


def test_what_was_built_here_runs_here() -> None:
    harness, header, payload = fitting(packed(features=" ".join(sorted(cpu_flags()))), (HOPPER, host_harness()))
    assert harness.kinds == ("host-so",)
    assert header["abi"]["target"] == "cpp:native"
    assert payload == b"payload"


@pytest.mark.parametrize(
    ("abi", "words"),
    [
        ({"features": "sse2 avx9000"}, "a processor with avx9000, which this one lacks"),
        ({"runtime": "riscv glibc-9"}, "built for the runtime 'riscv glibc-9'"),
        ({"target": "cpp:other"}, "built for cpp:other"),
        ({"kind": "spirv"}, "does not load spirv payloads"),
    ],
)
def test_what_was_built_for_another_machine_is_refused_with_the_nearest_reason(abi: dict[str, str], words: str) -> None:
    with pytest.raises(Unfit) as refused:
        fitting(packed(**abi), (HOPPER, host_harness()) if "kind" not in abi else (host_harness(),))
    assert words in str(refused.value)


def test_a_file_that_is_no_package_is_refused() -> None:
    with pytest.raises(Unfit, match="cannot be read"):
        fitting(b"\x7fELF", (host_harness(),))


def test_a_chips_own_instructions_run_on_that_chip_only() -> None:
    assert HOPPER.targets == ("cuda:sm_90", "cuda:sm_90a", "triton:sm_90")
    older = cuda_harness(Device(id="GPU-2", name="A", facts=(("architecture", "sm_80"),)))
    assert older.targets == ("cuda:sm_80", "triton:sm_80")
    binary = packed(kind="cubin", toolchain="cuda", target="cuda:sm_90a", runtime="")
    assert fitting(binary, (HOPPER,))[0] is HOPPER
    with pytest.raises(Unfit, match="built for cuda:sm_90a; here is cuda:sm_80"):
        fitting(binary, (older,))


def test_a_processors_flags_are_what_compilers_use() -> None:
    assert not {"hypervisor", "constant_tsc", "nopl", "fpu_exception"} & cpu_flags()
