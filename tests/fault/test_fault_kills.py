"""kill -9 of daemon and agents at seeded moments changes nothing in what a campaign comes to."""

from __future__ import annotations

import asyncio
import os
import random
import sqlite3
import time
from collections import Counter
from pathlib import Path

import pytest

from kfd.tasks import pack
from kfd.testing.scripted_server import Request, ScriptedServer, Step, answer
from kfd.testing.sim_task import source_with, write_sim_task
from tests.e2e.harness import Agent, Daemon

CAMPAIGNS = 20
CANDIDATES = 20
KILLS = int(os.environ.get("KFD_KILLS", "10"))
VERDICTS = ("ok", "ok", "compile_error", "incorrect", "ok", "runtime_error", "timeout")

CONFIG = """
[disk]
floor_mb = 1
[campaign]
in_flight = 4
[campaign.search.operators]
patch = 0.0
[[llm.models]]
name = "scripted"
model = "scripted"
base_url = "{url}"
"""


def answer_for(candidate: str) -> str:
    """The answer depends on the candidate's place only, so that counts do not depend on the order of events."""
    ordinal = int(candidate.rpartition("-")[2])
    verdict = VERDICTS[ordinal % len(VERDICTS)]
    speed = 0.8 + (ordinal * 37 % 100) / 50
    block = source_with(f"verdict={verdict} speedup={speed:.2f} build_ms=10 run_ms=20", ordinal)
    return f"Here it is.\n```cpp\n{block}```\n"


def expected() -> Counter[str]:
    """Outcomes of a campaign that nobody disturbs: the initial kernel is ok."""
    return Counter(["ok", *(VERDICTS[ordinal % len(VERDICTS)] for ordinal in range(1, CANDIDATES + 1))])


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1])
async def test_kills_at_seeded_moments_change_no_count(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    archive = pack(write_sim_task(tmp_path / "task"))

    def respond(request: Request) -> Step:
        return answer(answer_for(request.headers["x-client-request-id"]))

    async with ScriptedServer(respond) as server:
        await asyncio.to_thread(_run, tmp_path, archive, server.url, dice)


def _run(tmp_path: Path, archive: bytes, url: str, dice: random.Random) -> None:
    daemon = Daemon(tmp_path, config=CONFIG.format(url=url))
    agents = [Agent(tmp_path, daemon, f"agent{i}", "--executor", "simulated", "--build-lanes", "2") for i in range(2)]
    daemon.start()
    try:
        for agent in agents:
            agent.start()
        ids = [daemon.submit(archive, f"key-{i}", seed=i + 1) for i in range(CAMPAIGNS)]
        for _ in range(KILLS):
            time.sleep(dice.uniform(0.2, 1.2))
            victim = dice.choice(["daemon", "agent0", "agent1"])
            if victim == "daemon":
                daemon.kill()
                daemon.start()
            else:
                agent = agents[int(victim[-1])]
                agent.kill()
                agent.start()
        for id_ in ids:
            campaign = daemon.wait_ended(id_, 240)
            assert campaign.state == "finished", campaign.reason
            counts = Counter({count.key: count.value for count in campaign.candidates_by_outcome})
            assert counts == expected()
            ordinals = [candidate.ordinal for candidate in daemon.candidates(id_)]
            assert ordinals == list(range(CANDIDATES + 1))
            assert campaign.final_speeds
        assert daemon.terminate() == 0
    finally:
        for process in (*agents, daemon):
            process.kill()
    _check_store(daemon.state / "kfd.sqlite3")


def _check_store(database: Path) -> None:
    """No candidate judged twice, no job settled twice, no report lost, the file whole."""
    store = sqlite3.connect(database)
    assert store.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert store.execute("PRAGMA foreign_key_check").fetchall() == []
    doubled = store.execute(
        "SELECT body ->> 'candidate', count(*) FROM event WHERE kind = 'candidate.judged' "
        "GROUP BY 1 HAVING count(*) > 1"
    ).fetchall()
    assert doubled == []
    judged = store.execute("SELECT count(*) FROM candidate WHERE state = 'judged'").fetchone()[0]
    events = store.execute("SELECT count(*) FROM event WHERE kind = 'candidate.judged'").fetchone()[0]
    assert judged == events == CAMPAIGNS * (CANDIDATES + 1)
    seqs = store.execute("SELECT count(*), min(seq), max(seq) FROM event").fetchone()
    assert seqs[0] == seqs[2] - seqs[1] + 1
    assert store.execute("SELECT count(*) FROM job WHERE state <> 'settled'").fetchone() == (0,)
    store.close()
