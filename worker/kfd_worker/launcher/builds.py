"""One build job: source in, artifact or diagnostics out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kfd.base.digest import Digest, digest_of
from kfd.base.failure import BadInput
from kfd.base.work import (
    BuildResult,
    BuildSpec,
    Incident,
    IncidentCode,
    Limits,
    Report,
    Stage,
    Stopped,
    Verdict,
    VerdictCode,
)
from kfd.tasks import load
from kfd.tasks.signature import c_signature
from kfd.tasks.spec import TaskSpec
from kfd_worker.launcher.buildcache import BuildCache, key_of
from kfd_worker.launcher.job import Job, boxed, limit_verdict
from kfd_worker.launcher.places import place
from kfd_worker.sandbox.box import Box, BoxLimits, Ended, Mount
from kfd_worker.sandbox.output import readable
from kfd_worker.sandbox.runner import Sandbox
from kfd_worker.toolchains.elf import ElfError, exported_symbols
from kfd_worker.toolchains.port import SOURCE, Refused, Toolchain

__all__ = ["Workbench", "build"]

_FILE_BYTES = 512 << 20


@dataclass(frozen=True, slots=True)
class Workbench:
    """What builds are made with on this machine."""

    toolchains: Mapping[str, Toolchain]
    fingerprints: Mapping[str, Digest]
    """Of each toolchain, by its self-test."""
    cache: BuildCache


async def build(job: Job, spec: BuildSpec, limits: Limits, sandbox: Sandbox, bench: Workbench, uid: int) -> Report:
    """Compile in a box, or find what was compiled before. Raises MissingInput, OSError, BoxError."""
    toolchain = bench.toolchains.get(spec.toolchain)
    if toolchain is None or spec.target not in toolchain.targets:
        text = f"this worker does not build {spec.target} with {spec.toolchain}"
        return Report(outcome=Incident(code=IncidentCode.TOOLCHAIN, text=text))
    try:
        task = load(job.inputs.read(spec.task)).spec
        request = toolchain.request(spec)
        folder = job.folder / "source"
        place(folder, spec.kernel_path, spec.source.encode())
    except Refused as error:
        return Report(outcome=Verdict(code=VerdictCode.COMPILE_ERROR, text=str(error)), detail=BuildResult())
    except (BadInput, ValueError) as error:
        return Report(outcome=Incident(code=IncidentCode.REFERENCE, text=f"the task cannot be used: {error}"))
    job.stage(Stage.BUILD)
    key = key_of(spec, limits, bench.fingerprints[spec.toolchain], sandbox.backend)
    known = bench.cache.get(key)
    if known is not None:
        report, artifact = known
        if artifact:
            job.artifact = place(job.folder / "out", "artifact.so", artifact)
        return report
    box = Box(
        name="build",
        argv=request.argv,
        mounts=(Mount(source=str(folder), target=SOURCE),),
        scratch_bytes=request.scratch_bytes,
        uid=uid,
        limits=BoxLimits(
            wall_ns=limits.wall_ns,
            memory_bytes=limits.memory_bytes,
            processes=limits.processes,
            log_bytes=limits.output_bytes,
            stdout_bytes=limits.artifact_bytes,
            file_bytes=_FILE_BYTES,
        ),
    )
    ended = await boxed(job, sandbox, box)
    # Without a sandbox the compiler has seen the host's path; nobody else shall.
    ended_log = ended.log.replace(str(folder).encode(), SOURCE.encode()).replace(f"{SOURCE}/".encode(), b"")
    job.keep_log(ended_log)
    report = _report(job, spec, task, toolchain, ended, ended_log)
    bench.cache.put(key, report, ended.stdout if job.artifact is not None else b"")
    return report


def _report(job: Job, spec: BuildSpec, task: TaskSpec, toolchain: Toolchain, ended: Ended, log: bytes) -> Report:
    tail = readable(log, 8 << 10)
    if job.stopping:
        return Report(outcome=Stopped(reason=job.stop_reason), log_tail=tail)
    if not ended.started:
        text = f"the build box could not be made: {tail[-400:]}"
        return Report(outcome=Incident(code=IncidentCode.SANDBOX, text=text), log_tail=tail)
    messages = toolchain.diagnostics(spec, ended)
    verdict = limit_verdict(ended, "the compiler")
    if verdict is None and ended.code:
        verdict = toolchain.verdict(spec, ended, messages)
        if verdict is None:
            text = f"the compiler cannot be run: it {ended.describe()}"
            return Report(outcome=Incident(code=IncidentCode.TOOLCHAIN, text=text), log_tail=tail)
    if verdict is not None:
        return Report(outcome=verdict, detail=BuildResult(diagnostics=messages), log_tail=tail)
    missing = _unusable(ended.stdout, task)
    if missing:
        verdict = Verdict(code=VerdictCode.LOAD_ERROR, text=missing)
        return Report(outcome=verdict, detail=BuildResult(diagnostics=messages), log_tail=tail)
    artifact = place(job.folder / "out", "artifact.so", ended.stdout)
    job.artifact = artifact
    result = BuildResult(
        artifact=digest_of(ended.stdout), diagnostics=messages, facts=_facts(toolchain, spec, artifact, ended)
    )
    return Report(outcome=Verdict(code=VerdictCode.OK), detail=result, log_tail=tail)


def _facts(toolchain: Toolchain, spec: BuildSpec, artifact: Path, ended: Ended) -> tuple[tuple[str, str], ...]:
    return (*toolchain.facts(spec, artifact), ("build_cpu_ms", str(ended.cpu_ns // 1_000_000)))


def _unusable(library: bytes, task: TaskSpec) -> str:
    """Why the library cannot be loaded, empty when it can."""
    try:
        symbols = exported_symbols(library)
    except ElfError as error:
        return f"the compiler's output is no library: {error}"
    if task.entry not in symbols:
        return f"the kernel does not define {task.entry}; it must define: {c_signature(task)}"
    return ""
