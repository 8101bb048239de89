"""The corpus's playing field: one launcher, one warm judge, the tasks, and what may be said of a program's end."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from pathlib import Path

from kfd.base.digest import Digest, digest_of
from kfd.base.instant import MILLISECOND, SECOND, Span
from kfd.base.work import (
    BuildSpec,
    JobSpec,
    Limits,
    MeasurementPlan,
    Report,
    RunResult,
    RunSpec,
    Verdict,
    VerdictCode,
)
from kfd.tasks import load, pack
from kfd.tasks.spec import TaskSpec
from kfd_worker.launcher.client import LauncherClient
from kfd_worker.launcher.config import LauncherConfig
from tests.hostile.corpus import FOLDER, Program
from tests.integration.exec_rig import below, until

__all__ = ["DEVICE_TASKS", "HOST_TASKS", "TASKS", "Field", "Seen", "mismatch"]

HOST_TASKS = ("softmax", "twice", "scan", "linear")
DEVICE_TASKS = ("softmax_opencl", "twice_opencl", "softmax_sycl", "twice_sycl")
"""Played where their toolchain is installed."""
TASKS = (*HOST_TASKS, *DEVICE_TASKS)
_PLAN = MeasurementPlan(min_rounds=3, max_rounds=3, max_ns=2 * SECOND)
_LONG_PLAN = MeasurementPlan(min_rounds=12, max_rounds=12, max_ns=3 * SECOND)
"""For programs that attack the clock: a median of three rounds says too little."""
_GRACE_NS = 2 * SECOND
_MEMORY = 256 << 20
_DEVICE_MEMORY = 1 << 30
"""A device's runtime with its threads and its compiler needs more than a library of the host."""
_PROCESSES, _DEVICE_PROCESSES = 32, 128
_TEXT = 4 << 10
_TAIL = 64 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What became of one program."""

    reports: tuple[Report, ...]
    """The build's report alone when it failed, else those of the runs."""
    built: Digest | None
    over_ns: Span
    """How much longer than its limit the longest stage of foreign code held its slot; at most 0 is in time."""
    survivors: int
    took_ns: Span

    @property
    def codes(self) -> tuple[str, ...]:
        """Verdicts, or the class of what is none."""
        return tuple(
            str(report.outcome.code)
            if isinstance(report.outcome, Verdict)
            else f"{type(report.outcome).__name__.lower()}"
            for report in self.reports
        )

    @property
    def speed(self) -> float:
        """Speed against the task's own kernel in the last run; 0 when it was not measured."""
        detail = self.reports[-1].detail
        speedups = detail.speedups if isinstance(detail, RunResult) else ()
        return next((one.value for one in speedups if one.baseline == "initial"), 0.0)


class Field:
    """One launcher with the tasks in its cache."""

    def __init__(self, client: LauncherClient, folder: Path) -> None:
        self._client = client
        self._cache = folder / "cache"
        self._cache.mkdir()
        self._tasks: dict[str, tuple[Digest, TaskSpec]] = {}
        self.skipped: dict[str, str] = {}
        """Tasks that cannot be played on this machine, with the reason."""
        self._own: dict[str, Digest] = {}
        """The artifact of each task's own kernel."""
        self._count = 0

    @classmethod
    async def open(cls, folder: Path) -> Field:
        """Start a launcher and its judge below an empty folder. Raises LauncherError, RuntimeError."""
        client = await LauncherClient.start(LauncherConfig(state_dir=str(folder / "state"), build_lanes=2))
        field = cls(client, folder)
        try:
            facts = await client.facts()
            builds = {target for one in facts.toolchains for target in one.targets}
            runs = {target for one in facts.devices for target in one.targets}
            missing = dict(facts.absent) | {
                name.removeprefix("toolchain "): text for name, text in facts.problems if name.startswith("toolchain ")
            }
            for name in TASKS:
                archive = pack(FOLDER / "tasks" / name)
                spec = load(archive).spec
                if spec.targets[0] not in builds & runs:
                    field.skipped[name] = missing.get(spec.toolchain, f"{spec.targets[0]} is not offered")
                    continue
                field._tasks[name] = (field._put(archive), spec)
                await field._build_own(name)
            # The judge is warm from here on.
            await field.control("softmax")
        except BaseException:
            await client.close()
            raise
        return field

    async def close(self) -> None:
        """End the launcher and everything below it."""
        await self._client.close()

    def _put(self, data: bytes) -> Digest:
        digest = digest_of(data)
        (self._cache / digest.hash).write_bytes(data)
        return digest

    def _ref(self, kind: str) -> str:
        self._count += 1
        return f"{kind}-{self._count}/1"

    async def _build_own(self, task: str) -> None:
        built, report = await self._build(task, self._tasks[task][1].kernel.text, 20_000, "build-0")
        if built is None:
            raise RuntimeError(f"the kernel of {task} does not build: {report.outcome}")
        self._own[task] = built

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks that can be played here."""
        return tuple(self._tasks)

    async def control(self, task: str) -> None:
        """The task's own kernel must be ok: whatever ran before has left nothing. Raises RuntimeError."""
        report, _ = await self._run(task, self._own[task], 20_000)
        if report.outcome != Verdict(code=VerdictCode.OK):
            raise RuntimeError(f"the kernel of {task} is not ok: {report.outcome} {report.log_tail[-400:]}")

    async def build(self, program: Program, lane: int = 0) -> tuple[Digest | None, Report, Span]:
        """Build a program: its artifact if there is one, the report, and the nanoseconds beyond the limit."""
        _, spec = self._tasks[program.task]
        text = spec.kernel.with_contents((f"\n{program.block}\n",)).text
        began = time.monotonic_ns()
        built, report = await self._build(program.task, text, program.build_ms, f"build-{lane}")
        return built, report, time.monotonic_ns() - began - program.build_ms * MILLISECOND - _GRACE_NS

    async def _build(self, task: str, text: str, limit_ms: int, lane: str) -> tuple[Digest | None, Report]:
        digest, spec = self._tasks[task]
        work = BuildSpec(
            task=digest,
            source=text,
            kernel_path=spec.kernel.path,
            toolchain=spec.toolchain,
            target=spec.targets[0],
            flags=spec.flags,
        )
        limits = Limits(wall_ns=limit_ms * MILLISECOND, memory_bytes=1 << 30, artifact_bytes=16 << 20)
        ref = self._ref("build")
        paths = {digest.hash: self._cache / digest.hash}
        done = await self._client.run(ref, lane, JobSpec(work=work, limits=limits), paths, lambda _: None)
        built = self._put(done.artifact.read_bytes()) if done.artifact is not None else None
        await self._client.discard(ref)
        return built, done.report

    async def run(self, program: Program, built: Digest | None, report: Report, over_ns: Span) -> Seen:
        """Run a program that has been built; one that has not has its build's report."""
        began = time.monotonic_ns()
        idle = below(self._client.pid)
        reports = []
        if built is not None:
            for _ in range(program.runs):
                # Who attacks the clock is timed beside the task's own kernel: the true ratio is known.
                own = self._own[program.task] if program.at_most else None
                one, late_ns = await self._run(program.task, built, program.run_ms, own)
                reports.append(one)
                over_ns = max(over_ns, late_ns)
        gone = await until(lambda: below(self._client.pid) <= idle)
        return Seen(
            reports=tuple(reports) or (report,),
            built=built,
            over_ns=over_ns,
            survivors=0 if gone else len(below(self._client.pid) - idle),
            took_ns=time.monotonic_ns() - began,
        )

    async def _run(self, task: str, built: Digest, limit_ms: int, own: Digest | None = None) -> tuple[Report, Span]:
        digest, spec = self._tasks[task]
        device = task in DEVICE_TASKS
        plan = _LONG_PLAN if own is not None else _PLAN
        work = RunSpec(
            task=digest,
            artifact=built,
            initial_artifact=own,
            toolchain=spec.toolchain,
            target=spec.targets[0],
            seed=secrets.token_bytes(32),
            plan=plan,
        )
        limits = Limits(
            wall_ns=limit_ms * MILLISECOND,
            memory_bytes=_DEVICE_MEMORY if device else _MEMORY,
            processes=_DEVICE_PROCESSES if device else _PROCESSES,
        )
        ref = self._ref("run")
        paths = {one.hash: self._cache / one.hash for one in (digest, built, *([own] if own else []))}
        began = time.monotonic_ns()
        done = await self._client.run(ref, "cpu", JobSpec(work=work, limits=limits), paths, lambda _: None)
        took = time.monotonic_ns() - began
        await self._client.discard(ref)
        # The benchmark's own time is the plan's, not the candidate's.
        return done.report, took - limits.wall_ns - plan.max_ns - _GRACE_NS


def mismatch(program: Program, seen: Seen) -> str:
    """What is wrong with a program's end, empty when nothing is. Pure."""
    faults = [_verdict_fault(program, seen, report) for report in seen.reports]
    faults += [_report_fault(report, seen.built) for report in seen.reports]
    if seen.survivors:
        faults.append(f"{seen.survivors} processes live on")
    if seen.over_ns > 0:
        faults.append(f"the slot was free {seen.over_ns / SECOND:.1f} s too late")
    return "; ".join(dict.fromkeys(fault for fault in faults if fault))


def _verdict_fault(program: Program, seen: Seen, report: Report) -> str:
    outcome = report.outcome
    if not isinstance(outcome, Verdict):
        return f"no verdict but {outcome}"
    if outcome.code not in program.expect:
        return f"{outcome.code} is not among {', '.join(sorted(program.expect))}: {outcome.text}"
    if program.says not in outcome.text:
        return f"{program.says!r} is not in {outcome.text!r}"
    if outcome.code is VerdictCode.OK and program.at_most and not 0 < seen.speed <= program.at_most:
        return f"believed to be {seen.speed:.3g} times as fast as the task's kernel, at most {program.at_most:g} is so"
    return ""


def _report_fault(report: Report, built: Digest | None) -> str:
    """Laws of every report, whatever the program: text that is fit for people, evidence that fits the verdict."""
    text = getattr(report.outcome, "text", "")
    if len(text) > _TEXT or len(report.log_tail) > _TAIL:
        return f"an endless text: {len(text)} and {len(report.log_tail)} characters"
    strange = {char for char in text + report.log_tail if not (char.isprintable() or char in "\n\t")}
    if strange - {" "}:
        return f"characters that a terminal may obey: {sorted(map(ascii, strange))}"
    detail = report.detail
    if isinstance(detail, RunResult):
        passed = isinstance(report.outcome, Verdict) and report.outcome.code is VerdictCode.OK
        if passed != bool(detail.speedups) or (passed and detail.ran != built):
            return f"the evidence does not fit the verdict: speedups {detail.speedups}, ran {detail.ran}"
    return ""
