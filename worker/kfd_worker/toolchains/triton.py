"""Toolchain ``triton``: kernels of a Python module compiled ahead of time in the build box, run by trusted code.

The module is imported in the build box alone (``harness/triton_compile.py``). Which kernels are compiled for which
types and numbers follows from the launch plan and the task's interface (``triton_entries.py``). The target
``triton:interpreter`` compiles nothing: its payload is the source, for checks on the CPU without timing.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from kfd.base.digest import digest_of, digest_of_json
from kfd.base.work import BuildSpec, Diagnostic, Verdict, VerdictCode
from kfd.tasks.launchbind import bind
from kfd.tasks.launchplan import LaunchPlan
from kfd.tasks.spec import TaskSpec
from kfd.tasks.tunables import PlanError
from kfd_worker.harness import triton_compile
from kfd_worker.sandbox.box import Ended, Mount
from kfd_worker.sandbox.output import readable
from kfd_worker.toolchains import cubin, package
from kfd_worker.toolchains.device_form import header, tunables_of
from kfd_worker.toolchains.elf import ElfError
from kfd_worker.toolchains.gcc_messages import parse_messages
from kfd_worker.toolchains.port import SOURCE, BuildRequest, NotInstalled, Refused, SelfTest, Unusable
from kfd_worker.toolchains.triton_entries import Job, jobs, split

__all__ = ["CUBIN_KIND", "INTERPRETER", "SOURCE_KIND", "Triton"]

INTERPRETER = "triton:interpreter"

CUBIN_KIND, SOURCE_KIND = "triton-cubin", "triton-source"
"""Payload kinds: compiled kernels behind each other; the module itself, for the interpreter."""

_CAPABILITIES = (80, 86, 89, 90, 100, 120)
_PROGRAM = "/kfd/triton_compile.py"
_ASK_S = 180
_SELF_TEST = """import triton
import triton.language as tl


@triton.jit
def answer(y, n, BLOCK: tl.constexpr):
    j = tl.arange(0, BLOCK)
    tl.store(y + j, j.to(tl.float32) * 2, mask=j < n)
"""


class Triton:
    """The Triton package of the running interpreter."""

    name: str = "triton"

    def __init__(self) -> None:
        self._there = importlib.util.find_spec("triton") is not None
        compiled = tuple(f"triton:sm_{capability}" for capability in _CAPABILITIES)
        # The interpreter computes with numpy, which Triton itself does not bring along.
        interpreted = (INTERPRETER,) if importlib.util.find_spec("numpy") is not None else ()
        self.targets: tuple[str, ...] = (*compiled, *interpreted) if self._there else ()

    def _mounts(self) -> tuple[Mount, ...]:
        """What a build box needs to see besides the system: the interpreter with its packages and the program."""
        prefixes = dict.fromkeys(os.path.realpath(prefix) for prefix in (sys.base_prefix, sys.prefix))
        folders = [prefix for prefix in prefixes if prefix not in ("/usr", "/usr/local")]
        program = os.path.realpath(triton_compile.__file__)
        return (*(Mount(source=one, target=one) for one in folders), Mount(source=program, target=_PROGRAM))

    def self_test(self) -> SelfTest:
        """Compile a small kernel for sm_90. Raises NotInstalled or ValueError."""
        if not self._there:
            raise NotInstalled("Triton is missing: pip install 'kfd[triton]'")
        job = Job(key="answer", name="answer", types=("*fp32", "i64"), constants=(("BLOCK", 64),), warps=1, stages=1)
        with tempfile.TemporaryDirectory(prefix="kfd-triton-") as folder:
            source = Path(folder, "test.py")
            source.write_text(_SELF_TEST)
            program = os.path.realpath(triton_compile.__file__)
            try:
                done = subprocess.run(
                    self._command(program, str(source), "test.py", 90, [job]),
                    capture_output=True,
                    stdin=subprocess.DEVNULL,
                    timeout=_ASK_S,
                    check=False,
                    env={"PATH": "/usr/bin:/bin", "HOME": folder, "TMPDIR": folder, "LANG": "C.UTF-8"},
                )
            except subprocess.TimeoutExpired as error:
                raise ValueError(f"Triton did not compile within {_ASK_S} s") from error
            if done.returncode:
                raise ValueError(f"Triton cannot compile: {readable(done.stderr, 400)}")
            reason = self.missing(done.stdout, ["answer"])
            if reason:
                raise ValueError(f"Triton's output cannot be used: {reason}")
        package = importlib.metadata.distribution("triton")
        # The record holds a digest of every file of the package: compiler, assembler and libraries.
        parts = {
            "version": package.version,
            "record": str(digest_of((package.read_text("RECORD") or "").encode())),
            "python": sys.version,
            "program": str(digest_of(Path(program).read_bytes())),
        }
        return SelfTest(version=f"triton {package.version}", fingerprint=digest_of_json(parts))

    def _command(self, program: str, source: str, shown: str, capability: int, todo: Sequence[Job]) -> list[str]:
        order = {"capability": capability, "shown": shown, "kernels": [job.to_json() for job in todo]}
        return [sys.executable, "-I", program, json.dumps(order, sort_keys=True), source]

    def request(self, spec: BuildSpec, task: TaskSpec, plan: LaunchPlan | None) -> BuildRequest:
        """Import the module in the box and hand its compiled kernels out. Raises Refused."""
        if spec.flags:
            raise Refused("Triton takes no flags; declare numbers in a [TUNE] comment")
        capability = 0 if spec.target == INTERPRETER else int(spec.target.removeprefix("triton:sm_").rstrip("a"))
        todo = self._jobs(spec, task, plan)
        command = self._command(_PROGRAM, f"{SOURCE}/{spec.kernel_path}", spec.kernel_path, capability, todo)
        return BuildRequest(argv=tuple(command), scratch_bytes=512 << 20, mounts=self._mounts())

    def _jobs(self, spec: BuildSpec, task: TaskSpec, plan: LaunchPlan | None) -> tuple[Job, ...]:
        assert plan is not None, "triton is a device-form toolchain"
        chosen = tunables_of(spec, plan)
        try:
            bound = [bind(plan, dict(case.sizes), chosen, task.limits.memory_bytes) for case in task.cases]
        except PlanError as error:
            raise Refused(str(error)) from error
        return jobs(plan, bound, task.parameters)

    def diagnostics(self, spec: BuildSpec, ended: Ended) -> tuple[Diagnostic, ...]:
        """Messages with the box's paths taken out."""
        return parse_messages(
            readable(ended.log), box_path=f"{SOURCE}/{spec.kernel_path}", kernel_path=spec.kernel_path
        )

    def verdict(self, spec: BuildSpec, ended: Ended, messages: Sequence[Diagnostic]) -> Verdict | None:
        """Why the build failed."""
        if ended.code in (126, 127) and not messages:
            return None
        errors = [one for one in messages if "error" in one.severity]
        if not errors:
            return Verdict(code=VerdictCode.COMPILE_ERROR, text=f"the compiler {ended.describe()}")
        where = f"{errors[0].file}:{errors[0].line}: " if errors[0].line else ""
        return Verdict(code=VerdictCode.COMPILE_ERROR, text=f"{where}{errors[0].text}")

    def artifact(self, spec: BuildSpec, task: TaskSpec, plan: LaunchPlan | None, ended: Ended) -> bytes:
        """The package; its entries are the payload's kernels by their keys."""
        assert plan is not None, "triton is a device-form toolchain"
        reason = self.missing(ended.stdout, [job.key for job in self._jobs(spec, task, plan)])
        if reason:
            raise Unusable(reason)
        kind = SOURCE_KIND if spec.target == INTERPRETER else CUBIN_KIND
        made = {
            **header(spec, plan, kind=kind),
            "entries": {one.key: one.to_json() for one in split(ended.stdout)},
        }
        try:
            return package.write(made, ended.stdout)
        except package.PackageError as error:
            raise Unusable(f"the build cannot be packed: {error}") from error

    def facts(self, spec: BuildSpec, ended: Ended) -> tuple[tuple[str, str], ...]:
        """Size, and threads and shared memory of each kernel."""
        try:
            entries = split(ended.stdout)
        except ElfError:
            entries = ()
        told = [(f"triton.{one.key[:100]}", f"threads={one.threads} shared={one.shared}") for one in entries]
        return (("payload_bytes", str(len(ended.stdout))), ("compiler", "triton"), *told)

    def missing(self, payload: bytes, wanted: Sequence[str]) -> str:
        """Why a launch plan cannot start what the payload holds, empty when it can; ``wanted`` are keys."""
        try:
            entries = {one.key: one for one in split(payload)}
            for key in wanted:
                if key not in entries:
                    return f"the payload has no kernel {key}"
                one = entries[key]
                code = payload[one.offset : one.offset + one.size]
                if code[:4] == b"\x7fELF" and one.symbol not in cubin.kernels(code):
                    return f"{one.symbol} is no kernel of its module"
        except ElfError as error:
            return str(error)
        return ""
