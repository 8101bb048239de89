"""OpenCL runtimes of this machine: where they lie, how a box is shown one, and what the device behind it says.

One runtime is used at a time. Boxes see its folders read-only and a folder of ours with a single ICD file, so that
the loader can choose no other: the ICD file of Intel's Python package holds a placeholder, and two CPU drivers in one
process have crashed programs. The driver is only ever loaded in processes that may be killed.
"""

from __future__ import annotations

import ctypes.util
import importlib.metadata
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kfd_worker.harness import opencl_compile
from kfd_worker.sandbox.box import Mount
from kfd_worker.sandbox.output import readable
from kfd_worker.toolchains.port import NotInstalled

__all__ = ["Runtime", "find_runtime", "probe", "runtime_name"]

_DISTRIBUTION = "intel-opencl-rt"
_DRIVER = "libintelocl.so"
_LOADER = "libOpenCL.so.1"
_VENDORS = "/etc/OpenCL/vendors"
_SYSTEM = ("/usr/", "/lib/", "/bin/")
_PROBE_S = 60
_MAX_FACTS = 64 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """One installed OpenCL driver, ready to be shown to boxes."""

    name: str
    loader: str
    """The ICD loader: a path, or a name that the system's linker knows."""
    vendors: str
    """Our folder with the one ICD file."""
    libraries: str
    """Folder of the driver's libraries; empty when the system's linker knows them."""

    def environment(self, threads: int = 0) -> tuple[tuple[str, str], ...]:
        """What a process needs in its environment to load this runtime and no other."""
        # A box has no /sys: the complaint about it would be in every log.
        made = [("OCL_ICD_VENDORS", f"{self.vendors}/"), ("HWLOC_HIDE_ERRORS", "2")]
        if self.libraries:
            made.append(("LD_LIBRARY_PATH", self.libraries))
        if threads:
            # As many workers as the other sides have threads: Intel's runtime asks for cores, PoCL for a number.
            made += [("CL_CONFIG_CPU_TBB_NUM_WORKERS", str(threads)), ("POCL_MAX_PTHREAD_COUNT", str(threads))]
        return tuple(made)

    def mounts(self, empty: Path) -> tuple[Mount, ...]:
        """Read-only folders that a box must be shown; ``empty`` is an empty folder of ours."""
        made = [Mount(source=self.vendors, target=self.vendors)]
        if self.libraries and not any(f"{self.libraries}/".startswith(prefix) for prefix in _SYSTEM):
            made.append(Mount(source=self.libraries, target=self.libraries))
            # A virtual environment keeps every Python package below its lib folder: none of a candidate's business.
            inside = sorted(Path(self.libraries).glob("python3*"))
            made += [Mount(source=str(empty), target=str(folder)) for folder in inside if folder.is_dir()]
        return tuple(made)


def find_runtime(folder: Path) -> Runtime:
    """The CPU runtime to use: Intel's Python package, else one that the system knows.

    Writes its ICD file below ``folder``. Raises NotInstalled when there is none, with what to install.
    """
    libraries = _intel()
    if libraries:
        version = importlib.metadata.version(_DISTRIBUTION)
        loader = f"{libraries}/{_LOADER}"
        name, icd = f"{_DISTRIBUTION} {version}", f"{libraries}/{_DRIVER}"
        if not os.path.exists(loader):
            loader = _LOADER
        return Runtime(name=name, loader=loader, vendors=_vendors(folder, icd), libraries=libraries)
    for path in sorted(Path(_VENDORS).glob("*.icd")) if ctypes.util.find_library("OpenCL") else ():
        if "pocl" in path.name:
            icd = path.read_text(errors="replace").split("\n")[0].strip()
            return Runtime(name=path.stem, loader=_LOADER, vendors=_vendors(folder, icd), libraries="")
    raise NotInstalled(
        "there is no OpenCL runtime for the CPU: pip install 'kfd[opencl]', or apt install pocl-opencl-icd"
    )


def _intel() -> str:
    """Folder of Intel's driver as pip installed it; empty when it is not there."""
    try:
        files = importlib.metadata.files(_DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        return ""
    found = [os.path.realpath(str(file.locate())) for file in files if file.name == _DRIVER]
    return next((os.path.dirname(path) for path in found if os.path.exists(path)), "")


def _vendors(folder: Path, icd: str) -> str:
    """A folder with one ICD file. Raises OSError."""
    made = folder / "vendors"
    made.mkdir(parents=True, exist_ok=True)
    # Boxes run as another user; the state folder above keeps all others out.
    made.chmod(0o755)
    file = made / "kfd.icd"
    file.write_text(f"{icd}\n")
    file.chmod(0o644)
    return str(made)


def probe(runtime: Runtime, kind: str) -> Mapping[str, str]:
    """Build and run a kernel on the first device of a kind, in a process that is killed when it hangs; what it says.

    Raises ValueError with the reason when the device does not work.
    """
    order = json.dumps({"loader": runtime.loader, "device": kind, "test": True})
    command = [os.path.realpath(sys.executable), "-I", "-S", "-B", str(opencl_compile.__file__), order]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_PROBE_S,
            check=False,
            env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", **dict(runtime.environment())},
        )
    except subprocess.TimeoutExpired as error:
        raise ValueError(f"{runtime.name} did not run a kernel within {_PROBE_S} s") from error
    if done.returncode != 0:
        raise ValueError(f"{runtime.name} runs no kernel: {readable(done.stderr, 400)}")
    facts = json.loads(done.stdout[:_MAX_FACTS])
    return {str(key): str(value) for key, value in facts.items()}


def runtime_name(facts: Mapping[str, str]) -> str:
    """The driver with its version, as binaries name what they were built for."""
    return f"{facts['platform']} {facts['driver']}"
