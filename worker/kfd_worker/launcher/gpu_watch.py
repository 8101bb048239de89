"""A device before, during and after a job: its clocks on record, and whether it still computes after a crash."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable

from kfd.base.work import Incident, IncidentCode, Report, Stopped, Verdict, VerdictCode
from kfd_worker.devices import canary, nvidia

__all__ = ["watched"]

_DOUBTFUL = (VerdictCode.RUNTIME_ERROR, VerdictCode.TIMEOUT, VerdictCode.RESOURCE_LIMIT)
"""Ends after which a device may be left in trouble."""


async def watched(uuid: str, work: Callable[[], Awaitable[Report]]) -> Report:
    """Do a job on a device: clocks and reasons to slow down go into its environment, and a crash is the device's when
    the canary does not sing afterwards (evaluation notes, 4.3; reliability notes, 2.5)."""
    before = await asyncio.to_thread(_facts, uuid, "begin")
    report = await work()
    after = await asyncio.to_thread(_facts, uuid, "end")
    report = dataclasses.replace(report, environment=(*report.environment, *before, *after))
    if not _is_doubtful(report):
        return report
    song = await asyncio.to_thread(canary.sing, uuid)
    if song.healthy:
        return report
    text = f"the device fails its canary after a job that ended so: {report.outcome}: {song.text}"
    return dataclasses.replace(
        report, outcome=Incident(code=IncidentCode.DEVICE, text=text[:1000], device_suspect=True)
    )


def _is_doubtful(report: Report) -> bool:
    outcome = report.outcome
    if isinstance(outcome, Verdict):
        return outcome.code in _DOUBTFUL
    return not isinstance(outcome, Stopped)


def _facts(uuid: str, when: str) -> tuple[tuple[str, str], ...]:
    try:
        state = nvidia.read_state(uuid)
    except TimeoutError as error:
        return ((f"gpu.state.{when}", str(error)[:200]),)
    return state.facts(when) if state is not None else ((f"gpu.state.{when}", "the device is gone"),)
