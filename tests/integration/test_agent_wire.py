"""Agents and the fleet over real gRPC: what is lost, killed or cut off between them, and that nothing comes of it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest

from kfd.api.v1 import worker_pb2, worker_pb2_grpc
from kfd.base.digest import Digest, digest_of
from kfd.base.instant import MILLISECOND, SECOND
from kfd.base.work import (
    BuildResult,
    BuildSpec,
    Incident,
    IncidentCode,
    Report,
    RunResult,
    RunSpec,
    SlotKind,
    Stopped,
    Verdict,
    VerdictCode,
)
from kfd.core.fleet.model import FleetPolicy, Job
from kfd.testing.fleet_server import FleetServer
from kfd.testing.fleetkit import build_job, run_job
from kfd.testing.sim_agent import run_agents
from kfd_worker.agent import Agent
from kfd_worker.blobs import BlobClient, BlobMissing
from kfd_worker.config import AgentConfig
from kfd_worker.core import rest
from kfd_worker.core.values import Idle, SendSync
from kfd_worker.executors.simulated import SimulatedExecutor
from kfd_worker.executors.sound import SoundExecutor
from kfd_worker.launcher.config import LauncherFacts
from kfd_worker.transport import CallFailed, SlotFacts, Token, Transport, open_channel

QUICK = FleetPolicy(
    lease_ttl=2 * SECOND,
    guard=SECOND // 2,
    busy_hold=SECOND // 3,
    idle_hold=SECOND,
    adoption=8 * SECOND,
)
TASK = b"the task's archive"


def build(name: str, directives: str = "", **changes: Any) -> Job:
    """A build job of a source that says what happens."""
    job = build_job(name)
    work = job.spec.work
    assert isinstance(work, BuildSpec)
    work = replace(work, task=digest_of(TASK), source=f"// {name}\n// sim: {directives}\n")
    return replace(job, spec=replace(job.spec, work=replace(work, **changes)))


def run_of(artifact: Digest) -> Job:
    """A run job of an artifact."""
    job = run_job("c1-1.run")
    work = job.spec.work
    assert isinstance(work, RunSpec)
    return replace(job, spec=replace(job.spec, work=replace(work, task=digest_of(TASK), artifact=artifact)))


async def until_true(holds: Callable[[], bool], seconds: float = 10.0) -> None:
    """Wait for something that happens in another process or says nothing when it does."""
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


class Rig:
    """A fleet server and agents, all in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.server = FleetServer(folder / "blobs", policy=QUICK)
        self.token_file = folder / "token"
        self.token_file.write_text(self.server.token)
        self.processes: list[subprocess.Popen[bytes]] = []
        self.tasks: list[asyncio.Task[int]] = []

    @property
    def reactor(self) -> Any:
        return self.server.reactor

    async def start(self) -> None:
        await self.server.start()
        await self.server.blobs.put(TASK)

    def config(self, name: str, **changes: Any) -> AgentConfig:
        values: dict[str, Any] = {
            "daemon": self.server.address,
            "token_file": str(self.token_file),
            "name": name,
            "state_dir": str(self.folder / name),
            "build_lanes": 1,
            "executor": "simulated",
            "grace_seconds": 5.0,
        }
        return AgentConfig(**{**values, **changes})

    async def agent(self, name: str, **changes: Any) -> Agent:
        """An agent inside this process."""
        config = self.config(name, **changes)
        executor = SimulatedExecutor(config.state / "simulated", config.run_slots)
        agent = Agent(config, SoundExecutor(executor), await executor.facts())
        self.tasks.append(asyncio.ensure_future(agent.run()))
        return agent

    def process(self, name: str, *options: str, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
        """An agent in a process of its own, to be killed."""
        command = [sys.executable, "-m", "kfd_worker.cli", "run", "--executor", "simulated", "--build-lanes", "1"]
        command += ["--daemon", self.server.address, "--token-file", str(self.token_file)]
        command += ["--name", name, "--state-dir", str(self.folder / name), *options]
        process = subprocess.Popen(command, stdin=stdin, stderr=subprocess.DEVNULL)
        self.processes.append(process)
        return process

    async def replace_server(self, **changes: Any) -> None:
        """A daemon that was killed comes back on its port, with its rows."""
        rows = self.reactor.open_rows()
        settled = self.reactor.settled
        self.server = FleetServer(self.folder / "blobs", policy=QUICK, rows=rows)
        self.reactor.settled.update(settled)
        await self.server.start(**changes)

    async def settled(self, job: Job, seconds: float = 20.0) -> tuple[Job, Report]:
        await self.reactor.until(lambda: job.id in self.reactor.settled, seconds)
        result: tuple[Job, Report] = self.reactor.settled[job.id]
        return result

    async def running(self, job: Job, stage: str = "") -> None:
        """Until an agent has reported the job running (in a stage)."""

        def seen() -> bool:
            workers = self.reactor.fleet.workers(0)
            slots = [slot for worker in workers for slot in worker.slots]
            return any(slot[2] == job.id and slot[1] == "running" and slot[5].startswith(stage) for slot in slots)

        await self.reactor.until(seen)

    async def up(self, count: int = 1) -> None:
        await self.reactor.until(lambda: len(self.reactor.fleet.sessions.by_session) >= count)

    async def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        await self.server.stop(0.1)


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    rig = Rig(tmp_path)
    await rig.start()
    yield rig
    await rig.close()


def artifact_of(report: Report) -> Digest:
    assert isinstance(report.detail, BuildResult)
    assert report.detail.artifact is not None
    return report.detail.artifact


class TestJobs:
    async def test_a_build_leaves_its_artifact_at_the_daemon_and_a_run_measures_it(self, rig: Rig) -> None:
        await rig.agent("w1")
        job = build("c1-1.build", "verdict=ok speedup=1.40")
        rig.reactor.add([job])
        _, report = await rig.settled(job)
        artifact = artifact_of(report)
        assert isinstance(job.spec.work, BuildSpec)
        assert await rig.server.blobs.get(artifact) == job.spec.work.source.encode()
        run = run_of(artifact)
        rig.reactor.add([run])
        _, report = await rig.settled(run)
        assert isinstance(report.detail, RunResult)
        assert report.detail.ran == artifact
        assert [round(speedup.value, 3) for speedup in report.detail.speedups] == [1.4]

    @pytest.mark.parametrize("code", ["compile_error"])
    async def test_a_verdict_is_not_tried_again(self, rig: Rig, code: str) -> None:
        await rig.agent("w1")
        job = build("c1-1.build", f"verdict={code}")
        rig.reactor.add([job])
        done, report = await rig.settled(job)
        assert isinstance(report.outcome, Verdict)
        assert (report.outcome.code, done.attempt) == (VerdictCode(code), 1)

    async def test_an_incident_is_tried_again_and_then_forgotten(self, rig: Rig) -> None:
        await rig.agent("w1")
        job = build("c1-1.build", "verdict=ok incident=device at=build attempts=1")
        rig.reactor.add([job])
        done, report = await rig.settled(job)
        assert report.outcome == Verdict(code=VerdictCode.OK)
        assert (done.attempt, done.incidents) == (2, 1)

    async def test_a_slot_that_was_set_aside_works_again_without_anybodys_help(
        self, rig: Rig, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(rest, "_RESTS", (SECOND // 4,))
        await rig.agent("w1")
        jobs = [build(f"c1-{n}.build", "verdict=ok incident=device at=build attempts=1") for n in range(3)]
        rig.reactor.add(jobs)
        for job in jobs:
            done, report = await rig.settled(job)
            assert report.outcome == Verdict(code=VerdictCode.OK)
            assert (done.attempt, done.incidents) == (2, 1)
        assert "slot.set_aside" in [fact.kind for fact in rig.reactor.facts]

    async def test_a_missing_input_is_an_incident_that_names_it(self, rig: Rig) -> None:
        await rig.agent("w1")
        job = build("c1-1.build", task=digest_of(b"nobody has this"))
        rig.reactor.add([job])
        _, report = await rig.settled(job)
        assert isinstance(report.outcome, Incident)
        assert report.outcome.code is IncidentCode.MISSING_INPUT
        assert report.outcome.missing == digest_of(b"nobody has this")

    async def test_a_cancelled_job_is_stopped_through_the_standing_call(self, rig: Rig) -> None:
        await rig.agent("w1")
        job = build("c1-1.build", "hang=build")
        rig.reactor.add([job])
        await rig.running(job)
        rig.reactor.cancel(job.id, "enough")
        done, report = await rig.settled(job, 2.0)
        assert report.outcome == Stopped(reason="enough")
        assert done.attempt == 1
        after = build("c1-2.build", "verdict=ok")
        rig.reactor.add([after])
        await rig.settled(after, 2.0)

    async def test_builds_wait_while_a_benchmark_runs_on_their_machine(self, rig: Rig) -> None:
        await rig.agent("w1")
        source = b"// sim: verdict=ok run_ms=700"
        artifact = await rig.server.blobs.put(source)
        run = run_of(artifact)
        rig.reactor.add([run])

        def quiet() -> bool:
            return any(slot[4] == "quiet" for worker in rig.reactor.fleet.workers(0) for slot in worker.slots)

        await rig.reactor.until(quiet)
        job = build("c1-2.build", "verdict=ok")
        rig.reactor.add([job])
        await rig.settled(job)
        assert list(rig.reactor.settled) == [run.id, job.id]


class TestDeaths:
    async def test_a_killed_agent_gives_its_job_back_and_its_next_life_does_it(self, rig: Rig) -> None:
        process = rig.process("w1")
        job = build("c1-1.build", "verdict=ok build_ms=400")
        rig.reactor.add([job])
        await rig.running(job)
        process.kill()
        process.wait()
        rig.process("w1")
        done, report = await rig.settled(job)
        assert report.outcome == Verdict(code=VerdictCode.OK)
        assert (done.attempt, done.agent_losses) == (2, 1)

    async def test_a_dead_agents_job_goes_to_another(self, rig: Rig) -> None:
        process = rig.process("w1")
        job = build("c1-1.build", "verdict=ok build_ms=300")
        rig.reactor.add([job])
        await rig.running(job)
        process.kill()
        await rig.agent("w2")
        done, _ = await rig.settled(job)
        assert (done.worker, done.attempt) == ("w2", 2)

    async def test_a_candidate_that_kills_two_agents_is_blamed_and_runs_no_third_time(self, rig: Rig) -> None:
        job = build("c1-1.build", "crash_agent=build")
        rig.reactor.add([job])
        for _ in range(2):
            process = rig.process("w1")
            assert await asyncio.to_thread(process.wait, 20) == 70
        rig.process("w1")
        done, report = await rig.settled(job)
        assert isinstance(report.outcome, Verdict)
        assert report.outcome.code is VerdictCode.RUNTIME_ERROR
        assert "crashes workers" in report.outcome.text
        assert done.attempt == 2

    async def test_a_job_outlives_the_daemon_that_granted_it(self, rig: Rig) -> None:
        await rig.agent("w1")
        job = build("c1-1.build", "verdict=ok build_ms=1500")
        rig.reactor.add([job])
        await rig.running(job, "build")
        port = rig.server.port
        await kill_server(rig.server)
        await rig.replace_server(port=port)
        done, report = await rig.settled(job)
        assert report.outcome == Verdict(code=VerdictCode.OK)
        assert (done.attempt, done.incidents) == (1, 0)

    async def test_work_finished_while_nobody_listened_survives_the_agents_death_too(self, rig: Rig) -> None:
        process = rig.process("w1")
        job = build("c1-1.build", "verdict=compile_error build_ms=1200")
        rig.reactor.add([job])
        await rig.running(job, "build")
        port = rig.server.port
        await kill_server(rig.server)
        outbox = rig.folder / "w1" / "outbox"
        await until_true(lambda: any(item.is_file() and item.name[0] != "." for item in outbox.iterdir()))
        process.kill()
        process.wait()
        await rig.replace_server(port=port)
        rig.process("w1")
        done, report = await rig.settled(job)
        assert isinstance(report.outcome, Verdict)
        assert (report.outcome.code, done.attempt) == (VerdictCode.COMPILE_ERROR, 1)
        await until_true(lambda: not any(item.is_file() for item in outbox.iterdir()))

    async def test_a_drained_agent_finishes_its_job_and_leaves_in_good_order(self, rig: Rig) -> None:
        process = rig.process("w1")
        job = build("c1-1.build", "verdict=ok build_ms=500")
        rig.reactor.add([job, build("c1-2.build", "verdict=ok")])
        await rig.running(job)
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, 10) == 0
        assert list(rig.reactor.settled) == [job.id]
        (seen,) = rig.reactor.fleet.workers(0)
        assert (seen.state, seen.reason) == ("down", "it left: drained")

    async def test_a_job_beyond_the_grace_is_stopped_and_goes_back_uncharged(self, rig: Rig) -> None:
        process = rig.process("w1", "--grace-seconds", "0.2")
        job = build("c1-1.build", "hang=build")
        rig.reactor.add([job])
        await rig.running(job)
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, 10) == 0
        (row,) = rig.reactor.open_rows()
        assert (row.state, row.incidents, row.agent_losses) == ("queued", 0, 0)

    async def test_a_second_signal_ends_the_agent_at_once(self, rig: Rig) -> None:
        process = rig.process("w1")
        job = build("c1-1.build", "hang=build")
        rig.reactor.add([job])
        await rig.running(job)
        process.send_signal(signal.SIGTERM)
        await asyncio.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, 5) == 130

    async def test_an_agent_ends_with_its_parents_pipe(self, rig: Rig) -> None:
        process = rig.process("w1", "--exit-with-stdin", stdin=subprocess.PIPE)
        await rig.up()
        assert process.stdin is not None
        process.stdin.close()
        assert await asyncio.to_thread(process.wait, 5) == 130


async def kill_server(server: FleetServer) -> None:
    """End a server as a killed process would: connections are cut, nobody is answered."""
    server.reactor.fleet.stopping = True
    if server.reactor._timer is not None:
        server.reactor._timer.cancel()
    server.reactor.take = lambda outputs: None  # type: ignore[method-assign]
    await server._server.stop(None)
    await server.blobs.close()


class Losing(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]
    """Handles Sync calls and then loses a share of the answers."""

    def __init__(self, seed: int, share: float) -> None:
        self._dice = random.Random(seed)
        self._share = share
        self.lost = 0

    async def intercept_service(self, continuation: Callable[[Any], Any], details: Any) -> Any:
        handler = await continuation(details)
        if not details.method.endswith(("/Sync", "/Register")):
            return handler

        async def behave(request: Any, context: Any) -> Any:
            answer = await handler.unary_unary(request, context)
            if self._dice.random() < self._share:
                self.lost += 1
                await context.abort(grpc.StatusCode.UNAVAILABLE, "the answer was lost")
            return answer

        return handler._replace(unary_unary=behave)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
async def test_answers_that_are_lost_neither_lose_nor_double_work(tmp_path: Path, seed: int) -> None:
    rig = Rig(tmp_path)
    losing = Losing(seed, 0.25)
    rig.server._server = grpc.aio.server(interceptors=[losing])
    await rig.start()
    try:
        for name in ("w1", "w2"):
            await rig.agent(name)
        jobs = [build(f"c{n % 3}-{n}.build", "verdict=ok") for n in range(24)]
        rig.reactor.add(jobs)
        await rig.reactor.until(lambda: len(rig.reactor.settled) == len(jobs), 60)
        assert losing.lost > 5
        assert all(isinstance(report.outcome, Verdict) for _, report in rig.reactor.settled.values())
        assert not rig.reactor.fleet.leases.entries
    finally:
        await rig.close()


class Proxy:
    """A TCP relay that can go silent: bytes are neither delivered nor refused."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._flows = asyncio.Event()
        self._flows.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def cut(self) -> None:
        self._flows.clear()

    def heal(self) -> None:
        self._flows.set()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._port)
        for source, sink in ((reader, back), (there, writer)):
            task = asyncio.ensure_future(self._pump(source, sink))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(ConnectionError):
                while data := await source.read(65536):
                    await self._flows.wait()
                    sink.write(data)
                    await sink.drain()
        finally:
            sink.close()

    async def close(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@pytest.mark.slow
async def test_a_silent_network_never_lets_two_agents_work_on_one_job(rig: Rig) -> None:
    proxy = Proxy(rig.server.port)
    await proxy.start()
    first = await rig.agent("w1", daemon=f"127.0.0.1:{proxy.port}")
    job = build("c1-1.build", "verdict=ok build_ms=3000")
    rig.reactor.add([job])
    await rig.running(job)
    second = await rig.agent("w2")
    await rig.up(2)
    proxy.cut()

    def at_work() -> int:
        agents = (first, second)
        return sum(slot.machine.phase.value == "running" for agent in agents for slot in agent._slots.values())

    most = 0
    async with asyncio.timeout(20):
        while job.id not in rig.reactor.settled:
            most = max(most, at_work())
            await asyncio.sleep(0.01)
    assert most == 1
    done, _ = await rig.settled(job)
    assert (done.worker, done.attempt) == ("w2", 2)
    proxy.heal()
    again = build("c1-2.build", "verdict=ok")
    rig.reactor.add([again])
    await rig.settled(again)
    assert set(rig.reactor.settled) == {job.id, again.id}
    await proxy.close()


@pytest.mark.slow
async def test_a_silent_network_shows_within_fifteen_seconds_and_is_not_taken_for_a_dead_daemon(rig: Rig) -> None:
    proxy = Proxy(rig.server.port)
    await proxy.start()
    token = Token(rig.token_file)
    async with open_channel(f"127.0.0.1:{proxy.port}") as channel:
        transport = Transport(channel, token, "w1", b"nonce-01", "m1")
        facts = LauncherFacts(toolchains=(), devices=(), sandbox=())
        await transport.register(facts, [SlotFacts(name="b0", kind=SlotKind.BUILD)], [], [])
        proxy.cut()
        sync = SendSync(seq=1, accepting=True, state=Idle(), deadline=60 * SECOND)
        begin = time.monotonic()
        with pytest.raises(CallFailed) as failed:
            await transport.sync("b0", sync)
    assert time.monotonic() - begin < 15
    assert not failed.value.down
    await proxy.close()


class TestDoors:
    async def test_calls_without_a_deadline_are_refused(self, rig: Rig) -> None:
        metadata = (("authorization", f"Bearer {rig.server.token}"),)
        async with open_channel(rig.server.address) as channel:
            stub: Any = worker_pb2_grpc.WorkerServiceStub(channel)
            for call, request in (
                (stub.Register, worker_pb2.RegisterRequest()),
                (stub.Sync, worker_pb2.SyncRequest()),
                (stub.Leave, worker_pb2.LeaveRequest()),
            ):
                with pytest.raises(grpc.aio.AioRpcError, match="no deadline") as refused:
                    await call(request, metadata=metadata)
                assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT

    async def test_an_agent_with_a_wrong_token_waits_until_it_is_mended(self, rig: Rig) -> None:
        rig.token_file.write_text("wrong")
        agent = await rig.agent("w1")
        await until_true(lambda: "UNAUTHENTICATED" in agent._last_complaint)
        rig.token_file.write_text(rig.server.token)
        await rig.up()

    async def test_a_dropped_call_is_told_to_the_fleet(self, rig: Rig) -> None:
        agent = await rig.agent("w1")
        await rig.reactor.until(lambda: len(rig.reactor.fleet.calls.parked) == 2)
        agent.abandon()
        await rig.reactor.until(lambda: not rig.reactor.fleet.calls.parked)
        assert len(rig.reactor.fleet.sessions.by_session) == 1

    async def test_a_daemon_of_another_protocol_ends_the_agent_for_good(self, tmp_path: Path) -> None:
        class Newer(worker_pb2_grpc.WorkerServiceServicer):
            async def Register(self, request: Any, context: Any) -> worker_pb2.RegisterResponse:
                status = worker_pb2.REGISTER_STATUS_WRONG_PROTOCOL
                return worker_pb2.RegisterResponse(status=status, text="speak 7")

            async def Sync(self, request: Any, context: Any) -> worker_pb2.SyncResponse:
                raise AssertionError("it must not go on")

            async def Leave(self, request: Any, context: Any) -> worker_pb2.LeaveResponse:
                return worker_pb2.LeaveResponse()

        server = grpc.aio.server()
        worker_pb2_grpc.add_WorkerServiceServicer_to_server(Newer(), server)
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        (tmp_path / "token").write_text("t")
        command = [sys.executable, "-m", "kfd_worker.cli", "run", "--executor", "simulated", "--name", "w1"]
        command += ["--daemon", f"127.0.0.1:{port}", "--token-file", str(tmp_path / "token")]
        command += ["--state-dir", str(tmp_path / "state"), "--log-format", "json"]
        process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
        _, stderr = await asyncio.wait_for(process.communicate(), 20)
        assert process.returncode == 78
        assert b"speak 7" in stderr
        await server.stop(None)


class TestBlobs:
    @pytest.fixture
    async def client(self, rig: Rig) -> AsyncIterator[BlobClient]:
        token = Token(rig.token_file)
        token.read()
        async with open_channel(rig.server.address, own_connection=True) as channel:
            yield BlobClient(channel, token)

    async def test_a_large_file_goes_up_and_comes_down(self, rig: Rig, client: BlobClient, tmp_path: Path) -> None:
        data = os.urandom(3 << 20)
        (tmp_path / "up").write_bytes(data)
        await client.upload(digest_of(data), tmp_path / "up")
        await client.upload(digest_of(data), tmp_path / "up")
        assert await rig.server.blobs.get(digest_of(data)) == data
        with (tmp_path / "down").open("wb") as file:
            await client.download(digest_of(data), file, 0)
        assert (tmp_path / "down").read_bytes() == data

    async def test_an_upload_goes_on_where_another_was_cut(self, rig: Rig, client: BlobClient, tmp_path: Path) -> None:
        data = os.urandom(1 << 20)

        async def part() -> AsyncIterator[bytes]:
            yield data[:700_000]

        await rig.server.blobs.write(digest_of(data), 0, part())
        (tmp_path / "up").write_bytes(b"\0" * 700_000 + data[700_000:])
        await client.upload(digest_of(data), tmp_path / "up")
        assert await rig.server.blobs.get(digest_of(data)) == data

    async def test_what_the_daemon_does_not_have_is_said_to_be_missing(
        self, client: BlobClient, tmp_path: Path
    ) -> None:
        with (tmp_path / "down").open("wb") as file, pytest.raises(BlobMissing):
            await client.download(digest_of(b"nobody"), file, 0)

    async def test_a_file_that_is_not_what_its_digest_says_is_refused(self, client: BlobClient, tmp_path: Path) -> None:
        (tmp_path / "up").write_bytes(b"other")
        with pytest.raises(CallFailed) as failed:
            await client.upload(digest_of(b"wrong"), tmp_path / "up")
        assert failed.value.refused


async def test_fake_agents_finish_everything_over_the_real_protocol(rig: Rig) -> None:
    agents = asyncio.ensure_future(run_agents(rig.server.address, rig.server.token, agents=2, build=2, run=1))
    jobs = [build(f"c{n % 4}-{n}.build", f"n={n}") for n in range(200)]
    rig.reactor.add(jobs)
    await rig.reactor.until(lambda: len(rig.reactor.settled) == len(jobs))
    codes = {report.outcome.code for _, report in rig.reactor.settled.values()}
    assert codes == {VerdictCode.OK, VerdictCode.COMPILE_ERROR}
    assert all(job.attempt == 1 for job, _ in rig.reactor.settled.values())
    port = rig.server.port
    await kill_server(rig.server)
    await rig.replace_server(port=port)
    more = [build(f"c9-{n}.build", f"n={n}") for n in range(50)]
    rig.reactor.add(more)
    await rig.reactor.until(lambda: all(job.id in rig.reactor.settled for job in more))
    agents.cancel()
    await asyncio.gather(agents, return_exceptions=True)


def test_the_quick_policy_keeps_the_order_that_the_protocol_needs() -> None:
    assert QUICK.busy_hold < QUICK.lease_ttl - QUICK.guard
    assert QUICK.guard > 100 * MILLISECOND
