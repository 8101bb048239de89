"""Toolchain ``cpp``: host C++ through g++, called by its C ABI (DESIGN, section 5, host form)."""

from __future__ import annotations

import platform
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from kfd.base.digest import digest_of_json
from kfd.base.evidence import to_fact
from kfd.base.work import BuildSpec, Diagnostic, Verdict, VerdictCode
from kfd.tasks.launchplan import LaunchPlan
from kfd.tasks.signature import c_signature
from kfd.tasks.spec import TaskSpec
from kfd.tasks.targets import TOOLCHAINS
from kfd_worker.devices.cpu import cpu_flags, host_runtime
from kfd_worker.sandbox.box import Ended
from kfd_worker.sandbox.output import readable
from kfd_worker.toolchains import package
from kfd_worker.toolchains.compiled import LIST_X86, from_objdump, split_listing
from kfd_worker.toolchains.elf import ElfError, exported_symbols
from kfd_worker.toolchains.gcc_messages import parse_messages
from kfd_worker.toolchains.port import SOURCE, BuildRequest, Refused, SelfTest, Unusable

__all__ = ["BASE_FLAGS", "Cpp"]

BASE_FLAGS = ("-std=c++17", "-O3", "-march=native", "-fopenmp", "-fPIC", "-fvisibility=default")
"""Flags of every compilation; a task's own come after and so win."""

_LINK_FLAGS = ("-shared", "-fopenmp", "-Wl,-z,now", "-Wl,-z,noexecstack")
"""Never the compile flags: linking with fast-math puts code into the library that flushes denormals to zero
for every thread of the process that loads it."""

_FIXED = (
    "-fdiagnostics-color=never",
    "-fno-diagnostics-show-caret",
    "-fmessage-length=0",
    "-fmax-errors=20",
    "-ftemplate-backtrace-limit=4",
)

_BUILD = (
    "object=$1 library=$2 source=$3 compiler=$4; shift 4; "
    '"$compiler" "$@" -c -o "$object" "$source" 1>&2 || exit $?; '
    f'"$compiler" {" ".join(_LINK_FLAGS)} -o "$library" "$object" 1>&2 || exit $?; '
    f'{LIST_X86}; exec cat "$library"'
)

_SELF_TEST = """
extern "C" int answer(int n) {
    int s = 0;
    #pragma omp simd reduction(+ : s)
    for (int i = 0; i < n; ++i) s += i;
    return s;
}
"""
_SELF_TEST_S = 60

_MEMORY_WORDS = (
    "out of memory",
    "virtual memory exhausted",
    "cannot allocate memory",
    "killed signal terminated program",
)
_DISK_WORDS = ("no space left on device", "file too large", "file size limit exceeded")


class Cpp:
    """g++ for the machine it runs on."""

    name: str = "cpp"
    targets: tuple[str, ...] = ("cpp:native",)

    def __init__(self, compiler: str = "g++") -> None:
        self._compiler = shutil.which(compiler, path="/usr/local/bin:/usr/bin:/bin") or ""

    def self_test(self) -> SelfTest:
        """Compile and link a small library; its version and fingerprint."""
        if not self._compiler:
            raise ValueError("g++ is missing: install it (apt install g++)")
        with tempfile.TemporaryDirectory(prefix="kfd-cpp-") as folder:
            source = Path(folder, "test.cpp")
            source.write_text(_SELF_TEST)
            command = [self._compiler, *BASE_FLAGS, *_FIXED, "-shared", "-o", f"{folder}/test.so", str(source)]
            done = self._ask(command)
            if done.returncode != 0 or not Path(folder, "test.so").stat().st_size:
                raise ValueError(f"g++ cannot build a library: {readable(done.stdout + done.stderr, 400)}")
        version = self._text("-dumpfullversion")
        # -march=native is what it resolves to here, not its name: two machines' artifacts are not one.
        resolved = self._text(*BASE_FLAGS, "-Q", "--help=target")
        parts = {name: self._text(f"-print-prog-name={name}") for name in ("cc1plus", "as", "ld")}
        assembler, linker = (
            self._ask([parts[name], "--version"]).stdout.decode("utf-8", "replace").split("\n")[0]
            for name in ("as", "ld")
        )
        fingerprint = digest_of_json(
            {
                "compiler": self._text("--version").split("\n")[0],
                "version": version,
                "machine": self._text("-dumpmachine"),
                "target": resolved,
                "assembler": assembler,
                "linker": linker,
                "libc": "-".join(platform.libc_ver()),
                "flags": [*BASE_FLAGS, *_FIXED, *_LINK_FLAGS],
            }
        )
        return SelfTest(version=f"g++ {version}", fingerprint=fingerprint)

    def _ask(self, command: list[str]) -> subprocess.CompletedProcess[bytes]:
        try:
            return subprocess.run(
                command,
                capture_output=True,
                stdin=subprocess.DEVNULL,
                timeout=_SELF_TEST_S,
                check=False,
                env={"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C"},
            )
        except subprocess.TimeoutExpired as error:
            raise ValueError(f"{command[0]} did not answer within {_SELF_TEST_S} s") from error

    def _text(self, *arguments: str) -> str:
        return self._ask([self._compiler, *arguments]).stdout.decode("utf-8", "replace").strip()

    def request(self, spec: BuildSpec, task: TaskSpec, plan: LaunchPlan | None) -> BuildRequest:
        """Compile to an object, link it without the user's flags, hand the library out."""
        allowed = TOOLCHAINS["cpp"].flag
        for flag in spec.flags:
            if not allowed.fullmatch(flag):
                raise Refused(f"the flag {flag[:80]!r} is not allowed")
        defines = []
        for name, value in spec.defines:
            define = f"-D{name}={value}"
            if not allowed.fullmatch(define):
                raise Refused(f"the definition {define[:80]!r} is not allowed")
            defines.append(define)
        source = f"{SOURCE}/{spec.kernel_path}"
        flags = (*BASE_FLAGS, *spec.flags, *defines, *_FIXED)
        return BuildRequest(
            argv=(
                "/bin/sh",
                "-c",
                _BUILD,
                "kfd-build",
                "/scratch/kernel.o",
                "/scratch/kernel.so",
                source,
                self._compiler,
                *flags,
            ),
            scratch_bytes=512 << 20,
        )

    def diagnostics(self, spec: BuildSpec, ended: Ended) -> tuple[Diagnostic, ...]:
        """Messages with the box's paths taken out."""
        return parse_messages(
            readable(ended.log), box_path=f"{SOURCE}/{spec.kernel_path}", kernel_path=spec.kernel_path
        )

    def verdict(self, spec: BuildSpec, ended: Ended, messages: Sequence[Diagnostic]) -> Verdict | None:
        """Why g++ failed."""
        text = readable(ended.log).lower()
        if ended.code in (126, 127) and not messages:
            return None
        if any(word in text for word in _MEMORY_WORDS):
            return Verdict(code=VerdictCode.RESOURCE_LIMIT, text="the compiler ran out of memory")
        if any(word in text for word in _DISK_WORDS):
            return Verdict(code=VerdictCode.RESOURCE_LIMIT, text="the compiler's output is too large")
        errors = [one for one in messages if "error" in one.severity]
        if errors:
            first = errors[0]
            where = f"{first.file}:{first.line}: " if first.line else ""
            return Verdict(code=VerdictCode.COMPILE_ERROR, text=f"{where}{first.text}")
        return Verdict(code=VerdictCode.COMPILE_ERROR, text=f"the compiler {ended.describe()}")

    def artifact(self, spec: BuildSpec, task: TaskSpec, plan: LaunchPlan | None, ended: Ended) -> bytes:
        """The library, once it is seen to offer the entry function."""
        _, library = split_listing(ended.stdout)
        try:
            symbols = exported_symbols(library)
        except ElfError as error:
            raise Unusable(f"the compiler's output is no library: {error}") from error
        if task.entry not in symbols:
            raise Unusable(f"the kernel does not define {task.entry}; it must define: {c_signature(task)}")
        abi = {
            "kind": "host-so",
            "toolchain": spec.toolchain,
            "target": spec.target,
            "runtime": host_runtime(),
            "device": "",
            # -march=native: it runs where these instructions are.
            "features": " ".join(sorted(cpu_flags())),
        }
        made = {"abi": abi, "plan": {}, "tunables": {}, "entries": {"entry": task.entry}, "options": []}
        return package.write(made, library)

    def facts(self, spec: BuildSpec, ended: Ended) -> tuple[tuple[str, str], ...]:
        """Size, compiler, and what the machine code shows."""
        listing, library = split_listing(ended.stdout)
        found = (("artifact_bytes", str(len(library))), ("compiler", Path(self._compiler).name))
        return (*found, to_fact(from_objdump(listing)))
