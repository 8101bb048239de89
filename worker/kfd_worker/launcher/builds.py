"""One build job: source in, artifact or diagnostics out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kfd.base.digest import Digest, digest_of
from kfd.base.failure import BadInput
from kfd.base.work import (
    BuildResult,
    BuildSpec,
    Diagnostic,
    Incident,
    IncidentCode,
    Limits,
    Report,
    Stage,
    Stopped,
    Verdict,
    VerdictCode,
)
from kfd.tasks import launchplan, load
from kfd.tasks.launchbind import bind
from kfd.tasks.launchplan import LaunchPlan
from kfd.tasks.spec import TaskSpec
from kfd.tasks.tunables import PlanError
from kfd_worker.launcher.buildcache import BuildCache, key_of
from kfd_worker.launcher.job import Job, boxed, limit_verdict
from kfd_worker.launcher.places import place
from kfd_worker.sandbox.box import Box, BoxLimits, Ended, Mount
from kfd_worker.sandbox.output import readable
from kfd_worker.sandbox.runner import Sandbox
from kfd_worker.toolchains.device_form import tunables_of
from kfd_worker.toolchains.port import SOURCE, Refused, Toolchain, Unusable

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
        plan = _plan(spec, task) if launchplan.in_device_form(spec.toolchain, spec.source) else None
        request = toolchain.request(spec, task, plan)
        folder = job.folder / "source"
        place(folder, spec.kernel_path, spec.source.encode())
    except PlanError as error:
        return Report(outcome=_misplanned(error), detail=BuildResult(diagnostics=_diagnostics(spec, error)))
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
        mounts=(Mount(source=str(folder), target=SOURCE), *request.mounts),
        env=request.env,
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
    report, artifact = _report(job, spec, task, plan, toolchain, ended, ended_log)
    if artifact:
        job.artifact = place(job.folder / "out", "artifact.so", artifact)
    bench.cache.put(key, report, artifact)
    return report


def _plan(spec: BuildSpec, task: TaskSpec) -> LaunchPlan:
    """The source's launch plan, which has values in bounds for every case. Raises PlanError, Refused."""
    plan = launchplan.parse(spec.source, task.parameters, spec.toolchain)
    tunables = tunables_of(spec, plan)
    for case in task.cases:
        bind(plan, dict(case.sizes), tunables, task.limits.memory_bytes)
    return plan


def _misplanned(error: PlanError) -> Verdict:
    return Verdict(code=VerdictCode.COMPILE_ERROR, text=f"launch plan: {error.problems[0]}")


def _diagnostics(spec: BuildSpec, error: PlanError) -> tuple[Diagnostic, ...]:
    return tuple(
        Diagnostic(file=spec.kernel_path, line=one.line, column=0, severity="error", text=f"{one.text}. {one.mend}")
        for one in error.problems
    )


def _report(
    job: Job,
    spec: BuildSpec,
    task: TaskSpec,
    plan: LaunchPlan | None,
    toolchain: Toolchain,
    ended: Ended,
    log: bytes,
) -> tuple[Report, bytes]:
    """What the box's end says, and the artifact; empty when there is none."""
    tail = readable(log, 8 << 10)
    if job.stopping:
        return Report(outcome=Stopped(reason=job.stop_reason), log_tail=tail), b""
    if not ended.started:
        text = f"the build box could not be made: {tail[-400:]}"
        return Report(outcome=Incident(code=IncidentCode.SANDBOX, text=text), log_tail=tail), b""
    messages = toolchain.diagnostics(spec, ended)
    verdict = limit_verdict(ended, "the compiler")
    if verdict is None and ended.code:
        verdict = toolchain.verdict(spec, ended, messages)
        if verdict is None:
            text = f"the compiler cannot be run: it {ended.describe()}"
            return Report(outcome=Incident(code=IncidentCode.TOOLCHAIN, text=text), log_tail=tail), b""
    artifact = b""
    if verdict is None:
        try:
            artifact = toolchain.artifact(spec, task, plan, ended)
        except Unusable as error:
            verdict = Verdict(code=VerdictCode.LOAD_ERROR, text=str(error))
    if verdict is not None:
        return Report(outcome=verdict, detail=BuildResult(diagnostics=messages), log_tail=tail), b""
    facts = (*toolchain.facts(spec, ended), ("build_cpu_ms", str(ended.cpu_ns // 1_000_000)))
    result = BuildResult(artifact=digest_of(artifact), diagnostics=messages, facts=facts)
    return Report(outcome=Verdict(code=VerdictCode.OK), detail=result, log_tail=tail), artifact
