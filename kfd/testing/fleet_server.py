"""A daemon reduced to its fleet: the real machine, the real worker and blob services, no database.

For proving agents over real gRPC. What a real daemon would write to its database is kept in ``rows``; a second
server that is started with them behaves like the daemon after a restart.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import grpc

from kfd.api.v1 import blob_pb2_grpc, worker_pb2_grpc
from kfd.base.failure import Bug
from kfd.base.ids import JobId
from kfd.base.instant import SECOND
from kfd.base.work import Report
from kfd.blobs import BlobStore
from kfd.core.events import AgentLeft, AgentRegistered, CallDropped, Event, SlotSynced
from kfd.core.fleet.machine import Fleet
from kfd.core.fleet.model import CallId, Fact, FleetOutput, FleetPolicy, Job, JobSettled, JobState, Reply, SaveJob
from kfd.rpc.blob_service import BlobService
from kfd.rpc.interceptors import Door
from kfd.rpc.worker_service import WorkerService

__all__ = ["FleetReactor", "FleetServer"]

_SERVER_OPTIONS = (
    ("grpc.so_reuseport", 0),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_ping_strikes", 2),
)


class FleetReactor:
    """The Reactor port over a Fleet alone: one event at a time, nothing durable."""

    def __init__(self, policy: FleetPolicy, rows: Iterable[Job] = ()) -> None:
        self._boot = os.urandom(8)
        self.fleet = Fleet(policy, self._boot)
        self.rows: dict[JobId, Job] = {job.id: job for job in rows}
        self.settled: dict[JobId, tuple[Job, Report]] = {}
        self.facts: list[Fact] = []
        self._waiting: dict[CallId, asyncio.Future[Any]] = {}
        self._calls = itertools.count(1)
        self._changed = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self.take(self.fleet.load(self.rows.values(), time.monotonic_ns()))

    @property
    def boot(self) -> bytes:
        """Random id of this daemon process."""
        return self._boot

    async def call(self, make_event: Callable[[CallId], Event]) -> Any:
        """Post an event and wait for its reply."""
        call = next(self._calls)
        future = self._waiting[call] = asyncio.get_running_loop().create_future()
        try:
            self.post(make_event(call))
            return await future
        except asyncio.CancelledError:
            self.post(CallDropped(call=call))
            raise
        finally:
            self._waiting.pop(call, None)

    def post(self, event: Event) -> None:
        """Take an event in."""
        now = time.monotonic_ns()
        if isinstance(event, SlotSynced):
            self.take(self.fleet.sync(event.call, event.report, now))
        elif isinstance(event, AgentRegistered):
            self.take(self.fleet.register(event.call, event.registration, now))
        elif isinstance(event, AgentLeft):
            self.take(self.fleet.leave(event.call, event.session, event.reason, now))
        elif isinstance(event, CallDropped):
            self.take(self.fleet.drop_call(event.call, now))
        else:
            self.take(self.fleet.tick(now))

    def add(self, jobs: Iterable[Job]) -> None:
        """Queue jobs."""
        for job in jobs:
            self.take(self.fleet.enqueue(job, time.monotonic_ns()))

    def cancel(self, job: JobId, reason: str) -> None:
        """Cancel a job."""
        self.take(self.fleet.cancel(job, reason, time.monotonic_ns()))

    async def until(self, holds: Callable[[], bool], seconds: float = 20.0) -> None:
        """Wait until something holds; looked at after each event. Raises TimeoutError."""
        async with asyncio.timeout(seconds):
            while not holds():
                self._changed.clear()
                await self._changed.wait()

    def take(self, outputs: list[FleetOutput]) -> None:
        """Carry outputs out, and set the clock."""
        for output in outputs:
            if isinstance(output, SaveJob):
                self.rows[output.job.id] = output.job
            elif isinstance(output, JobSettled):
                if output.job.id in self.settled:
                    raise Bug(f"{output.job.id} is settled twice")
                self.settled[output.job.id] = (output.job, output.report)
            elif isinstance(output, Reply):
                future = self._waiting.get(output.call)
                if future is not None and not future.done():
                    future.set_result(output.answer)
            else:
                self.facts.append(output)
        self._changed.set()
        self._set_timer()

    def close(self) -> None:
        """Answer every parked call."""
        self.take(self.fleet.release_all(time.monotonic_ns()))
        if self._timer is not None:
            self._timer.cancel()

    def open_rows(self) -> list[Job]:
        """Rows that a restarted daemon would load."""
        return [job for job in self.rows.values() if job.state is not JobState.SETTLED]

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = self.fleet.next_wake()
        if due is not None and not self.fleet.stopping:
            delay = max(0, due - time.monotonic_ns()) / SECOND
            self._timer = asyncio.get_running_loop().call_later(delay, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self.take(self.fleet.tick(time.monotonic_ns()))


class FleetServer:
    """The reactor behind real gRPC on a loopback port."""

    def __init__(
        self, folder: Path, *, policy: FleetPolicy | None = None, rows: Iterable[Job] = (), token: str = "sesame"
    ) -> None:
        self.token = token
        self.policy = policy or FleetPolicy()
        self.reactor = FleetReactor(self.policy, rows)
        self.blobs = BlobStore(folder, floor_bytes=0)
        self.address = ""
        self._server = grpc.aio.server(interceptors=[Door(token)], options=_SERVER_OPTIONS)

    async def start(self, port: int = 0) -> None:
        """Listen. Raises RuntimeError when the port is taken."""
        worker_pb2_grpc.add_WorkerServiceServicer_to_server(WorkerService(self.reactor, self.policy), self._server)
        blob_pb2_grpc.add_BlobServiceServicer_to_server(BlobService(self.blobs), self._server)
        self.address = f"127.0.0.1:{self._server.add_insecure_port(f'127.0.0.1:{port}')}"
        await self._server.start()

    @property
    def port(self) -> int:
        """The port."""
        return int(self.address.rpartition(":")[2])

    async def stop(self, grace: float = 1.0) -> None:
        """Stop in good order."""
        self.reactor.close()
        await self._server.stop(grace)
        await self.blobs.close()
