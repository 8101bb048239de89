"""Durable candidates a second through the whole path.

In-process completer, real prompts, answer parsing, source features, engine, SQLite at synchronous=FULL, and fake
agents in a process of their own over real gRPC: every candidate is built and run as far as the daemon can tell.
Left out are the model, the compilers and the device; artifacts carry no bytes.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import sqlite3
import sys
import tempfile
import time
import zlib
from pathlib import Path

import grpc
import uvloop

from benchmarks.figures import Figure, report
from kfd.api.v1 import blob_pb2, blob_pb2_grpc, common_pb2, control_pb2, control_pb2_grpc
from kfd.base.digest import digest_of
from kfd.daemon.config import Config
from kfd.daemon.lifespan import Daemon, started
from kfd.daemon.state import StateFolder
from kfd.daemon.telemetry import configure_logging
from kfd.llm.port import Answer, Ask, Usage
from kfd.tasks import pack
from kfd.testing.sim_task import source_with, write_sim_task


class InProcess:
    """Answers at once, every answer another kernel."""

    name = "inproc"

    async def answer(self, ask: Ask) -> Answer:
        speed = 0.6 + zlib.crc32(ask.candidate.encode()) % 1000 / 500
        block = source_with(f"verdict=ok speedup={speed:.3f}", ask.candidate.rpartition("-")[2])
        text = f"Done.\n```cpp\n{block}```\n"
        return Answer(text=text, finish_reason="stop", model="inproc", usage=Usage())

    async def close(self) -> None:
        """Nothing to release."""


def commit_seconds(folder: Path, count: int = 100) -> float:
    """Median time of one small commit at synchronous=FULL on this disk, in seconds."""
    connection = sqlite3.connect(folder / "probe.sqlite3", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE t (body TEXT)")
    times = []
    for _ in range(count):
        begun = time.perf_counter()
        connection.execute("INSERT INTO t VALUES (?)", ("x" * 500,))
        times.append(time.perf_counter() - begun)
    connection.close()
    return sorted(times)[len(times) // 2]


async def submit(daemon: Daemon, archive: bytes, candidates: int, in_flight: int, campaigns: int) -> list[str]:
    """Upload the task and start the campaigns; their ids."""
    async with grpc.aio.insecure_channel(daemon.address) as channel:
        metadata = (("authorization", f"Bearer {daemon.token}"),)
        digest = digest_of(archive)
        message = common_pb2.Digest(hash=digest.hash, size=digest.size)
        blobs = blob_pb2_grpc.BlobServiceStub(channel)

        async def parts():  # type: ignore[no-untyped-def]
            yield blob_pb2.WriteRequest(header=blob_pb2.WriteHeader(digest=message, offset=0))
            yield blob_pb2.WriteRequest(data=archive)

        await blobs.Write(parts(), metadata=metadata, timeout=30)
        control = control_pb2_grpc.ControlServiceStub(channel)
        ids = []
        for number in range(campaigns):
            options = control_pb2.CampaignOptions(
                generator="inproc", candidates=candidates, in_flight=in_flight, seed=number + 1
            )
            request = control_pb2.SubmitCampaignRequest(
                idempotency_key=f"bench-{number}", task=message, options=options
            )
            ids.append((await control.SubmitCampaign(request, metadata=metadata, timeout=30)).campaign)
        return ids


async def measure(total: int, campaigns: int, agents: int, in_flight: int, folder: Path) -> list[Figure]:
    """Run the campaigns and measure."""
    archive = pack(write_sim_task(folder / "task"))
    commit = commit_seconds(folder)
    state = StateFolder(folder / "state")
    config = Config.model_validate(
        {
            "server": {"listen": "127.0.0.1:0"},
            "disk": {"floor_mb": 0},
            "campaign": {"search": {"operators": {"patch": 0.0}}},  # a stub cannot know its parent's text
        }
    )
    each = -(-total // campaigns)
    async with started(config, state, extra_generators={"inproc": InProcess()}) as daemon:
        fleet = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "kfd.testing.sim_agent", "--daemon", daemon.address),
            *("--token-file", str(state.token_file), "--agents", str(agents), "--build", "4", "--run", "4"),
            stdout=asyncio.subprocess.DEVNULL,
        )
        try:
            while len(daemon.reactor.engine.fleet.workers(time.monotonic_ns())) < agents:
                await daemon.reactor.committed(1.0)
            before = resource.getrusage(resource.RUSAGE_SELF)
            begun = time.monotonic()
            await submit(daemon, archive, each, in_flight, campaigns)
            while daemon.reactor.engine.campaigns:
                await daemon.reactor.committed(1.0)
                if time.monotonic() - begun > 1200:
                    raise TimeoutError("the campaigns did not end within 20 minutes")
            seconds = time.monotonic() - begun
            after = resource.getrusage(resource.RUSAGE_SELF)
        finally:
            fleet.terminate()
            await fleet.wait()
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    judged, first, last = tenths(state.database, total)
    note = (
        f"{judged} candidates judged in {seconds:.1f} s, {campaigns} campaigns, {agents} fake agents in one process; "
        f"one commit on this disk takes {commit * 1e3:.2f} ms (median of 100); {os.cpu_count()} cores"
    )
    return [
        Figure(
            figure="throughput.candidates_per_s",
            value=judged / seconds,
            unit="1/s",
            bar=200,
            n=judged,
            note=note,
        ),
        Figure(
            figure="throughput.last_over_first_tenth",
            value=first / last if last else 0.0,
            unit="x",
            bar=0.8,
            n=judged // 10,
            note="rate over the last tenth of the candidates / rate over the first tenth",
        ),
        Figure(
            figure="throughput.cpu_ms_per_candidate",
            value=cpu / judged * 1e3,
            unit="ms",
            note="daemon process",
        ),
        Figure(figure="throughput.commit_ms", value=commit * 1e3, unit="ms", note="this disk, synchronous=FULL"),
    ]


def tenths(database: Path, total: int) -> tuple[int, float, float]:
    """(judged candidates, seconds the first tenth took, seconds the last tenth took), from the event log's times."""
    connection = sqlite3.connect(database)
    rows = connection.execute(
        "SELECT julianday(at) * 86400.0 FROM event WHERE kind = 'candidate.judged' ORDER BY seq"
    ).fetchall()
    connection.close()
    times = [row[0] for row in rows]
    if len(times) < total:
        raise AssertionError(f"only {len(times)} of {total} candidates were judged")
    tenth = len(times) // 10
    return len(times), times[tenth] - times[0], times[-1] - times[-1 - tenth]


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--candidates", type=int, default=5000)
    parser.add_argument("--campaigns", type=int, default=4)
    parser.add_argument("--agents", type=int, default=2)
    parser.add_argument("--in-flight", type=int, default=24)
    arguments = parser.parse_args()
    configure_logging("json", "error")
    with tempfile.TemporaryDirectory(prefix="kfd-bench-") as folder:
        run = measure(arguments.candidates, arguments.campaigns, arguments.agents, arguments.in_flight, Path(folder))
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            figures = runner.run(run)
    return report(figures)


if __name__ == "__main__":
    sys.exit(main())
