"""A campaign with the search's mechanisms on, through the real daemon: hints, sweeps, a plateau, and its proof."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from kfd.api.v1 import control_pb2
from kfd.tasks import pack
from kfd.testing.scripted_server import Request, ScriptedServer, Step, answer
from kfd.testing.sim_task import source_with, write_sim_task
from tests.e2e.harness import Agent, Daemon, clean_environment

CANDIDATES = 60

CONFIG = """
[campaign]
in_flight = 4
[campaign.search]
models = {{ large = 1, small = 3 }}
[campaign.search.operators]
patch = 0.0
template_every = 12
[campaign.search.hints]
limit = 3
threshold = 0.0
min_moves = 1
[campaign.search.bandit]
[campaign.search.plateau]
patience = 4
min_gain = 0.5
[[llm.models]]
name = "large"
base_url = "{url}"
[[llm.models]]
name = "small"
base_url = "{url}"
"""

SHAPES = ("", "#pragma omp parallel for\n", "__attribute__((vector_size(16))) float v;\n")
"""What moves kernels to other cells."""


def respond(request: Request) -> Step:
    """A kernel for everything, with tunables where a template is asked for."""
    ordinal = int(request.headers["x-client-request-id"].rpartition("-")[2])
    block = source_with(f"verdict=ok speedup={1 + ordinal % 7 / 10:.1f} build_ms=2 run_ms=2", ordinal)
    if "Turn the kernel above into a template" in request.prompt:
        block = "// [TUNE] TILE in {8, 16, 32}; VEC in {1, 2}; where TILE * VEC <= 32\n" + block
    return answer(f"Faster.\n```cpp\n{SHAPES[ordinal % 3]}{block}```\n")


def replayed(campaign: str, state: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kfd.daemon.cli", "debug", "replay", campaign, "--state-dir", state],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=clean_environment(),
    )


@pytest.mark.slow
async def test_a_campaign_hints_sweeps_reacts_and_is_proved_by_its_replay(tmp_path: Path) -> None:
    archive = pack(write_sim_task(tmp_path / "task"))

    def run(url: str) -> tuple[control_pb2.Campaign, list[control_pb2.Candidate], str, str]:
        with (
            Daemon(tmp_path, config=CONFIG.format(url=url)) as daemon,
            Agent(tmp_path, daemon, "agent", "--executor", "simulated", "--build-lanes", "2"),
        ):
            id_ = daemon.submit(archive, "key", candidates=CANDIDATES, generator="openai", seed=5)
            ended = daemon.wait_ended(id_, 120)
            point = next(one for one in daemon.candidates(id_) if one.operator == "tune" and one.outcome == "ok")
            with daemon.control() as control:
                asked = control_pb2.GetCandidateRequest(candidate=point.id, source=True)
                source = control.GetCandidate(asked, timeout=10).source
            return ended, daemon.candidates(id_), source, str(daemon.state)

    async with ScriptedServer(respond) as server:
        campaign, candidates, source, state = await asyncio.to_thread(run, server.url)

    assert campaign.state == "finished", campaign.reason
    operators = {one.operator for one in candidates}
    assert {"rewrite", "template", "tune"} <= operators
    points = [one for one in candidates if one.operator == "tune"]
    assert {(one.strategy, one.model, bool(one.point)) for one in points} == {("sweep", "", True)}
    by_template = [(one.parents[0], one.point) for one in points]
    assert len(set(by_template)) == len(by_template)
    assert "[TUNED]" in source
    assert {one.asked_model for one in candidates if one.operator == "rewrite"} == {"large", "small"}
    assert any(one.hints for one in candidates)
    assert any(one.reaction for one in candidates)
    proof = await asyncio.to_thread(replayed, campaign.id, state)
    assert proof.returncode == 0, proof.stdout + proof.stderr
    assert f"{len(candidates) - 1} decisions" in proof.stdout
