"""One task for two targets, submitted by one command: a campaign and an archive for each, with shared lineage."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from kfd.api.v1 import control_pb2
from kfd.testing.scripted_server import Request, ScriptedServer, Step, answer
from kfd.testing.sim_task import source_with, write_sim_task
from tests.e2e.harness import Agent, Daemon, clean_environment

CONFIG = """
[campaign]
in_flight = 3
[[llm.models]]
name = "model"
base_url = "{url}"
"""
CANDIDATES = 16


def respond(request: Request) -> Step:
    """A kernel of its own for every question, each faster than the one before."""
    campaign, _, ordinal = request.headers["x-client-request-id"].rpartition("-")
    speedup = 1 + int(ordinal) / 10
    block = source_with(f"verdict=ok speedup={speedup:.1f} build_ms=1 run_ms=1", f"{campaign}_{ordinal}")
    return answer(f"Faster.\n```cpp\n{block}```\n")


def client(daemon: Daemon, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kfd_client.cli", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=clean_environment(KFD_STATE_DIR=str(daemon.state)),
    )


@pytest.mark.slow
async def test_two_targets_have_two_archives_and_share_their_elites(tmp_path: Path) -> None:
    task = write_sim_task(tmp_path / "task")
    config = (task / "config.yaml").read_text("utf-8")
    (task / "config.yaml").write_text(
        config.replace("target: sim:device", "targets: [sim:device, sim:other]"), encoding="utf-8"
    )

    def run(url: str) -> tuple[list[control_pb2.Campaign], list[list[control_pb2.Candidate]], str, str]:
        with (
            Daemon(tmp_path, config=CONFIG.format(url=url)) as daemon,
            Agent(tmp_path, daemon, "agent", "--executor", "simulated", "--build-lanes", "2"),
        ):
            submitted = client(
                daemon, "submit", str(task), "--target", "all", "--name", "both", "--candidates", str(CANDIDATES)
            )
            assert submitted.returncode == 0, submitted.stdout + submitted.stderr
            ids = submitted.stdout.split()
            ended = [daemon.wait_ended(id_, 120) for id_ in ids]
            candidates = [daemon.candidates(id_) for id_ in ids]
            moved = next(one for one in candidates[0] if one.operator == "migrate")
            shown = client(daemon, "show", moved.id)
            proofs = [
                subprocess.run(
                    [sys.executable, "-m", "kfd.daemon.cli", "debug", "replay", id_, "--state-dir", str(daemon.state)],
                    capture_output=True,
                    text=True,
                    timeout=60,
                    check=False,
                    env=clean_environment(),
                ).stdout
                for id_ in ids
            ]
            return ended, candidates, shown.stdout, "\n".join(proofs)

    async with ScriptedServer(respond) as server:
        campaigns, candidates, shown, proofs = await asyncio.to_thread(run, server.url)

    assert [(one.target, one.name, one.state) for one in campaigns] == [
        ("sim:device", "both-device", "finished"),
        ("sim:other", "both-other", "finished"),
    ]
    for mine, theirs in (candidates, candidates[::-1]):
        migrants = [one for one in mine if one.operator == "migrate"]
        bred = {one.id: one for one in theirs if one.operator == "rewrite" or one.operator == "patch"}
        assert migrants
        assert {parent for one in migrants for parent in one.parents} <= bred.keys()
        assert {one.model for one in migrants} == {""}
        assert len({one.parents[0] for one in migrants}) == len(migrants)
        assert sum(one.operator != "initial" for one in mine) == CANDIDATES
    assert candidates[1][0].campaign in shown, "the origin is named"
    assert proofs.count("decisions") == 2, proofs
    assert "difference" not in proofs
