"""One campaign that shows all that the search learns with: in its status, its prompts, its log, and in its replay."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections import Counter
from pathlib import Path

import pytest

from kfd.api.v1 import control_pb2
from kfd.tasks import pack
from kfd.testing.scripted_server import Request, ScriptedServer, Step, answer
from kfd.testing.sim_task import source_with, write_sim_task
from tests.e2e.harness import Agent, Daemon
from tests.e2e.test_e2e_prompts import client, edit, last_line
from tests.e2e.test_e2e_search import SHAPES, replayed

CANDIDATES = 140

CONFIG = """
[campaign]
in_flight = 4
[campaign.search]
models = {{ strong = 1, weak = 1 }}
[campaign.search.operators]
rewrite = 1.0
patch = 0.0
repair_depth = 0
template_every = 50
[campaign.search.sweep]
budget = 6
[campaign.search.hints]
limit = 3
threshold = 0.0
min_moves = 1
[campaign.search.bandit]
floor = 0.1
[campaign.search.prompts]
period = 10
min_children = 2
model = "meta"
[campaign.search.plateau]
patience = 15
min_gain = 0.001
[[llm.models]]
name = "strong"
base_url = "{url}"
[[llm.models]]
name = "weak"
base_url = "{url}"
[[llm.models]]
name = "meta"
weight = 0
base_url = "{url}"
"""


class Models:
    """One model whose kernels get faster for a while, one whose kernels are never better, and a meta-prompter."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._good = 0
        self._meta = 0

    def __call__(self, request: Request) -> Step:
        with self._lock:
            return self._answer(request)

    def _answer(self, request: Request) -> Step:
        ordinal = int(re.sub(r"\D", "", request.headers["x-client-request-id"].rpartition("-")[2]))
        if request.model == "meta":
            self._meta += 1
            return answer(edit("pitfalls", last_line(request.prompt), f"Mind the rows ({self._meta})."))
        if request.model == "weak":
            speedup = 0.5
        else:
            self._good += 1
            # Rises until it stands still: then there is a plateau.
            speedup = 1.0 + 0.05 * min(self._good, 30)
        block = source_with(f"verdict=ok speedup={speedup:.2f} build_ms=1 run_ms=1", ordinal)
        if "Turn the kernel above into a template" in request.prompt:
            block = "// [TUNE] TILE in {8, 16, 32}; VEC in {1, 2}\n" + block
        return answer(f"Faster.\n```cpp\n{SHAPES[ordinal % 3]}{block}```\n")


@pytest.mark.slow
async def test_everything_that_the_search_learns_with_is_seen_and_proved(tmp_path: Path) -> None:
    archive = pack(write_sim_task(tmp_path / "task"))

    def run(url: str) -> tuple[control_pb2.Campaign, list[control_pb2.Candidate], dict[str, str], str]:
        seen: dict[str, str] = {}
        with (
            Daemon(tmp_path, config=CONFIG.format(url=url)) as daemon,
            Agent(tmp_path, daemon, "agent", "--executor", "simulated", "--build-lanes", "2"),
        ):
            id_ = daemon.submit(archive, "key", candidates=CANDIDATES, generator="openai", seed=11)
            ended = daemon.wait_ended(id_, 180)
            candidates = daemon.candidates(id_)
            hinted = [one for one in candidates if one.hints][-1]
            evolved = [one for one in candidates if one.operator == "rewrite"][-1]
            seen["hinted"] = client(daemon, "show", hinted.id, "--prompt").stdout
            seen["evolved"] = client(daemon, "show", evolved.id, "--prompt").stdout
            seen["status"] = client(daemon, "status", id_).stdout
            seen["log"] = client(daemon, "--json", "logs", id_).stdout
            return ended, candidates, seen, str(daemon.state)

    async with ScriptedServer(Models()) as server:
        campaign, candidates, seen, state = await asyncio.to_thread(run, server.url)

    assert campaign.state == "finished", campaign.reason
    events = [json.loads(line) for line in seen["log"].splitlines()]
    kinds = Counter(event["kind"] for event in events)
    judged = [event["body"] for event in events if event["kind"] == "candidate.judged"]

    # Hints: in the prompt as words, in the log, in the status.
    hinted = next(one for one in reversed(candidates) if one.hints)
    assert "## Hints from the search" in seen["hinted"]
    assert all(hint in seen["hinted"] for hint in hinted.hints)
    assert any(one.get("hints") for one in judged)
    assert re.search(r"^hints    in \d+ questions; the newest: \w", seen["status"], re.M)

    # Prompt mutation: children carry the changed text.
    assert kinds["prompt.evolved"] >= 2
    assert "Mind the rows (" in seen["evolved"] or "Mind the rows (" in seen["hinted"]
    assert re.search(r"^prompts  \w+ \d+ \(\d+ of the newest 40\), \w+ \d+", seen["status"], re.M)

    # The bandit shifts to the model whose kernels gain: both began with the same share.
    assert kinds["bandit.shifted"] >= 1
    leads = [event["body"]["model"] for event in events if event["kind"] == "bandit.shifted"]
    assert leads[0] == "strong"
    shares = {one.name: one for one in campaign.search.asked if one.kind == "model"}
    assert shares["strong"].asked > 1.5 * shares["weak"].asked
    assert re.search(r"^models   strong \d+ \(\d+ of the newest 40\), weak \d+", seen["status"], re.M)

    # A sweep: points of a template, none of them asked of a model.
    points = [one for one in candidates if one.operator == "tune"]
    assert points
    assert {one.model for one in points} == {""}
    assert any(one.get("point") for one in judged)
    assert re.search(r"^sweeps   \d+ points of \d+ templates?, now", seen["status"], re.M)

    # The plateau, when the gains have ended.
    assert {one.reaction for one in candidates} > {""}
    assert any(one.get("reaction") for one in judged)
    assert re.search(r"^plateau  (now \w+|over now); \d+ questions asked during one", seen["status"], re.M)

    proof = await asyncio.to_thread(replayed, campaign.id, state)
    assert proof.returncode == 0, proof.stdout + proof.stderr
    assert f"{len(candidates) - 1} decisions" in proof.stdout
    assert re.search(r"\d+ mutations?", proof.stdout), proof.stdout
