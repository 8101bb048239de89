"""Fake agents over real gRPC that finish every job at once: for measuring the daemon, not for doing work.

They speak the protocol in full (registration, one standing Sync per slot with sequence numbers and the boot's
echo, outcomes of the simulated toolchain) and skip what costs an agent time: no outbox, no artifact is uploaded
or fetched, nothing waits. Outcomes are those of ``kfd_worker``'s simulator, derived from the digest of a source.

``python -m kfd.testing.sim_agent --daemon 127.0.0.1:PORT --token-file FILE --agents 2 --build 2 --run 2``
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import grpc

from kfd.api.v1 import common_pb2, worker_pb2, worker_pb2_grpc
from kfd.base.digest import digest_of
from kfd.base.version import PROTOCOL_MAX, PROTOCOL_MIN, VERSION

__all__ = ["SimAgent", "outcome_of", "run_agents"]

_TOOLCHAIN, _TARGET = "sim", "sim:device"
_BASE_NS = 1_000_000
_ROUNDS = 8

_OPTIONS = (
    ("grpc.keepalive_time_ms", 8_000),
    ("grpc.keepalive_timeout_ms", 4_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
)


def outcome_of(spec: worker_pb2.JobSpec) -> worker_pb2.Report:
    """What becomes of a job, from the digest of its source or artifact: the same for ever.

    One build in eight does not compile; one run in eight is incorrect; the rest are between half and three times
    as fast as the reference.
    """
    if spec.WhichOneof("work") == "build":
        digest = digest_of(spec.build.source.encode())
        if int(digest.hash[:4], 16) % 8 == 0:
            code, text = common_pb2.VERDICT_CODE_COMPILE_ERROR, "kernel:1:1: simulated"
            return worker_pb2.Report(verdict=worker_pb2.Verdict(code=code, text=text), build=worker_pb2.BuildResult())
        artifact = common_pb2.Digest(hash=digest.hash, size=digest.size)
        return worker_pb2.Report(
            verdict=worker_pb2.Verdict(code=common_pb2.VERDICT_CODE_OK),
            build=worker_pb2.BuildResult(artifact=artifact),
        )
    if spec.WhichOneof("work") == "admit":
        return worker_pb2.Report(
            verdict=worker_pb2.Verdict(code=common_pb2.VERDICT_CODE_OK),
            admit=worker_pb2.AdmitResult(probes=[worker_pb2.Probe(name="simulated", passed=True)]),
        )
    return _run(spec.run)


def _run(work: worker_pb2.RunSpec) -> worker_pb2.Report:
    wrong = int(work.artifact.hash[4:8], 16) % 8 == 0
    case = worker_pb2.CaseResult(name="sim", passed=not wrong, worst=100.0 if wrong else 0.1)
    if wrong:
        return worker_pb2.Report(
            verdict=worker_pb2.Verdict(code=common_pb2.VERDICT_CODE_INCORRECT, text="case sim differs"),
            run=worker_pb2.RunResult(cases=[case], ran=work.artifact),
        )
    speed = _speed(work.artifact.hash)
    speeds = [("reference", speed)]
    if work.HasField("initial_artifact"):
        speeds.append(("initial", speed / _speed(work.initial_artifact.hash)))
    if work.HasField("incumbent_artifact"):
        speeds.append(("incumbent", speed / _speed(work.incumbent_artifact.hash)))
    return worker_pb2.Report(
        verdict=worker_pb2.Verdict(code=common_pb2.VERDICT_CODE_OK),
        run=worker_pb2.RunResult(
            cases=[case],
            ran=work.artifact,
            comparisons=[
                worker_pb2.Comparison(
                    name="sim",
                    baseline=name,
                    candidate_ns=[max(1, round(_BASE_NS / value))] * _ROUNDS,
                    baseline_ns=[_BASE_NS] * _ROUNDS,
                )
                for name, value in speeds
            ],
            speedups=[
                worker_pb2.Speedup(
                    baseline=name,
                    value=value,
                    low=value * 0.99,
                    high=value * 1.01,
                    rounds=_ROUNDS,
                    worst_case="sim",
                    worst_value=value,
                )
                for name, value in speeds
            ],
        ),
    )


def _speed(hash_: str) -> float:
    return float(0.5 + (int(hash_[8:16], 16) % 10_000) / 4_000)


@dataclass
class SimAgent:
    """One fake agent. ``decide`` turns a job into a report."""

    name: str
    build: int
    run: int
    decide: Callable[[worker_pb2.JobSpec], worker_pb2.Report] = outcome_of
    nonce: bytes = field(default_factory=lambda: os.urandom(16))
    finished: int = 0

    async def work(self, address: str, token: str) -> None:
        """Work until cancelled. Failed calls are tried again after a moment."""
        metadata = (("authorization", f"Bearer {token}"),)
        async with grpc.aio.insecure_channel(address, options=_OPTIONS) as channel:
            stub: Any = worker_pb2_grpc.WorkerServiceStub(channel)
            while True:
                try:
                    session, boot = await self._register(stub, metadata)
                    async with asyncio.TaskGroup() as slots:
                        for slot in self._slots():
                            slots.create_task(self._slot(stub, metadata, slot.slot, session, boot))
                except* grpc.aio.AioRpcError:
                    pass
                # Reached when the daemon is away or asks for a new session.
                await asyncio.sleep(0.1)

    def _slots(self) -> list[worker_pb2.SlotOffer]:
        slots = [
            worker_pb2.SlotOffer(slot=f"b{n}", kind=common_pb2.SLOT_KIND_BUILD, cores=1) for n in range(self.build)
        ]
        slots += [
            worker_pb2.SlotOffer(
                slot=f"r{n}",
                kind=common_pb2.SLOT_KIND_RUN,
                device=worker_pb2.DeviceFacts(id=f"{self.name}-{n}", name="simulated device"),
                cores=1,
            )
            for n in range(self.run)
        ]
        return slots

    async def _register(self, stub: Any, metadata: tuple[tuple[str, str], ...]) -> tuple[str, bytes]:
        fingerprint = digest_of(b"sim 1")
        request = worker_pb2.RegisterRequest(
            worker=self.name,
            boot_nonce=self.nonce,
            machine_id=self.name,
            protocol=worker_pb2.ProtocolRange(min=PROTOCOL_MIN, max=PROTOCOL_MAX),
            agent_version=VERSION,
            slots=self._slots(),
            toolchains=[
                worker_pb2.Toolchain(
                    name=_TOOLCHAIN,
                    version="1",
                    fingerprint=common_pb2.Digest(hash=fingerprint.hash, size=fingerprint.size),
                    targets=[_TARGET],
                )
            ],
        )
        while True:
            response = await stub.Register(request, timeout=20, metadata=metadata)
            if response.status == worker_pb2.REGISTER_STATUS_OK:
                return response.session, response.daemon_boot
            await asyncio.sleep(0.2)

    async def _slot(
        self, stub: Any, metadata: tuple[tuple[str, str], ...], slot: str, session: str, boot: bytes
    ) -> None:
        """One slot's life within a session; returns when the session is over."""
        request = worker_pb2.SyncRequest(
            session=session, daemon_boot=boot, slot=slot, seq=1, accepting=True, idle=worker_pb2.Idle()
        )
        # Sequence numbers go on over sessions of one agent process; the clock gives a base that grows.
        request.seq = asyncio.get_running_loop().time().__trunc__() * 1_000_000 + 1
        while True:
            response = await stub.Sync(request, timeout=40, metadata=metadata)
            request.seq += 1
            if response.status != worker_pb2.SYNC_STATUS_OK:
                if response.status == worker_pb2.SYNC_STATUS_SUPERSEDED:
                    continue
                return
            if response.WhichOneof("directive") == "start":
                start = response.start
                request.finished.CopyFrom(worker_pb2.FinishedJob(lease=start.lease, report=self.decide(start.job)))
                self.finished += 1
            elif response.HasField("acknowledged") or request.WhichOneof("state") != "finished":
                request.idle.CopyFrom(worker_pb2.Idle())


async def run_agents(
    address: str, token: str, *, agents: int = 2, build: int = 2, run: int = 2, prefix: str = "sim"
) -> None:
    """Run fake agents until cancelled."""
    async with asyncio.TaskGroup() as group:
        for n in range(agents):
            group.create_task(SimAgent(f"{prefix}-{n}", build, run).work(address, token))


@click.command()
@click.option("--daemon", required=True, metavar="HOST:PORT")
@click.option("--token-file", required=True, type=click.Path(path_type=Path))
@click.option("--agents", default=2, show_default=True)
@click.option("--build", default=2, show_default=True, help="Build lanes of each agent.")
@click.option("--run", "run_slots", default=2, show_default=True, help="Run slots of each agent.")
@click.option("--prefix", default="sim", show_default=True, help="Names are PREFIX-0, PREFIX-1, ...")
def main(daemon: str, token_file: Path, agents: int, build: int, run_slots: int, prefix: str) -> None:
    """Run fake agents until SIGTERM."""
    token = token_file.read_text("ascii").strip()

    async def serve() -> None:
        task = asyncio.ensure_future(
            run_agents(daemon, token, agents=agents, build=build, run=run_slots, prefix=prefix)
        )
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        await asyncio.gather(task, return_exceptions=True)

    click.echo(json.dumps({"started": agents}))
    asyncio.run(serve())


if __name__ == "__main__":
    main()
