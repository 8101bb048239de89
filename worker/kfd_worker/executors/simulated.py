"""A fake judge: nothing is compiled, nothing is run. For tests and for trying the system (toolchain ``sim``)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kfd.base.digest import Digest, digest_of
from kfd.base.work import (
    INCUMBENT,
    INITIAL,
    AdmitResult,
    AdmitSpec,
    BuildResult,
    BuildSpec,
    CaseResult,
    Comparison,
    Diagnostic,
    Incident,
    JobSpec,
    Probe,
    Report,
    RunResult,
    RunSpec,
    Speedup,
    Stage,
    Stopped,
    Verdict,
    VerdictCode,
)
from kfd_worker.executors.script import Script, script_of
from kfd_worker.launcher.config import DeviceFact, JobDone, LauncherFacts, ToolchainFact

__all__ = ["SIM_TARGETS", "SIM_TOOLCHAIN", "SimulatedExecutor", "simulate_build", "simulate_run"]

SIM_TOOLCHAIN = "sim"
SIM_TARGETS = ("sim:device", "sim:other")

_ROUNDS = 8
_BASE_NS = 1_000_000
_BEFORE_CRASH_SECONDS = 0.3
"""So that the daemon has heard that the job is running."""
_ENVIRONMENT = (("simulated", "true"),)


def simulate_build(source: bytes, script: Script) -> Report:
    """What building a source reports."""
    if script.verdict is VerdictCode.COMPILE_ERROR:
        message = Diagnostic(file="kernel", line=1, column=1, severity="error", text="simulated: does not compile")
        return Report(
            outcome=Verdict(code=VerdictCode.COMPILE_ERROR, text="kernel:1:1: simulated: does not compile"),
            detail=BuildResult(diagnostics=(message,)),
            environment=_ENVIRONMENT,
        )
    return Report(
        outcome=Verdict(code=VerdictCode.OK),
        detail=BuildResult(artifact=digest_of(source), facts=(("simulated", "true"),)),
        environment=_ENVIRONMENT,
    )


def simulate_run(artifact: Digest, script: Script, beside: Mapping[str, Script]) -> Report:
    """What running an artifact reports, beside the kernels that are named."""
    code = script.verdict
    passed = code in (VerdictCode.OK, VerdictCode.SUSPECT)
    case = CaseResult(case="sim", passed=passed, relative_l2=0.0 if passed else 1.0, worst=0.1 if passed else 100.0)
    if code is not VerdictCode.OK:
        detail = RunResult(cases=(case,), ran=artifact)
        return Report(
            outcome=Verdict(code=code, text=f"simulated: {code.value}"), detail=detail, environment=_ENVIRONMENT
        )
    speeds = [("reference", script.speedup)]
    speeds += [(name, script.speedup / other.speedup) for name, other in beside.items()]
    return Report(
        outcome=Verdict(code=VerdictCode.OK),
        detail=RunResult(
            cases=(case,),
            comparisons=tuple(_comparison(name, value) for name, value in speeds),
            speedups=tuple(
                Speedup(
                    baseline=name,
                    value=value,
                    low=value * 0.99,
                    high=value * 1.01,
                    rounds=_ROUNDS,
                    worst_case="sim",
                    worst_value=value,
                )
                for name, value in speeds
            ),
            ran=artifact,
        ),
        environment=_ENVIRONMENT,
    )


def _comparison(baseline: str, value: float) -> Comparison:
    ours = max(1, round(_BASE_NS / value))
    return Comparison(case="sim", baseline=baseline, candidate_ns=(ours,) * _ROUNDS, baseline_ns=(_BASE_NS,) * _ROUNDS)


def _file_name(ref: str) -> str:
    return digest_of(ref.encode()).hash[:32]


@dataclass(slots=True)
class _Going:
    stopped: asyncio.Event = field(default_factory=asyncio.Event)
    reason: str = ""


class SimulatedExecutor:
    """Does what sources say (``executors.script``). Artifacts are the source's bytes, in real files."""

    def __init__(self, folder: Path, run_slots: int) -> None:
        self._folder = folder
        self._run_slots = run_slots
        self._going: dict[str, _Going] = {}
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    async def facts(self) -> LauncherFacts:
        """One toolchain and as many devices as there are run slots."""
        return LauncherFacts(
            toolchains=(
                ToolchainFact(name=SIM_TOOLCHAIN, version="1", fingerprint=digest_of(b"sim 1"), targets=SIM_TARGETS),
            ),
            devices=tuple(
                DeviceFact(id=f"sim-{n}", name="simulated device", facts=(), targets=SIM_TARGETS)
                for n in range(self._run_slots)
            ),
            sandbox=(("kind", "none: nothing is run"),),
        )

    async def run(
        self, ref: str, slot: str, spec: JobSpec, inputs: Mapping[str, Path], on_stage: Callable[[Stage], None]
    ) -> JobDone:
        """Pretend to do a job."""
        going = self._going[ref] = _Going()
        try:
            if isinstance(spec.work, BuildSpec):
                on_stage(Stage.BUILD)
                return await self._build(ref, going, spec, spec.work)
            if isinstance(spec.work, AdmitSpec):
                probe = Probe(name="simulated", passed=True, detail="nothing is run, so nothing is proved")
                verdict = Verdict(code=VerdictCode.OK)
                return JobDone(
                    report=Report(outcome=verdict, detail=AdmitResult(probes=(probe,)), environment=_ENVIRONMENT)
                )
            return await self._run(ref, going, spec, spec.work, inputs, on_stage)
        finally:
            del self._going[ref]

    async def _build(self, ref: str, going: _Going, spec: JobSpec, work: BuildSpec) -> JobDone:
        source = work.source.encode()
        script = script_of(source)
        early = await self._pass(ref, going, spec, script, "build", script.build_ms)
        if early is not None:
            return JobDone(report=early)
        report = simulate_build(source, script)
        if script.verdict is VerdictCode.COMPILE_ERROR:
            return JobDone(report=report)
        path = self._folder / _file_name(ref)
        await asyncio.to_thread(path.write_bytes, source)
        return JobDone(report=report, artifact=path)

    async def _run(
        self,
        ref: str,
        going: _Going,
        spec: JobSpec,
        work: RunSpec,
        inputs: Mapping[str, Path],
        on_stage: Callable[[Stage], None],
    ) -> JobDone:
        on_stage(Stage.CHECK)
        source = await asyncio.to_thread(inputs[work.artifact.hash].read_bytes)
        script = script_of(source)
        beside: dict[str, Script] = {}
        for name, artifact in ((INITIAL, work.initial_artifact), (INCUMBENT, work.incumbent_artifact)):
            if artifact is not None:
                beside[name] = script_of(await asyncio.to_thread(inputs[artifact.hash].read_bytes))
        on_stage(Stage.BENCHMARK)
        early = await self._pass(ref, going, spec, script, "run", script.run_ms)
        if early is not None:
            return JobDone(report=early)
        return JobDone(report=simulate_run(digest_of(source), script, beside))

    async def _pass(
        self, ref: str, going: _Going, spec: JobSpec, script: Script, stage: str, millis: float
    ) -> Report | None:
        """Let a stage's time pass. A report when it ends early."""
        limit = spec.limits.wall_ns / 1e9
        seconds = limit if script.hang == stage else min(millis / 1e3, limit)
        if script.crash_agent == stage:
            seconds = max(seconds, _BEFORE_CRASH_SECONDS)
        if seconds > 0:
            try:
                async with asyncio.timeout(seconds):
                    await going.stopped.wait()
            except TimeoutError:
                pass
        if going.stopped.is_set():
            return Report(outcome=Stopped(reason=going.reason), environment=_ENVIRONMENT)
        if script.crash_agent == stage:
            os._exit(70)
        attempt = int(ref.rpartition("/")[2]) if ref.rpartition("/")[2].isdigit() else 1
        if script.incident is not None and script.at == stage and attempt <= script.attempts:
            return Report(outcome=Incident(code=script.incident, text="simulated incident"), environment=_ENVIRONMENT)
        if script.hang == stage:
            text = f"simulated: did not end within {limit:.3g} s"
            return Report(outcome=Verdict(code=VerdictCode.TIMEOUT, text=text), environment=_ENVIRONMENT)
        return None

    async def stop(self, ref: str, reason: str) -> None:
        """Stop a job."""
        going = self._going.get(ref)
        if going is not None:
            going.reason = reason
            going.stopped.set()

    async def discard(self, ref: str) -> None:
        """Remove a job's artifact."""
        path = self._folder / _file_name(ref)
        await asyncio.to_thread(path.unlink, missing_ok=True)

    async def close(self) -> None:
        """Stop everything."""
        for going in self._going.values():
            going.stopped.set()
