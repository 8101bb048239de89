"""What runs an artifact in a run box: which program, what it is shown of the machine, and which payloads it takes."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from kfd_worker.devices.cpu import cpu_flags, host_runtime
from kfd_worker.devices.opencl import Runtime, runtime_name
from kfd_worker.devices.port import Device
from kfd_worker.harness import (
    child,
    confine,
    cuda_child,
    cuda_driver,
    cuda_memory,
    cuda_shield,
    opencl_api,
    opencl_child,
    triton_child,
)
from kfd_worker.launcher.places import MAIN_FOLDER
from kfd_worker.sandbox.box import Mount
from kfd_worker.toolchains import package
from kfd_worker.toolchains.package import INTERPRETED, ON_GPU

__all__ = [
    "Harness",
    "Unfit",
    "cuda_harness",
    "fitting",
    "host_harness",
    "interpreter_harness",
    "opencl_harness",
    "program_mounts",
]


_FIRST_OWN = 90
_DRIVER_FOLDER = "/usr/local/nvidia"
"""Where containers are given the driver, as a mount of its own; elsewhere the system's linker knows its libraries."""

_DRIVER = (("LD_LIBRARY_PATH", f"{_DRIVER_FOLDER}/lib64"),)


class Unfit(Exception):
    """An artifact that this machine cannot run: the text says why. Never the candidate's doing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Harness:
    """One way to run artifacts here."""

    kinds: tuple[str, ...]
    """Payload kinds that it takes (``toolchains.package``)."""
    targets: tuple[str, ...]
    """What is run by it."""
    program: str
    """Path of the program in the box."""
    mounts: tuple[Mount, ...]
    python: str = ""
    """The interpreter of the program with its packages; empty: the base one, which sees none."""
    arguments: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    runtime: str = ""
    """Driver and version, for payloads that were made for one."""
    device: str = ""
    """The device's name, for payloads that were made for one."""
    features: frozenset[str] = frozenset()
    """Instructions that the processor has."""
    nodes: tuple[str, ...] = ()
    """Device files that the box is given."""
    system: tuple[Mount, ...] = ()
    """What the device's driver must see of the system."""

    def facts(self) -> dict[str, str]:
        """As ``package.compatible`` wants them."""
        return {"kinds": " ".join(self.kinds), "runtime": self.runtime, "device": self.device}


def program_mounts(*modules: ModuleType) -> tuple[Mount, ...]:
    """Files of the harness, side by side in the box."""
    return tuple(
        Mount(source=os.path.realpath(str(one.__file__)), target=f"{MAIN_FOLDER}/{os.path.basename(str(one.__file__))}")
        for one in modules
    )


def host_harness() -> Harness:
    """Libraries of the host form, called by their C ABI."""
    return Harness(
        kinds=("host-so",),
        targets=("cpp:native",),
        program=f"{MAIN_FOLDER}/child.py",
        mounts=program_mounts(child, confine),
        runtime=host_runtime(),
        features=cpu_flags(),
    )


def opencl_harness(runtime: Runtime, device: Mapping[str, str], kind: str, empty: Path, threads: int) -> Harness:
    """Packages of ``opencl`` and ``sycl`` on an OpenCL device of a kind (``cpu``, ``gpu``).

    ``device`` is what ``devices.opencl.probe`` said, ``empty`` an empty folder of ours.
    """
    takes_il = "SPIR-V" in device["il"]
    return Harness(
        kinds=("opencl-binary", "opencl-source", *(("spirv",) if takes_il else ())),
        targets=(f"opencl:{kind}", *((f"sycl:{kind}",) if takes_il else ())),
        program=f"{MAIN_FOLDER}/opencl_child.py",
        mounts=(*program_mounts(child, confine, opencl_api, opencl_child), *runtime.mounts(empty)),
        arguments=(runtime.loader, kind),
        env=runtime.environment(threads),
        runtime=runtime_name(device),
        device=device["device"],
    )


def cuda_harness(device: Device) -> Harness:
    """Packages of ``cuda`` and ``triton`` on one NVIDIA device."""
    architecture = dict(device.facts)["architecture"]
    # Instructions of exactly this chip have names of their own from Hopper on.
    own = (f"cuda:{architecture}a",) if int(architecture.removeprefix("sm_")) >= _FIRST_OWN else ()
    return Harness(
        kinds=ON_GPU,
        targets=(f"cuda:{architecture}", *own, f"triton:{architecture}"),
        program=f"{MAIN_FOLDER}/cuda_child.py",
        mounts=program_mounts(child, cuda_child, cuda_driver, cuda_memory, cuda_shield),
        system=tuple(Mount(source=one, target=one) for one in ("/sys", _DRIVER_FOLDER) if os.path.isdir(one)),
        env=(*_DRIVER, ("CUDA_VISIBLE_DEVICES", device.id), ("CUDA_CACHE_DISABLE", "1")),
        device=architecture,
        nodes=nvidia_nodes(device.id),
    )


def interpreter_harness() -> Harness:
    """Modules of ``triton:interpreter``, checked on the processor and never timed.

    The box sees the worker's own Python with its packages, by the name of its virtual environment.
    """
    return Harness(
        kinds=(INTERPRETED,),
        targets=("triton:interpreter",),
        program=f"{MAIN_FOLDER}/triton_child.py",
        mounts=program_mounts(child, confine, triton_child),
        python=sys.executable,
    )


def nvidia_nodes(uuid: str) -> tuple[str, ...]:
    """Device files of the driver and of one device; of all devices where the driver does not tell which is which."""
    shared = [f"/dev/{name}" for name in ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")]
    own = []
    for path in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information")):
        with contextlib.suppress(OSError):
            told = dict(line.split(":", 1) for line in path.read_text(errors="replace").splitlines() if ":" in line)
            if told.get("GPU UUID", "").strip() == uuid:
                own.append(f"/dev/nvidia{told.get('Device Minor', '').strip()}")
    found = own or sorted(str(path) for path in Path("/dev").glob("nvidia[0-9]*"))
    return tuple(node for node in (*shared, *found) if os.path.exists(node))


def fitting(data: bytes, harnesses: Sequence[Harness]) -> tuple[Harness, Mapping[str, Any], bytes]:
    """The harness for an artifact, its header and its payload. Raises Unfit with the nearest reason."""
    try:
        header, payload = package.read(data)
    except package.PackageError as error:
        raise Unfit(f"the artifact cannot be read: {error}") from error
    reasons = []
    for harness in harnesses:
        reason = package.compatible(header, harness.facts())
        if not reason and header["abi"]["target"] not in harness.targets:
            reason = f"it was built for {header['abi']['target']}; here is {', '.join(harness.targets)}"
        lacks = set(header["abi"].get("features", "").split()) - harness.features
        if not reason and lacks:
            reason = f"it was built for a processor with {', '.join(sorted(lacks))}, which this one lacks"
        if not reason:
            return harness, header, payload
        reasons.append((header["abi"]["kind"] not in harness.kinds, reason))
    raise Unfit(min(reasons)[1] if reasons else "this slot runs nothing")
