"""A state folder on a small file system that really fills up: new work stops, nothing is lost, work goes on after."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from kfd.tasks import pack
from kfd.testing.scripted_server import Request, ScriptedServer, Step, answer
from kfd.testing.sim_task import source_with, write_sim_task
from tests.e2e.harness import Agent, Daemon, wait_for

CANDIDATES = 60

CONFIG = """
[disk]
floor_mb = {floor}
[campaign.search.operators]
patch = 0.0
repair_depth = 0
[llm]
backoff_s = 0.05
[[llm.models]]
name = "scripted"
base_url = "{url}"
"""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 12 MiB."""
    mount = tmp_path / "small"
    mount.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(mount)], check=False)
    if done.returncode:
        pytest.skip("only root may mount a file system")
    yield mount
    subprocess.run(["umount", "-l", str(mount)], check=False)


def respond(request: Request) -> Step:
    ordinal = int(request.headers["x-client-request-id"].rpartition("-")[2])
    filler = "".join(f"// {ordinal} {line} {hash((ordinal, line))}\n" for line in range(200))
    block = filler + source_with("verdict=ok speedup=1.2 build_ms=20 run_ms=20", ordinal)
    return answer(f"Here.\n```cpp\n{block}```\n")


@pytest.mark.slow
@pytest.mark.parametrize("floor", [0, 2], ids=["SQLite meets the end of the disk", "the floor stops before"])
async def test_a_full_disk_stops_new_work_and_loses_nothing(tmp_path: Path, small_disk: Path, floor: int) -> None:
    archive = pack(write_sim_task(tmp_path / "task"))
    async with ScriptedServer(respond) as server:
        config = CONFIG.format(url=server.url, floor=floor)
        await asyncio.to_thread(_run, tmp_path, small_disk, archive, config)


def _run(tmp_path: Path, small_disk: Path, archive: bytes, config: str) -> None:
    daemon = Daemon(tmp_path, config=config)
    daemon.state = small_disk / "state"
    with daemon, Agent(tmp_path, daemon, "agent", "--executor", "simulated"):
        id_ = daemon.submit(archive, "key", candidates=CANDIDATES, generator="openai")
        wait_for("some candidates", lambda: len(daemon.candidates(id_)) > 8)
        ballast = small_disk / "ballast"
        with ballast.open("wb") as file:
            try:
                while True:
                    file.write(os.urandom(1 << 16))
                    file.flush()
            except OSError:
                pass
        seen = len(daemon.candidates(id_))
        time.sleep(4)
        assert daemon.is_alive, daemon.tail()
        stalled = daemon.campaign(id_)
        assert stalled.state == "running"
        assert len(daemon.candidates(id_)) <= seen + 8
        ballast.unlink()
        campaign = daemon.wait_ended(id_, 120)
        assert campaign.state == "finished", campaign.reason
        counts = Counter({count.key: count.value for count in campaign.candidates_by_outcome})
        assert counts == Counter({"ok": CANDIDATES + 1}), daemon.tail()
        assert daemon.terminate() == 0
