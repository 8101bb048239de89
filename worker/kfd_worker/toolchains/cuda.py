"""Toolchain ``cuda``: device code to a cubin for one architecture, through nvcc or, without it, NVRTC.

A kernel file with a launch plan is device code (DESIGN, section 5, device form): only that is compiled, which costs a
third of a CPU second. One without is host form: a shared object with ``extern "C" int solve(..., void *stream)``, for
what needs calls of the host; nvcc alone can build that. No device is needed for either.
"""

from __future__ import annotations

import ctypes.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kfd.base.digest import digest_of, digest_of_json
from kfd.base.evidence import to_fact
from kfd.base.work import BuildSpec, Diagnostic, Verdict, VerdictCode
from kfd.tasks.launchplan import LaunchPlan
from kfd.tasks.signature import c_signature
from kfd.tasks.spec import TaskSpec
from kfd.tasks.targets import TOOLCHAINS
from kfd_worker.sandbox.box import Ended, Mount
from kfd_worker.sandbox.output import readable
from kfd_worker.toolchains import cubin, nvrtc_compile, package
from kfd_worker.toolchains.compiled import LIST_PTX, from_ptx, from_sass, split_listing
from kfd_worker.toolchains.cuda_places import find_nvrtc, triton_tool
from kfd_worker.toolchains.device_form import header, options_of
from kfd_worker.toolchains.elf import ElfError, exported_symbols
from kfd_worker.toolchains.nvcc_messages import parse_messages
from kfd_worker.toolchains.port import SOURCE, BuildRequest, NotInstalled, Refused, SelfTest, Unusable
from kfd_worker.toolchains.ptxas import as_facts, parse_ptxas, parse_res_usage

__all__ = ["HOST_FORM", "Cuda", "architectures"]

HOST_FORM = "cuda-host"
"""Kind of a host form's artifact."""

_ARCHITECTURE = re.compile(r"sm_\d{2,3}[af]?")
_PATH = "/usr/local/cuda/bin:/usr/local/bin:/usr/bin:/bin"
_BASE = ("-std=c++17", "-O3", "-lineinfo")
_NVCC_ONLY = ("-Xptxas=-v", "-Werror=cross-execution-space-call")
_HOST = ("-shared", "-cudart=static", "-Xcompiler=-fPIC,-fvisibility=default")
_NVRTC_BOX = "/kfd/nvrtc_compile.py"
_ASK_S = 120
_BUILD = (
    'output=$1 compiler=$2; shift 2; "$compiler" "$@" -o "$output" --keep --keep-dir /scratch 1>&2 || exit $?; '
    f'{LIST_PTX}; exec cat "$output"'
)
_SELF_TEST = (
    'extern "C" __global__ void answer(float *y, long long n) { if (threadIdx.x < n) y[threadIdx.x] = 42.0f; }\n'
)
_MEMORY_WORDS = ("out of memory", "virtual memory exhausted", "cannot allocate memory", "killed signal terminated")
_DISK_WORDS = ("no space left on device", "file too large", "file size limit exceeded")
_RESOURCE_WORDS = ("uses too much shared data", "uses too much local data", "too many resources")


def architectures(listed: str) -> tuple[str, ...]:
    """Targets from ``nvcc --list-gpu-code``, with the architecture-specific variants from sm_90 on."""
    found = [name for name in listed.split() if re.fullmatch(r"sm_\d{2,3}", name)]
    made = []
    for name in dict.fromkeys(found):
        made.append(f"cuda:{name}")
        if int(name[3:]) >= 90:
            made.append(f"cuda:{name}a")
    return tuple(made[:64])


class Cuda:
    """nvcc, or NVRTC when there is none. ``search`` is the PATH in which nvcc and cuobjdump are looked for."""

    name: str = "cuda"

    def __init__(self, *, search: str = _PATH, nvrtc: str = "") -> None:
        self._search = search
        self._nvcc = shutil.which("nvcc", path=search) or ""
        self._nvrtc = "" if self._nvcc else nvrtc or find_nvrtc()
        self._cuobjdump = shutil.which("cuobjdump", path=search) or triton_tool("cuobjdump")
        self.targets: tuple[str, ...] = self._targets()

    def _mounts(self) -> tuple[Mount, ...]:
        """What a build box needs to see besides the system: nothing for nvcc, the library and its caller for NVRTC."""
        if not self._nvrtc:
            return ()
        folder = os.path.dirname(os.path.realpath(self._nvrtc))
        program = os.path.realpath(str(nvrtc_compile.__file__))
        prefix = os.path.realpath(sys.base_prefix)
        mounts = (Mount(source=folder, target=folder), Mount(source=program, target=_NVRTC_BOX))
        # An interpreter outside the system's folders has to be brought along.
        return mounts if prefix.startswith("/usr") else (*mounts, Mount(source=prefix, target=prefix))

    def _targets(self) -> tuple[str, ...]:
        if self._nvcc:
            return architectures(self._text("--list-gpu-code"))
        if not self._nvrtc:
            return ()
        library = ctypes.CDLL(self._nvrtc)
        count = ctypes.c_int()
        library.nvrtcGetNumSupportedArchs(ctypes.byref(count))
        numbers = (ctypes.c_int * max(1, count.value))()
        library.nvrtcGetSupportedArchs(numbers)
        return architectures(" ".join(f"sm_{number}" for number in numbers[: count.value]))

    # Self-test.

    def self_test(self) -> SelfTest:
        """Compile a small kernel; version and fingerprint. Raises NotInstalled or ValueError."""
        if not self.targets:
            raise NotInstalled(
                "neither nvcc nor libnvrtc is there: install the CUDA toolkit or pip install nvidia-cuda-nvrtc"
            )
        with tempfile.TemporaryDirectory(prefix="kfd-cuda-") as folder:
            source = Path(folder, "test.cu")
            source.write_text(_SELF_TEST)
            target = "cuda:sm_90" if "cuda:sm_90" in self.targets else self.targets[0]
            done = self._ask(self._command(str(source), "test.cu", target, f"{folder}/test.cubin", _BASE))
            made = Path(folder, "test.cubin").read_bytes() if self._nvcc and done.returncode == 0 else done.stdout
            try:
                fine = done.returncode == 0 and cubin.kernels(made) == {"answer"}
            except ElfError:
                fine = False
            if not fine:
                raise ValueError(f"CUDA code cannot be compiled: {readable(done.stderr + done.stdout, 400)}")
        version, parts = self._version()
        fingerprint = digest_of_json({**parts, "flags": [*_BASE, *_NVCC_ONLY, *_HOST]})
        return SelfTest(version=version, fingerprint=fingerprint)

    def _version(self) -> tuple[str, dict[str, str]]:
        if not self._nvcc:
            library = ctypes.CDLL(self._nvrtc)
            major, minor = ctypes.c_int(), ctypes.c_int()
            library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
            # A patch release keeps its number; its bytes it does not.
            parts = {"nvrtc": str(digest_of(Path(self._nvrtc).read_bytes()))}
            return f"nvrtc {major.value}.{minor.value}", parts
        build = self._text("--version").strip().split("\n")[-1]
        folder = os.path.dirname(os.path.realpath(self._nvcc))
        tools = {}
        for tool in ("ptxas", "cudafe++", "fatbinary", "../nvvm/bin/cicc", "nvcc.profile"):
            path = Path(folder, tool)
            if path.is_file():
                tools[tool] = str(digest_of(path.read_bytes()))
        host = self._ask(["g++", "--version"]).stdout.decode("utf-8", "replace").split("\n")[0]
        return f"nvcc {build.removeprefix('Build ')}", {"nvcc": build, "host": host, **tools}

    def _ask(self, command: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
        try:
            return subprocess.run(
                command,
                capture_output=True,
                stdin=subprocess.DEVNULL,
                timeout=_ASK_S,
                check=False,
                env={"PATH": self._search, "LANG": "C"},
            )
        except subprocess.TimeoutExpired as error:
            raise ValueError(f"{command[0]} did not answer within {_ASK_S} s") from error

    def _text(self, *arguments: str) -> str:
        return self._ask([self._nvcc, *arguments]).stdout.decode("utf-8", "replace").strip()

    # Builds.

    def request(self, spec: BuildSpec, task: TaskSpec, plan: LaunchPlan | None) -> BuildRequest:
        """Compile in the box and hand the cubin, or the host form's library, out. Raises Refused."""
        flags = [*_BASE, *(options_of(spec, plan) if plan is not None else _host_options(spec))]
        source = f"{SOURCE}/{spec.kernel_path}"
        if self._nvcc:
            command = self._command(source, spec.kernel_path, spec.target, "", flags, host=plan is None)
            argv = ("/bin/sh", "-c", _BUILD, "kfd-build", "/scratch/kernel.out", *command)
        elif plan is None:
            raise Refused("the host form of CUDA needs nvcc, which this worker has not; write a launch plan")
        else:
            argv = tuple(self._command(source, spec.kernel_path, spec.target, "", flags, program=_NVRTC_BOX))
        return BuildRequest(argv=argv, scratch_bytes=512 << 20, mounts=self._mounts())

    def _command(
        self,
        source: str,
        shown: str,
        target: str,
        output: str,
        flags: Sequence[str],
        *,
        host: bool = False,
        program: str = "",
    ) -> list[str]:
        architecture = target.removeprefix("cuda:")
        if not _ARCHITECTURE.fullmatch(architecture):
            raise Refused(f"{target[:40]} is no CUDA target; write cuda:sm_90 or the like")
        if not self._nvcc:
            program = program or os.path.realpath(str(nvrtc_compile.__file__))
            # NVRTC optimises always and calls some flags otherwise.
            fit = [flag for flag in flags if not re.fullmatch(r"-O[0-3]", flag)]
            return [
                os.path.realpath(sys.executable),
                "-I",
                "-S",
                program,
                self._nvrtc,
                architecture,
                source,
                shown,
                *fit,
            ]
        virtual = architecture.replace("sm_", "compute_")
        stage = _HOST if host else ("-cubin",)
        command = [self._nvcc, *stage, f"-gencode=arch={virtual},code={architecture}", *flags, *_NVCC_ONLY, source]
        return [*command, "-o", output] if output else command

    def diagnostics(self, spec: BuildSpec, ended: Ended) -> tuple[Diagnostic, ...]:
        """Messages with the box's paths taken out."""
        return parse_messages(
            readable(ended.log), box_path=f"{SOURCE}/{spec.kernel_path}", kernel_path=spec.kernel_path
        )

    def verdict(self, spec: BuildSpec, ended: Ended, messages: Sequence[Diagnostic]) -> Verdict | None:
        """Why the compiler failed."""
        text = readable(ended.log).lower()
        if ended.code in (126, 127) and not [one for one in messages if one.line]:
            return None
        if any(word in text for word in _MEMORY_WORDS):
            return Verdict(code=VerdictCode.RESOURCE_LIMIT, text="the compiler ran out of memory")
        if any(word in text for word in _DISK_WORDS):
            return Verdict(code=VerdictCode.RESOURCE_LIMIT, text="the compiler's output is too large")
        errors = [one for one in messages if "error" in one.severity]
        if not errors:
            return Verdict(code=VerdictCode.COMPILE_ERROR, text=f"the compiler {ended.describe()}")
        first = errors[0]
        where = f"{first.file}:{first.line}: " if first.line else ""
        code = VerdictCode.COMPILE_ERROR
        if any(word in first.text for word in _RESOURCE_WORDS):
            code = VerdictCode.RESOURCE_LIMIT
        return Verdict(code=code, text=f"{where}{first.text}")

    # What came out.

    def artifact(self, spec: BuildSpec, task: TaskSpec, plan: LaunchPlan | None, ended: Ended) -> bytes:
        """The package, once the payload is seen to hold what will be started."""
        made: Mapping[str, Any]
        _, payload = split_listing(ended.stdout)
        if plan is None:
            made = _host_header(spec, task, payload)
        else:
            reason = self.missing(payload, [launch.kernel for launch in plan.launches])
            if reason:
                raise Unusable(reason)
            made = header(spec, plan, kind="cubin")
        try:
            return package.write(made, payload)
        except package.PackageError as error:
            raise Unusable(f"the build cannot be packed: {error}") from error

    def facts(self, spec: BuildSpec, ended: Ended) -> tuple[tuple[str, str], ...]:
        """Size, compiler, what the PTX shows, and each kernel's resources: as ptxas told them, else ``cuobjdump``."""
        listing, payload = split_listing(ended.stdout)
        found = [("payload_bytes", str(len(payload))), ("compiler", "nvcc" if self._nvcc else "nvrtc")]
        if listing:
            found.append(to_fact(from_ptx(listing)))
        elif self._cuobjdump:
            found.append(to_fact(from_sass(self._dump("-sass", payload))))
        told = parse_ptxas(readable(ended.log))
        if not told and self._cuobjdump:
            told = parse_res_usage(self._dump("-res-usage", payload))
        return (*found, *as_facts(told))

    def _dump(self, what: str, payload: bytes) -> str:
        """What ``cuobjdump`` prints of device code."""
        with tempfile.NamedTemporaryFile(prefix="kfd-cuda-", suffix=".cubin") as file:
            file.write(payload)
            file.flush()
            done = self._ask([self._cuobjdump, what, file.name])
        return (done.stdout + done.stderr).decode("utf-8", "replace")

    def missing(self, payload: bytes, wanted: Sequence[str]) -> str:
        """Why a launch plan cannot start what the payload holds, empty when it can."""
        try:
            offered = cubin.kernels(payload)
        except ElfError as error:
            return f"the compiler's output is no device code: {error}"
        absent = [name for name in wanted if name not in offered]
        if not absent:
            return ""
        there = ", ".join(sorted(offered)[:8]) or "none"
        mend = f'declare it `extern "C" __global__ void {absent[0]}(...)`'
        return f"the launch plan starts {absent[0]}, which is no kernel of the file (there are: {there}); {mend}"


def _host_options(spec: BuildSpec) -> list[str]:
    allowed = TOOLCHAINS["cuda"].flag
    made = [*spec.flags, *(f"-D{name}={value}" for name, value in spec.defines)]
    for option in made:
        if not allowed.fullmatch(option):
            raise Refused(f"the flag {option[:80]!r} is not allowed")
    return made


def _host_header(spec: BuildSpec, task: TaskSpec, library: bytes) -> dict[str, object]:
    try:
        symbols = exported_symbols(library)
    except ElfError as error:
        raise Unusable(f"the compiler's output is no library: {error}") from error
    if task.entry not in symbols:
        raise Unusable(f"the kernel does not define {task.entry}; it must define: {c_signature(task)}")
    abi = {"kind": HOST_FORM, "toolchain": spec.toolchain, "target": spec.target, "runtime": "", "device": ""}
    return {"abi": abi, "plan": {}, "tunables": {}, "entries": {"entry": task.entry}, "options": []}
