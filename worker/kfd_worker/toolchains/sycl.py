"""Toolchain ``sycl``: free-function kernels in device form, through the run-time compiler of ``intel-sycl-rt``.

No SYCL compiler driver is needed: a small host program, built once with g++, asks the runtime to compile the source
to SPIR-V in the build box, never where anything is timed. The run side gives the SPIR-V to the OpenCL driver; a kernel
``extern "C" void name(...)`` is called ``__sycl_kernel_name`` there and takes its pointers and numbers as they are.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from kfd.base.digest import digest_of, digest_of_json
from kfd.base.evidence import to_fact
from kfd.base.work import BuildSpec, Diagnostic, Verdict
from kfd.tasks.launchplan import LaunchPlan
from kfd.tasks.spec import TaskSpec
from kfd_worker import harness
from kfd_worker.devices.opencl import Runtime, find_runtime, probe, runtime_name
from kfd_worker.launcher.places import base_interpreter
from kfd_worker.sandbox.box import Ended, Mount
from kfd_worker.sandbox.output import readable
from kfd_worker.toolchains import package
from kfd_worker.toolchains.clang_messages import parse_clang
from kfd_worker.toolchains.compiled import from_spirv
from kfd_worker.toolchains.device_form import header, launches, options_of, split_output
from kfd_worker.toolchains.opencl import COMPILE, compile_mounts, failure, kernel_facts
from kfd_worker.toolchains.port import SOURCE, BuildRequest, NotInstalled, SelfTest, Unusable

__all__ = ["Sycl"]

_DISTRIBUTION = "intel-sycl-rt"
_LIBRARY = "libsycl.so"
_PROGRAM = "/kfd/sycl_compile"
_HOST = Path(os.path.realpath(harness.__path__[0]), "sycl_compile.cpp")
_HOST_FLAGS = ("-std=c++17", "-O1", "-w", "-DSYCL_DISABLE_FSYCL_SYCLHPP_WARNING")
_HOST_S = 300
_TEST_S = 120
_SCRATCH_BYTES = 512 << 20
_ENTRY = "__sycl_kernel_"
_BUILD = (
    'program=$1 source=$2 output=$3 options=$4; shift 4; "$program" "$source" "$output" $options 1>&2 || exit $?; '
    'exec "$@"'
)
_TEST = """
#include <sycl/sycl.hpp>
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((sycl::ext::oneapi::experimental::nd_range_kernel<1>))
void test(const float *x, float *y) {
  auto item = sycl::ext::oneapi::this_work_item::get_nd_item<1>();
  y[item.get_global_id(0)] = 2.0f * x[item.get_global_id(0)];
}
"""


def _entry(kernel: str) -> str:
    return f"{_ENTRY}{kernel}"


class Sycl:
    """SYCL for the CPU."""

    name: str = "sycl"
    targets: tuple[str, ...] = ("sycl:cpu",)

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._runtime: Runtime | None = None
        self._libraries = ""
        self._device: Mapping[str, str] = {}
        self._version = ""

    def self_test(self) -> SelfTest:
        """Build the host program unless it is there, let it compile a kernel; the OpenCL driver runs one too."""
        self._libraries = _libraries()
        self._version = importlib.metadata.version(_DISTRIBUTION)
        compiler = shutil.which("g++", path="/usr/local/bin:/usr/bin:/bin")
        if compiler is None:
            raise NotInstalled("sycl needs g++ beside the runtime: apt install g++")
        empty = self._folder / "empty"
        empty.mkdir(parents=True, exist_ok=True)
        empty.chmod(0o755)
        self._runtime = find_runtime(self._folder)
        self._device = probe(self._runtime, "cpu")
        if "SPIR-V" not in self._device["il"]:
            raise ValueError(f"{self._runtime.name} takes no SPIR-V: pip install 'kfd[sycl]' brings a driver that does")
        program = self._build_host(compiler)
        with tempfile.TemporaryDirectory(prefix="kfd-sycl-") as folder:
            source, output = Path(folder, "test.cpp"), Path(folder, "test.spv")
            source.write_text(_TEST)
            self._ask([str(program), str(source), str(output)], dict(self._environment()), _TEST_S)
            spirv = output.read_bytes()
        fingerprint = digest_of_json(
            {
                "runtime": self._version,
                "driver": runtime_name(self._device),
                "device": self._device["device"],
                "host": digest_of(_HOST.read_bytes()).hash,
                # The C++ library's headers come from the system's compiler.
                "compiler": self._ask([compiler, "-dumpfullversion"], {}, _TEST_S).strip(),
                "test": digest_of(spirv).hash,
            }
        )
        return SelfTest(version=f"{_DISTRIBUTION} {self._version}", fingerprint=fingerprint)

    def _build_host(self, compiler: str) -> Path:
        """The host program; one that an earlier start has built from the same text is used again."""
        key = digest_of_json([_HOST.read_text(), self._version, self._libraries, *_HOST_FLAGS]).hash[:16]
        program = self._folder / f"sycl_compile-{key}"
        if not program.exists():
            include = os.path.normpath(f"{self._libraries}/../include")
            fresh = self._folder / "sycl_compile.new"
            command = [compiler, *_HOST_FLAGS, f"-I{include}", "-o", str(fresh), str(_HOST)]
            self._ask([*command, f"-L{self._libraries}", "-lsycl"], {}, _HOST_S)
            fresh.chmod(0o755)
            fresh.rename(program)
        return program

    def _environment(self) -> tuple[tuple[str, str], ...]:
        assert self._runtime is not None, "self_test comes first"
        shown = dict(self._runtime.environment())
        folders = [self._libraries, shown.get("LD_LIBRARY_PATH", "")]
        path = ":".join(dict.fromkeys(folder for folder in folders if folder))
        return tuple({**shown, "LD_LIBRARY_PATH": path, "ONEAPI_DEVICE_SELECTOR": "opencl:cpu"}.items())

    def _ask(self, command: list[str], env: dict[str, str], limit_s: int) -> str:
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                stdin=subprocess.DEVNULL,
                timeout=limit_s,
                check=False,
                env={"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": "/nonexistent", **env},
            )
        except subprocess.TimeoutExpired as error:
            raise ValueError(f"{Path(command[0]).name} did not end within {limit_s} s") from error
        if done.returncode != 0:
            raise ValueError(f"{Path(command[0]).name} fails: {readable(done.stdout + done.stderr, 400)}")
        return done.stdout.decode("utf-8", "replace")

    def request(self, spec: BuildSpec, task: TaskSpec, plan: LaunchPlan | None) -> BuildRequest:
        """The run-time compiler, then the driver's look at the SPIR-V beside the plan."""
        assert plan is not None, "sycl is a device-form toolchain"
        assert self._runtime is not None, "self_test comes first"
        compiler = shutil.which("g++", path="/usr/local/bin:/usr/bin:/bin") or ""
        order = {
            "loader": self._runtime.loader,
            "device": "cpu",
            "spirv": "/scratch/kernel.spv",
            "options": "",
            "launches": launches(plan, _entry),
            "give": "source",
        }
        program = self._build_host(compiler)
        check = (base_interpreter(), "-I", "-S", "-B", COMPILE, json.dumps(order))
        source = f"{SOURCE}/{spec.kernel_path}"
        # No option holds a blank: the flags' pattern allows none.
        options = " ".join(options_of(spec, plan))
        mounts = [*compile_mounts(), *self._runtime.mounts(self._folder / "empty")]
        mounts.append(Mount(source=str(program), target=_PROGRAM))
        if self._libraries != self._runtime.libraries:
            mounts.append(Mount(source=self._libraries, target=self._libraries))
        return BuildRequest(
            argv=("/bin/sh", "-c", _BUILD, "kfd-build", _PROGRAM, source, "/scratch/kernel.spv", options, *check),
            scratch_bytes=_SCRATCH_BYTES,
            mounts=tuple(mounts),
            env=self._environment(),
        )

    def diagnostics(self, spec: BuildSpec, ended: Ended) -> tuple[Diagnostic, ...]:
        """Messages with the source under its own name."""
        box_path = f"{SOURCE}/{spec.kernel_path}"
        return parse_clang(readable(ended.log), box_path=box_path, kernel_path=spec.kernel_path)

    def verdict(self, spec: BuildSpec, ended: Ended, messages: Sequence[Diagnostic]) -> Verdict | None:
        """Why the compiler or the check failed."""
        return failure(ended, messages)

    def artifact(self, spec: BuildSpec, task: TaskSpec, plan: LaunchPlan | None, ended: Ended) -> bytes:
        """The package: SPIR-V, which every driver that takes it can finish."""
        assert plan is not None, "sycl is a device-form toolchain"
        _, payload = split_output(ended.stdout)
        try:
            return package.write(header(spec, plan, kind="spirv", entry=_entry), payload)
        except package.PackageError as error:
            raise Unusable(f"the build cannot be packed: {error}") from error

    def facts(self, spec: BuildSpec, ended: Ended) -> tuple[tuple[str, str], ...]:
        """What the SPIR-V shows, and what the CPU driver tells about each kernel, by the names of the source."""
        told = kernel_facts(ended, readable(ended.log))
        _, payload = split_output(ended.stdout)
        return (to_fact(from_spirv(payload)), *((name.removeprefix(_ENTRY), value) for name, value in told))


def _libraries() -> str:
    """Folder of the SYCL runtime as pip installed it. Raises NotInstalled."""
    try:
        files = importlib.metadata.files(_DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    found = [os.path.realpath(str(file.locate())) for file in files if file.name == _LIBRARY]
    folder = next((os.path.dirname(path) for path in found if os.path.exists(path)), "")
    if not folder:
        raise NotInstalled("there is no SYCL runtime: pip install 'kfd[sycl]'")
    return folder
