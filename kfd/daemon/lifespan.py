"""The daemon's life: open, load, serve, stop. The composition root reads as a list."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import socket
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import grpc
import structlog
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1._async import HealthServicer

from kfd.api.v1 import admin_pb2_grpc, blob_pb2_grpc, control_pb2_grpc, worker_pb2_grpc
from kfd.base.failure import CallerError
from kfd.blobs import BlobStore
from kfd.core.engine import Engine
from kfd.core.fleet.model import FleetPolicy
from kfd.daemon.child import EmbeddedAgent, agent_command
from kfd.daemon.config import Config
from kfd.daemon.disk import SpaceRule, watch_space
from kfd.daemon.drafting import Drafter
from kfd.daemon.mutating import Mutator, Started
from kfd.daemon.reactor import Reactor
from kfd.daemon.state import StateFolder
from kfd.llm.manual import ManualDesk
from kfd.llm.port import Generator
from kfd.llm.recorded import RecordedGenerator
from kfd.llm.terms import terms_from
from kfd.rpc.admin_service import AdminService
from kfd.rpc.blob_service import BlobService
from kfd.rpc.control_service import ControlService
from kfd.rpc.interceptors import Door
from kfd.rpc.submission import Defaults
from kfd.rpc.worker_service import WorkerService
from kfd.store.journal import Journal
from kfd.store.load import load
from kfd.store.read import Reader
from kfd.store.rows import pack

__all__ = ["Daemon", "serve", "started"]

SERVER_OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.keepalive_time_ms", 8_000),
    ("grpc.keepalive_timeout_ms", 4_000),
    ("grpc.http2.ping_timeout_ms", 4_000),  # what really ends the wait for a ping's answer in current gRPC
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 5_000),
    ("grpc.http2.max_ping_strikes", 0),
    ("grpc.max_receive_message_length", 4 << 20),
    ("grpc.max_send_message_length", 4 << 20),
    ("grpc.so_reuseport", 0),
)


@dataclass(kw_only=True)
class Daemon:
    """A running daemon."""

    address: str
    state: StateFolder
    reactor: Reactor
    token: str


@asynccontextmanager
async def started(
    config: Config,
    state: StateFolder,
    *,
    with_worker: bool = False,
    extra_generators: Mapping[str, Generator] | None = None,
    policy: FleetPolicy | None = None,
) -> AsyncIterator[Daemon]:
    """Run a daemon for the length of the block. ``state`` is taken here and released at the end.

    ``extra_generators`` lets a benchmark answer in-process. Raises CallerError when it cannot start.
    """
    async with AsyncExitStack() as stack:
        state.take()
        stack.callback(state.release)
        token = state.token()
        journal = await Journal.open(state.database)
        stack.push_async_callback(journal.close)
        reader = await Reader.open(state.database)
        stack.push_async_callback(reader.close)
        blobs = BlobStore(state.blobs, floor_bytes=config.disk.floor_mb << 20)
        await asyncio.to_thread(blobs.sweep)

        boot = os.urandom(16)
        policy = policy or FleetPolicy()
        engine = Engine(policy, boot)
        snapshot = await load(reader.connection)
        first = engine.load(
            snapshot.campaigns,
            snapshot.jobs,
            snapshot.sources,
            snapshot.keys,
            time.monotonic_ns(),
            snapshot.bonds,
        )
        reactor = Reactor(engine, journal, boot)

        desk = ManualDesk()
        generators: dict[str, Generator] = {"manual": desk, **(extra_generators or {})}
        drafter = Drafter(generators, reader, blobs.get, reactor.post)
        generators["recorded"] = RecordedGenerator(drafter.files_of)
        if config.llm.models and "openai" not in generators:
            from kfd.llm.openai_adapter import OpenAiGenerator

            generators["openai"] = OpenAiGenerator(
                config.llm, now=time.monotonic_ns, sleep=asyncio.sleep, dice=random.random
            )
        stack.push_async_callback(drafter.close)
        mutator = Mutator(generators, reader, drafter.task_of, reactor.post)
        stack.push_async_callback(mutator.close)

        defaults = Defaults(
            generators=tuple(sorted(generators, key=lambda name: (name != "openai", name != "recorded", name))),
            models=tuple(model.name for model in config.llm.models),
            shares=config.model_shares(),
            in_flight=config.campaign.in_flight,
            plan=config.campaign.measure.plan(),
            search=config.campaign.policy(),
            terms=tuple(terms_from(model) for model in config.llm.models),
            asks_again=config.llm.asks_again,
        )
        server, health = _server(token)
        control = ControlService(reactor, reader, blobs, desk, defaults, pack)
        control_pb2_grpc.add_ControlServiceServicer_to_server(control, server)
        admin_pb2_grpc.add_AdminServiceServicer_to_server(AdminService(reactor), server)
        worker_pb2_grpc.add_WorkerServiceServicer_to_server(WorkerService(reactor, policy), server)
        blob_pb2_grpc.add_BlobServiceServicer_to_server(BlobService(blobs), server)
        address = _bind(server, config.server.listen, state)

        tasks = await stack.enter_async_context(_Background())
        tasks.start(reactor.run(Started(drafter, mutator), first), "reactor")
        rule = SpaceRule(floor_bytes=config.disk.floor_mb << 20)
        tasks.start(watch_space(state.root, rule, reactor.post), "disk")
        await server.start()
        stack.push_async_callback(_stop_server, server, reactor)
        state.announce(address)
        await health.set("", health_pb2.HealthCheckResponse.SERVING)
        if with_worker:
            command = agent_command(
                config.worker, address, state.token_file, state.worker, f"{socket.gethostname()}-embedded"
            )
            tasks.start(EmbeddedAgent(command, config.server.stop_seconds / 2).run(), "agent")
        structlog.get_logger("kfd").info("daemon.started", address=address, campaigns=len(engine.campaigns))
        yield Daemon(address=address, state=state, reactor=reactor, token=token)


async def serve(config: Config, state: StateFolder, *, with_worker: bool) -> None:
    """Serve until SIGTERM or SIGINT; a second signal ends the process at once.

    Raises what ended the reactor when that was not a signal.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def on_signal() -> None:
        if stop.is_set():
            os._exit(1)
        stop.set()
        # Whatever hangs, the process ends: rows are the truth, and a restart goes on from them.
        loop.call_later(config.server.stop_seconds, os._exit, 0)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)
    async with started(config, state, with_worker=with_worker):
        await stop.wait()
        structlog.get_logger("kfd").info("daemon.stopping")
    structlog.get_logger("kfd").info("daemon.stopped")


class _Background:
    """Tasks of the daemon's life. One that ends by itself ends the daemon, unless it may."""

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[Any]] = []
        self._owner = asyncio.current_task()

    async def __aenter__(self) -> _Background:
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in reversed(self._tasks):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await task

    def start(self, coroutine: Any, name: str) -> None:
        """Start one; a fault in it is logged and ends the process, so that a supervisor starts it again."""
        task = asyncio.get_running_loop().create_task(coroutine, name=name)
        task.add_done_callback(self._ended)
        self._tasks.append(task)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        if task.cancelled() or task.exception() is None:
            return
        structlog.get_logger("kfd").error("daemon.broken", task=task.get_name(), exc_info=task.exception())
        os._exit(70)


def _server(token: str) -> tuple[grpc.aio.Server, HealthServicer]:
    server = grpc.aio.server(interceptors=[Door(token)], options=list(SERVER_OPTIONS))
    health = HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(health, server)
    return server, health


def _bind(server: grpc.aio.Server, listen: str, state: StateFolder) -> str:
    """Bind, on the port of the last time when any would do: agents come back to it. Raises CallerError."""
    host, _, port = listen.rpartition(":")
    ports = [int(port)]
    if ports == [0] and (last := state.last_port()):
        ports = [last, 0]
    for wanted in ports:
        try:
            bound = server.add_insecure_port(f"{host}:{wanted}")
        except RuntimeError:
            continue
        if bound:
            return f"{host}:{bound}"
    raise CallerError(f"cannot listen on {listen}", mend="another program has the port; give another --listen")


async def _stop_server(server: grpc.aio.Server, reactor: Reactor) -> None:
    """Release parked calls first: a server's stop waits its whole grace for calls that hang."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(3):
            await reactor.stop()
    await server.stop(0.5)
