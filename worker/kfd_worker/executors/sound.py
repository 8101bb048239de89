"""A decorator that holds an executor to its laws: it always ends, always with a report that can be delivered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import structlog

from kfd.api.reports import bound_report, report_from_pb, report_to_pb
from kfd.base.failure import BadInput
from kfd.base.instant import SECOND
from kfd.base.work import Incident, IncidentCode, JobSpec, Report, RunSpec, Stage
from kfd_worker.executors.port import Executor
from kfd_worker.launcher.config import JobDone, LauncherFacts

__all__ = ["SoundExecutor"]

_SLACK_SECONDS = 300.0


class SoundExecutor:
    """Faults of an executor become incidents; a job that never ends is given up, and that is an incident too."""

    def __init__(self, inner: Executor, slack_seconds: float = _SLACK_SECONDS) -> None:
        """``slack_seconds`` come on top of the job's own limits, for what is not the candidate's time."""
        self._inner = inner
        self._slack = slack_seconds
        self._log = structlog.get_logger("kfd.executor")

    async def facts(self) -> LauncherFacts:
        """What the inner executor offers."""
        return await self._inner.facts()

    async def run(
        self, ref: str, slot: str, spec: JobSpec, inputs: Mapping[str, Path], on_stage: Callable[[Stage], None]
    ) -> JobDone:
        """Do a job; always returns."""
        limit = self._slack + 4 * spec.limits.wall_ns / SECOND
        if isinstance(spec.work, RunSpec):
            limit += 4 * spec.work.plan.max_ns / SECOND
        try:
            async with asyncio.timeout(limit):
                done = await self._inner.run(ref, slot, spec, inputs, on_stage)
        except TimeoutError:
            self._log.error("job.stuck", ref=ref, limit_s=limit)
            await self._inner.stop(ref, "stuck")
            text = f"the job did not end within {limit:.0f} s and was given up"
            return JobDone(report=Report(outcome=Incident(code=IncidentCode.SANDBOX, text=text)))
        except Exception as error:  # noqa: BLE001 - the boundary: a fault of ours must not take the slot along
            self._log.exception("job.fault", ref=ref)
            text = f"the worker failed: {type(error).__name__}: {error}"[:500]
            return JobDone(report=Report(outcome=Incident(code=IncidentCode.INTERNAL, text=text)))
        return replace(done, report=_deliverable(done.report))

    async def stop(self, ref: str, reason: str) -> None:
        """Stop a job."""
        await self._inner.stop(ref, reason)

    async def discard(self, ref: str) -> None:
        """A job's files are no longer needed."""
        await self._inner.discard(ref)

    async def close(self) -> None:
        """End everything."""
        await self._inner.close()


def _deliverable(report: Report) -> Report:
    """The report within the wire's bounds; an incident when it holds what the wire cannot carry (a negative time,
    a speedup that is no number): it must not be found out when it is sent, again and again."""
    try:
        bounded = bound_report(report)
        report_from_pb(report_to_pb(bounded))
    except (BadInput, ValueError, TypeError) as error:
        text = f"the job's report cannot be delivered: {error}"[:500]
        return Report(outcome=Incident(code=IncidentCode.INTERNAL, text=text))
    return bounded
