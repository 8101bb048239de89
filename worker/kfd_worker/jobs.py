"""One job from its inputs to its report: fetch, carry out, upload."""

from __future__ import annotations

import asyncio
import errno
import random
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import structlog

from kfd.base.digest import Digest
from kfd.base.instant import SECOND
from kfd.base.work import (
    BuildResult,
    BuildSpec,
    Incident,
    IncidentCode,
    JobSpec,
    LeaseRef,
    Report,
    RunSpec,
    Stage,
    Stopped,
    Verdict,
    VerdictCode,
)
from kfd_worker.blobs import BlobCache, BlobClient, BlobMissing
from kfd_worker.core.backoff import backoff
from kfd_worker.executors.port import Executor
from kfd_worker.files import digest_of_file
from kfd_worker.launcher.config import JobDone
from kfd_worker.transport import CallFailed

__all__ = ["JobRunner", "StopOrder"]

_T = TypeVar("_T")


class StopOrder:
    """An order to end a job, given at any time."""

    def __init__(self) -> None:
        self._given = asyncio.Event()
        self.reason = ""

    def give(self, reason: str) -> None:
        """Give the order; the first reason counts."""
        if not self._given.is_set():
            self.reason = reason
            self._given.set()

    @property
    def given(self) -> bool:
        """Whether it was given."""
        return self._given.is_set()

    async def wait(self) -> None:
        """Until it is given."""
        await self._given.wait()


class _Ordered(Exception):
    """The stop order came while nothing but a transfer was under way."""


@dataclass(frozen=True, slots=True)
class JobRunner:
    """Does jobs for one agent. ``run`` always returns a report that is final: what it names is uploaded."""

    executor: Executor
    cache: BlobCache
    client: BlobClient

    async def run(
        self, lease: LeaseRef, slot: str, spec: JobSpec, order: StopOrder, on_stage: Callable[[Stage], None]
    ) -> Report:
        """Do one job."""
        log = structlog.get_logger("kfd.job").bind(lease=str(lease), slot=slot)
        digests = inputs_of(spec)
        try:
            with self.cache.pinned(digests):
                on_stage(Stage.FETCH)
                inputs: dict[str, Path] = {}
                for digest in digests:
                    inputs[digest.hash] = await self._transfer(order, self._fetching(digest))
                done = await self._carry_out(lease, slot, spec, inputs, order, on_stage)
            on_stage(Stage.UPLOAD)
            report = await self._deliver(done, spec, order)
        except _Ordered:
            report = Report(outcome=Stopped(reason=order.reason))
        except BlobMissing as error:
            incident = Incident(code=IncidentCode.MISSING_INPUT, text=str(error), missing=error.digest)
            report = Report(outcome=incident)
        except CallFailed as error:
            report = Report(outcome=Incident(code=IncidentCode.INTERNAL, text=f"a transfer was refused: {error}"))
        except OSError as error:
            code = IncidentCode.DISK_FULL if error.errno in (errno.ENOSPC, errno.EDQUOT) else IncidentCode.INTERNAL
            report = Report(outcome=Incident(code=code, text=f"the worker's files: {error}"))
        if isinstance(report.outcome, Incident):
            log.warning("job.incident", code=report.outcome.code.value)
        else:
            log.debug("job.ended", outcome=_word(report))
        return report

    async def _carry_out(
        self,
        lease: LeaseRef,
        slot: str,
        spec: JobSpec,
        inputs: dict[str, Path],
        order: StopOrder,
        on_stage: Callable[[Stage], None],
    ) -> JobDone:
        running = asyncio.ensure_future(self.executor.run(str(lease), slot, spec, inputs, on_stage))
        stopping = asyncio.ensure_future(order.wait())
        try:
            await asyncio.wait([running, stopping], return_when=asyncio.FIRST_COMPLETED)
            if not running.done():
                await self.executor.stop(str(lease), order.reason)
            return await running
        finally:
            stopping.cancel()
            running.cancel()

    async def _deliver(self, done: JobDone, spec: JobSpec, order: StopOrder) -> Report:
        """Upload what the report names; an accepted build without its artifact would be worth nothing."""
        report = done.report
        accepted = isinstance(report.outcome, Verdict) and report.outcome.code is VerdictCode.OK
        if accepted and isinstance(spec.work, BuildSpec):
            detail = report.detail
            named = detail.artifact if isinstance(detail, BuildResult) else None
            if done.artifact is None or named is None:
                return _internal("the build was accepted and left no artifact")
            digest = await asyncio.to_thread(digest_of_file, done.artifact)
            if digest != named:
                return _internal("the artifact is not the one that the build reports")
            await self._transfer(order, self._uploading(digest, done.artifact))
            await self.cache.add(digest, done.artifact)
        if done.log is not None and report.log is not None:
            try:
                await self.client.upload(report.log, done.log)
            except (CallFailed, OSError):
                # The end of the log is in the report; the whole of it is not worth a retry of the job.
                report = replace(report, log=None)
        elif report.log is not None:
            report = replace(report, log=None)
        return report

    def _fetching(self, digest: Digest) -> Callable[[], Coroutine[Any, Any, Path]]:
        return lambda: self.cache.fetch(digest, self.client)

    def _uploading(self, digest: Digest, path: Path) -> Callable[[], Coroutine[Any, Any, None]]:
        return lambda: self.client.upload(digest, path)

    async def _transfer(self, order: StopOrder, attempt: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
        """Try a transfer until it succeeds, is refused for good, or the job is stopped: while the daemon is down or
        its disk is full the lease decides how long that makes sense."""
        failures = 0
        while True:
            try:
                return await _unless(order, attempt())
            except CallFailed as error:
                if error.refused and error.code != "FAILED_PRECONDITION":
                    raise
                failures += 1
                wait = backoff(failures, random.random()) / SECOND
                await _unless(order, asyncio.sleep(wait))


async def _unless(order: StopOrder, work: Coroutine[Any, Any, _T]) -> _T:
    """Await ``work`` unless the order comes first. Raises _Ordered."""
    task: asyncio.Task[_T] = asyncio.ensure_future(work)
    waiting: asyncio.Task[None] = asyncio.ensure_future(order.wait())
    both: list[Awaitable[Any]] = [task, waiting]
    try:
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)  # type: ignore[type-var]
        if task.done():
            return task.result()
        raise _Ordered
    finally:
        waiting.cancel()
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def inputs_of(spec: JobSpec) -> list[Digest]:
    """Blobs that a job needs, each once."""
    work = spec.work
    digests = [work.task]
    if isinstance(work, RunSpec):
        digests.append(work.artifact)
        digests += [one for one in (work.initial_artifact, work.incumbent_artifact) if one is not None]
    return list(dict.fromkeys(digests))


def _internal(text: str) -> Report:
    return Report(outcome=Incident(code=IncidentCode.INTERNAL, text=text))


def _word(report: Report) -> str:
    outcome = report.outcome
    return "stopped" if isinstance(outcome, Stopped) else outcome.code.value
