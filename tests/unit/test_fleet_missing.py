"""What is missing is said so that somebody can do something about it: at submit and by ``kfd-worker doctor``."""

from __future__ import annotations

from dataclasses import replace

from kfd.base.digest import digest_of
from kfd.core.fleet import views
from kfd.core.fleet.machine import Fleet
from kfd.core.fleet.model import FleetPolicy
from kfd.testing.fleetkit import Peer, build_job, registration
from kfd_worker.cli import doctor_lines
from kfd_worker.launcher.config import DeviceFact, LauncherFacts, ToolchainFact

HOST = (("kernel", "6.1"), ("absent.opencl", "pip install 'kfd[opencl]'"), ("absent.triton", "x" * 5000))


def reasons(toolchain: str) -> list[str]:
    peer = Peer(Fleet(FleetPolicy(), b"boot"))
    peer.register(replace(registration("w1"), host=HOST), 0)
    peer.register(registration("w2"), 0)
    return peer.fleet.could_run(build_job(toolchain=toolchain).spec.requirement)


def test_a_worker_that_lacks_the_toolchain_says_what_to_install() -> None:
    told = reasons("opencl")
    assert told[0].startswith("worker w1: does not build ")
    assert told[0].endswith("; pip install 'kfd[opencl]', then restart its agent")
    assert "install" not in told[1]


def test_a_worker_that_lacks_something_else_does_not() -> None:
    assert not any("install" in line for line in reasons("cuda"))


def test_what_a_worker_says_is_bounded_and_only_what_is_absent_is_read() -> None:
    read = views.lacking(HOST)
    assert set(read) == {"opencl", "triton"}
    assert len(read["triton"]) <= 300
    assert views.lacking(()) == {}


def test_doctor_tells_what_there_is_what_fails_and_what_to_install() -> None:
    facts = LauncherFacts(
        toolchains=(ToolchainFact(name="cpp", version="g++ 12", fingerprint=digest_of(b""), targets=("cpp:native",)),),
        devices=(DeviceFact(id="cpu", name="a processor", facts=(), targets=("cpp:native", "opencl:cpu")),),
        sandbox=(("backend", "bwrap"),),
        problems=(("toolchain cuda", "cannot compile:\nno device\x20functions"),),
        absent=(("triton", "Triton is missing: pip install 'kfd[triton]'"), ("sycl", "y" * 5000)),
    )
    lines = doctor_lines(facts)
    assert lines[:4] == [
        "builds   cpp (g++ 12): cpp:native",
        "runs     a processor: cpp:native, opencl:cpu",
        "sandbox  backend: bwrap",
        "fails    toolchain cuda: cannot compile: no device functions",
    ]
    assert lines[4] == "missing  triton: Triton is missing: pip install 'kfd[triton]'"
    assert len(lines[5]) <= 1000
