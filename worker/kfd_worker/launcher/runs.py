"""One run job: boxes for the candidate and the initial kernel, the judge between them."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kfd.base.codec import decode, encode
from kfd.base.instant import MILLISECOND, SECOND
from kfd.base.work import (
    CANDIDATE,
    INCUMBENT,
    INITIAL,
    AdmitResult,
    AdmitSpec,
    Incident,
    IncidentCode,
    Limits,
    Report,
    RunResult,
    RunSpec,
    Stage,
    Stopped,
    Verdict,
    VerdictCode,
)
from kfd_worker.devices.port import Device
from kfd_worker.launcher.admissions import Admissions
from kfd_worker.launcher.gpu_watch import watched
from kfd_worker.launcher.harnesses import Harness, Unfit, fitting
from kfd_worker.launcher.job import Job, limit_verdict
from kfd_worker.launcher.judges import JudgeDied, JudgeProcess
from kfd_worker.launcher.places import (
    base_interpreter,
    interpreter_mounts,
    package_masks,
    place,
    thread_environment,
)
from kfd_worker.launcher.warden import Warden
from kfd_worker.sandbox.box import Box, BoxError, BoxLimits, Ended, Limit, Mount
from kfd_worker.sandbox.output import readable
from kfd_worker.sandbox.runner import RunningBox, Sandbox

__all__ = ["RunSlot", "prove", "run"]

_PAYLOAD = "/job/kernel"
_SILENCE_S = 60.0
_LAST_WORDS_S = 1.0
_FAREWELL_S = 0.2
_STOP_S = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSlot:
    """What one run slot consists of."""

    judge: JudgeProcess
    admissions: Admissions
    uids: tuple[int, int, int]
    """Users of the boxes: the candidate's, the initial kernel's, the incumbent's."""
    threads: int
    cpus: tuple[int, ...]
    harnesses: tuple[Harness, ...]
    """What runs artifacts on the slot's device."""
    device: Device
    """What the slot stands for: its name and facts go into every result."""
    gpu: str = ""
    """UUID of an NVIDIA device; empty for the processor."""


@dataclass(frozen=True, slots=True)
class _Side:
    """One kernel of a run: what runs it, what its package says, and where its payload lies."""

    harness: Harness
    header: Mapping[str, Any]
    payload: Path


async def run(job: Job, spec: RunSpec, limits: Limits, sandbox: Sandbox, slot: RunSlot) -> Report:
    """Check and measure. Raises MissingInput, OSError, BoxError; everything else is in the report."""
    job.stage(Stage.FETCH)
    task = place(job.folder, "task.tar", job.inputs.read(spec.task))
    wanted = {CANDIDATE: spec.artifact, INITIAL: spec.initial_artifact, INCUMBENT: spec.incumbent_artifact}
    sides: dict[str, _Side] = {}
    try:
        for name, digest in wanted.items():
            if digest is not None:
                harness, header, payload = fitting(job.inputs.read(digest), slot.harnesses)
                sides[name] = _Side(harness, header, place(job.folder / name, "kernel", payload, 0o555))
    except Unfit as error:
        return Report(outcome=Incident(code=IncidentCode.TOOLCHAIN, text=str(error)))
    async with slot.judge.lock:
        if job.stopped():
            return Report(outcome=Stopped(reason=job.stop_reason))
        try:
            await slot.judge.start()
            work = functools.partial(_judged, job, spec, limits, sandbox, slot, task, sides)
            return await (watched(slot.gpu, work) if slot.gpu else work())
        except (JudgeDied, BoxError) as error:
            return await _without_judge(job, slot, error)


async def prove(job: Job, spec: AdmitSpec, limits: Limits, slot: RunSlot) -> Report:
    """Prove a task: the judge alone, no candidate. Raises MissingInput, OSError; everything else is in the report."""
    job.stage(Stage.FETCH)
    task = place(job.folder, "task.tar", job.inputs.read(spec.task))
    async with slot.judge.lock:
        if job.stopped():
            return Report(outcome=Stopped(reason=job.stop_reason))
        job.stage(Stage.CHECK)
        try:
            await slot.judge.start()
            order = {"type": "admit", "spec": encode(spec)}
            done = await _wait(job, slot.judge, order, task, [], limits)
        except (JudgeDied, BoxError) as error:
            return await _without_judge(job, slot, error)
    if job.stopped():
        return Report(outcome=Stopped(reason=job.stop_reason))
    if isinstance(done.get("admission"), dict):
        slot.admissions.put(spec.task, done["admission"])
    detail = None if done["result"] is None else decode(AdmitResult, done["result"])
    return Report(outcome=_outcome(done["outcome"]), detail=detail, environment=_environment(done))


async def _without_judge(job: Job, slot: RunSlot, error: JudgeDied | BoxError) -> Report:
    """A judge that died or hung is ended; the next job starts another."""
    last = await slot.judge.kill()
    if job.stopped():
        return Report(outcome=Stopped(reason=job.stop_reason))
    code = IncidentCode.SANDBOX if isinstance(error, BoxError) else IncidentCode.INTERNAL
    return Report(outcome=Incident(code=code, text=f"{error}: {last[-400:]}"), log_tail=last)


def _environment(done: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((str(name), str(value)) for name, value in done["environment"])


async def _judged(
    job: Job,
    spec: RunSpec,
    limits: Limits,
    sandbox: Sandbox,
    slot: RunSlot,
    task: Path,
    sides: dict[str, _Side],
) -> Report:
    sockets: list[socket.socket] = []
    boxes: list[RunningBox] = []
    warden: Warden | None = None
    patience_s = 0.0
    try:
        for side, uid in zip(sides.values(), slot.uids, strict=False):
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            sockets.append(ours)
            with theirs:
                boxes.append(job.start(sandbox, _run_box(side, theirs.fileno(), limits, uid, slot)))
        order = {
            "type": "run",
            "spec": encode(spec),
            "limits": encode(limits),
            "ran": True,
            "admission": slot.admissions.get(spec.task),
            # Without a sandbox the child sees the host's own path.
            "sides": [
                [name, str(side.payload) if sandbox.backend == "plain" else _PAYLOAD, side.header]
                for name, side in sides.items()
            ],
        }
        warden = Warden([box.pid for box in boxes])
        done = await _wait(job, slot.judge, order, task, [*sockets, warden.theirs], limits)
        if order["admission"] is None and isinstance(done.get("admission"), dict):
            slot.admissions.put(spec.task, done["admission"])
        spent_ns = [box.cpu_now_ns() for box in boxes]
        patience_s = _LAST_WORDS_S if done["lost"] is not None else _FAREWELL_S
    finally:
        if warden is not None:
            warden.close()
        for one in sockets:
            one.close()
        ends = await _end(boxes, patience_s)
        if ends:
            job.keep_log(ends[0].log)
    report = _report(job, done, sides, ends)
    spent = ("boxes_cpu_ms", f"{sum(spent_ns) / MILLISECOND:.1f}")
    device = [("device", slot.device.name), *((f"device.{name}", value) for name, value in slot.device.facts)]
    return dataclasses.replace(report, environment=(*report.environment, spent, *device))


def _run_box(side: _Side, fd: int, limits: Limits, uid: int, slot: RunSlot) -> Box:
    empty = side.payload.parent.parent / "empty"
    empty.mkdir(mode=0o755, exist_ok=True)
    own = side.harness.python
    python = (own, "-I", "-B") if own else (base_interpreter(), "-I", "-S", "-B")
    return Box(
        name="run",
        argv=(*python, side.harness.program, str(fd), *side.harness.arguments),
        mounts=(
            *interpreter_mounts(packages=bool(own)),
            *(() if own else package_masks(empty)),
            *side.harness.mounts,
            *side.harness.system,
            Mount(source=str(side.payload.parent), target="/job"),
        ),
        env=(*thread_environment(slot.threads), *side.harness.env),
        fds=(fd,),
        uid=uid,
        cpus=slot.cpus,
        nodes=side.harness.nodes,
        limits=BoxLimits(
            # The judge counts the box's own time; this only ends a box that the judge has forgotten.
            wall_ns=4 * limits.wall_ns + 600 * SECOND,
            memory_bytes=limits.memory_bytes,
            processes=limits.processes,
            log_bytes=limits.output_bytes,
            file_bytes=1 << 20,
        ),
    )


async def _wait(
    job: Job,
    judge: JudgeProcess,
    order: dict[str, Any],
    task: Path,
    sockets: list[socket.socket],
    limits: Limits,
) -> dict[str, Any]:
    """The judge's last word. A job that is stopped does not wait long for a judge that is busy."""

    def tell(message: dict[str, Any]) -> None:
        if message.get("type") == "stage":
            job.stage(Stage(message["stage"]))

    silence = limits.wall_ns / SECOND + _SILENCE_S
    asking = asyncio.ensure_future(judge.run(order, task, sockets, silence, tell))
    try:
        while not job.stopped():
            await asyncio.wait({asking}, timeout=0.1)
            if asking.done():
                return asking.result()
        await asyncio.wait({asking}, timeout=_STOP_S)
        if asking.done():
            return asking.result()
        raise JudgeDied("the job was stopped while the judge was busy")
    finally:
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)


async def _end(boxes: list[RunningBox], patience_s: float) -> list[Ended]:
    """End the boxes; one that is just dying gets a moment to do so by itself, so that we see how."""
    ends = []
    for box in boxes:
        try:
            async with asyncio.timeout(patience_s):
                ends.append(await box.wait())
        except TimeoutError:
            ends.append(await box.end(Limit.STOPPED))
    return ends


def _report(job: Job, done: dict[str, Any], sides: Iterable[str], ends: list[Ended]) -> Report:
    result = decode(RunResult, done["result"])
    tail = readable(ends[0].log, 8 << 10)
    if job.stopped():
        return Report(outcome=Stopped(reason=job.stop_reason), log_tail=tail)
    environment = _environment(done)
    if done["lost"] is not None:
        outcome: Verdict | Incident = _lost(done["lost"], dict(zip(sides, ends, strict=True)))
    else:
        outcome = _outcome(done["outcome"])
        limited = limit_verdict(ends[0], "the candidate")
        if limited is not None and isinstance(outcome, Verdict) and outcome.code is not VerdictCode.OK:
            outcome = limited
    return Report(outcome=outcome, detail=result, log_tail=tail, environment=environment)


def _outcome(data: Any) -> Verdict | Incident:
    return decode(Incident, data) if data["@"] == "Incident" else decode(Verdict, data)


def _lost(lost: dict[str, str], ends: dict[str, Ended]) -> Verdict | Incident:
    """What a box that hung up on the judge says, by how it ended."""
    phase = lost["phase"]
    ended = ends[lost["side"]]
    if not ended.started or phase == "starting":
        text = f"the {lost['side']}'s box could not be made or started: {readable(ended.log, 400)}"
        return Incident(code=IncidentCode.SANDBOX, text=text)
    if lost["side"] != CANDIDATE:
        return Incident(code=IncidentCode.REFERENCE, text=f"the {lost['side']} kernel {ended.describe()} while {phase}")
    limited = limit_verdict(ended, "the candidate")
    if limited is not None:
        return limited
    code = VerdictCode.LOAD_ERROR if phase == "loading" else VerdictCode.RUNTIME_ERROR
    if ended.limit is Limit.STOPPED:
        return Verdict(code=code, text=f"the candidate closed its connection to the judge while {phase}")
    return Verdict(code=code, text=f"the candidate {ended.describe()} while {phase}")
