"""Toolchain ``opencl``: OpenCL C in device form, built by a driver or, for Intel's GPUs, by ``ocloc``.

``opencl:cpu`` gives the CPU driver's binary. ``opencl:gpu`` gives the source, checked by the CPU driver: only the
driver of the device itself can finish it, in the run box and before anything is timed. ``opencl:NAME`` gives a binary
for the Intel GPU that ``ocloc`` calls NAME; no device is needed to build it.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from kfd.base.digest import digest_of, digest_of_json
from kfd.base.work import BuildSpec, Diagnostic, Verdict, VerdictCode
from kfd.tasks.launchplan import LaunchPlan
from kfd.tasks.spec import TaskSpec
from kfd.tasks.targets import TOOLCHAINS
from kfd_worker.devices.opencl import Runtime, find_runtime, probe, runtime_name
from kfd_worker.harness import opencl_api, opencl_compile
from kfd_worker.launcher.places import base_interpreter, interpreter_mounts
from kfd_worker.sandbox.box import Ended, Mount
from kfd_worker.sandbox.output import readable
from kfd_worker.toolchains import package
from kfd_worker.toolchains.clang_messages import errors_of, parse_clang
from kfd_worker.toolchains.device_form import header, launches, options_of, split_output
from kfd_worker.toolchains.port import SOURCE, BuildRequest, NotInstalled, SelfTest, Unusable

__all__ = ["COMPILE", "OpenCL", "compile_mounts", "failure", "kernel_facts"]

COMPILE = "/kfd/opencl_compile.py"
_ARGUMENT_INFO = "-cl-kernel-arg-info"
_OCLOC = "ocloc"
_OCLOC_S = 60
_SCRATCH_BYTES = 512 << 20
_TEST = "kernel void test(global float *x) { x[get_global_id(0)] *= 2.0f; }\n"
_OCLOC_BUILD = (
    'ocloc=$1 source=$2 device=$3 options=$4; shift 4; if [ $# -gt 0 ]; then "$@" >/dev/null || exit $?; fi; '
    '"$ocloc" compile -file "$source" -device "$device" -options "$options" -out_dir /scratch -output kernel '
    "-output_no_suffix 1>&2 || exit 1; echo {}; exec cat /scratch/kernel"
)
_MEMORY_WORDS = ("out of memory", "bad_alloc", "out_of_host_memory", "cannot allocate memory")
_VECTORIZED = re.compile(r'^Kernel "(\w{1,64})" was successfully vectorized \((\d{1,3})\)$', re.M)


def compile_mounts() -> tuple[Mount, ...]:
    """The compile program and what it needs beside the runtime."""
    return (
        *interpreter_mounts(packages=False),
        Mount(source=str(Path(opencl_compile.__file__).resolve()), target=COMPILE),
        Mount(source=str(Path(opencl_api.__file__).resolve()), target="/kfd/opencl_api.py"),
    )


def failure(ended: Ended, messages: Sequence[Diagnostic]) -> Verdict | None:
    """Why a build failed; None when there is no device or no program, which is no fault of the source."""
    text = readable(ended.log).lower()
    if not messages and (ended.code in (126, 127, opencl_compile.NO_DEVICE)):
        return None
    if any(word in text for word in _MEMORY_WORDS):
        return Verdict(code=VerdictCode.RESOURCE_LIMIT, text="the compiler ran out of memory")
    said = errors_of(list(messages))
    return Verdict(code=VerdictCode.COMPILE_ERROR, text=said or f"the compiler {ended.describe()}")


def kernel_facts(ended: Ended, log: str) -> tuple[tuple[str, str], ...]:
    """What the driver told about each kernel: memory, spills, vector width."""
    told, payload = split_output(ended.stdout)
    widths = [(f"{name}.vector_width", width) for name, width in _VECTORIZED.findall(log)[:16]]
    return (*sorted(told.items()), *widths, ("payload_bytes", str(len(payload))))


class OpenCL:
    """OpenCL C for the CPU, any GPU with a driver, and Intel GPUs that are not here."""

    name: str = "opencl"

    def __init__(self, folder: Path) -> None:
        self.targets: tuple[str, ...] = ()
        self._folder = folder
        self._runtime: Runtime | None = None
        self._device: Mapping[str, str] = {}
        self._ocloc = shutil.which(_OCLOC, path="/usr/local/bin:/usr/bin:/bin") or ""

    def self_test(self) -> SelfTest:
        """Build and run a kernel on the CPU; build one for every Intel GPU that ``ocloc`` knows."""
        empty = self._folder / "empty"
        empty.mkdir(parents=True, exist_ok=True)
        empty.chmod(0o755)
        missing = ""
        try:
            self._runtime = find_runtime(self._folder)
            self._device = probe(self._runtime, "cpu")
        except NotInstalled as error:
            missing = str(error)
        offline = self._offline() if self._ocloc else {}
        if self._runtime is None and not offline:
            raise NotInstalled(missing)
        near = ("opencl:cpu", "opencl:gpu") if self._runtime is not None else ()
        self.targets = (*near, *(f"opencl:{name}" for name in offline))
        names = [self._runtime.name] if self._runtime is not None else []
        fingerprint = digest_of_json({"device": dict(self._device), "runtime": names, "ocloc": offline})
        return SelfTest(version=", ".join([*names, *([_OCLOC] if offline else [])]), fingerprint=fingerprint)

    def _offline(self) -> dict[str, str]:
        """Digest of a small kernel's binary for each Intel GPU: its compiler's fingerprint, since it has no version."""
        found: dict[str, str] = {}
        wanted = [target.partition(":")[2] for target in TOOLCHAINS["opencl"].targets[2:]]
        with tempfile.TemporaryDirectory(prefix="kfd-ocloc-") as folder:
            Path(folder, "test.cl").write_text(_TEST)
            for name in wanted:
                command = [self._ocloc, "compile", "-file", f"{folder}/test.cl", "-device", name, "-out_dir", folder]
                try:
                    done = subprocess.run(
                        [*command, "-output", "test", "-output_no_suffix"],
                        capture_output=True,
                        stdin=subprocess.DEVNULL,
                        timeout=_OCLOC_S,
                        check=False,
                        env={"PATH": "/usr/bin:/bin", "LANG": "C", "HOME": folder},
                    )
                except subprocess.TimeoutExpired:
                    continue
                if done.returncode == 0:
                    found[name] = digest_of(Path(folder, "test").read_bytes()).hash
        return found

    def request(self, spec: BuildSpec, task: TaskSpec, plan: LaunchPlan | None) -> BuildRequest:
        """Let the driver compile and compare with the plan; for an Intel GPU let ``ocloc`` compile after that."""
        assert plan is not None, "opencl is a device-form toolchain"
        options = " ".join(options_of(spec, plan))
        source = f"{SOURCE}/{spec.kernel_path}"
        argv: tuple[str, ...] = ()
        mounts: tuple[Mount, ...] = ()
        env: tuple[tuple[str, str], ...] = ()
        if self._runtime is not None:
            order = {
                "loader": self._runtime.loader,
                "device": "cpu",
                "source": source,
                "options": f"{_ARGUMENT_INFO} {options}",
                "launches": launches(plan, str),
                "give": "binary" if spec.target == "opencl:cpu" else "source",
            }
            argv = (base_interpreter(), "-I", "-S", "-B", COMPILE, json.dumps(order))
            mounts = (*compile_mounts(), *self._runtime.mounts(self._folder / "empty"))
            env = self._runtime.environment()
        if spec.target not in ("opencl:cpu", "opencl:gpu"):
            device = spec.target.partition(":")[2]
            argv = ("/bin/sh", "-c", _OCLOC_BUILD, "kfd-build", self._ocloc, source, device, options, *argv)
        return BuildRequest(argv=argv, scratch_bytes=_SCRATCH_BYTES, mounts=mounts, env=env)

    def diagnostics(self, spec: BuildSpec, ended: Ended) -> tuple[Diagnostic, ...]:
        """Messages with the source under its own name."""
        box_path = f"{SOURCE}/{spec.kernel_path}"
        return parse_clang(readable(ended.log), box_path=box_path, kernel_path=spec.kernel_path)

    def verdict(self, spec: BuildSpec, ended: Ended, messages: Sequence[Diagnostic]) -> Verdict | None:
        """Why the driver or ``ocloc`` failed."""
        return failure(ended, messages)

    def artifact(self, spec: BuildSpec, task: TaskSpec, plan: LaunchPlan | None, ended: Ended) -> bytes:
        """The package."""
        assert plan is not None, "opencl is a device-form toolchain"
        _, payload = split_output(ended.stdout)
        if spec.target == "opencl:cpu":
            # The driver's machine code: for this driver on this processor.
            runtime, device = runtime_name(self._device), self._device["device"]
            made = header(spec, plan, kind="opencl-binary", runtime=runtime, device=device)
        elif spec.target == "opencl:gpu":
            made = header(spec, plan, kind="opencl-source", options=options_of(spec, plan))
        else:
            made = header(spec, plan, kind="opencl-binary", device=spec.target.partition(":")[2])
        try:
            return package.write(made, payload)
        except package.PackageError as error:
            raise Unusable(f"the build cannot be packed: {error}") from error

    def facts(self, spec: BuildSpec, ended: Ended) -> tuple[tuple[str, str], ...]:
        """What the driver tells about each kernel."""
        return kernel_facts(ended, readable(ended.log))
