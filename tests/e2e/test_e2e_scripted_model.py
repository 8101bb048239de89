"""Forty candidates through the real openai client, while the endpoint does what endpoints do."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from kfd.api.v1 import control_pb2
from kfd.tasks import pack
from kfd.testing.scripted_server import Request, ScriptedServer, Step, answer, status
from kfd.testing.sim_task import source_with, write_sim_task
from tests.e2e.harness import Agent, Daemon

CANDIDATES = 40

CONFIG = """
[campaign]
in_flight = 6
[campaign.search.operators]
patch = 0.0
repair_depth = 0
[llm]
idle_s = 0.6
backoff_s = 0.05
backoff_cap_s = 0.2
[[llm.models]]
name = "scripted"
base_url = "{url}"
weight = 3
[[llm.models]]
name = "other"
base_url = "{url}"
stream = false
"""

FAULTS = ("429", "500", "stall_headers", "stall_stream", "drip", "reset", "reset_stream", "bad_json", "garbage")
WASTE = {"truncated": "truncated", "empty": "no_code", "prose": "no_code", "open_fence": "truncated"}


def kernel(ordinal: int) -> str:
    return f"Faster.\n```cpp\n{source_with('verdict=ok speedup=1.2 build_ms=5 run_ms=5', ordinal)}```\n"


class Endpoint:
    """Every candidate's first try meets a fault when its turn says so; its answer may be waste."""

    def __init__(self) -> None:
        self.tries: Counter[str] = Counter()
        self.times: dict[str, list[float]] = {}

    def __call__(self, request: Request) -> Step:
        candidate = request.headers["x-client-request-id"]
        ordinal = int(candidate.rpartition("-")[2])
        self.tries[candidate] += 1
        self.times.setdefault(candidate, []).append(asyncio.get_running_loop().time())
        if self.tries[candidate] == 1 and ordinal % 2 == 0:
            return self.fault(FAULTS[ordinal // 2 % len(FAULTS)], ordinal)
        return self.reply(ordinal)

    def fault(self, kind: str, ordinal: int) -> Step:
        if kind == "429":
            return status(429, retry_after="1", code="rate_limit_exceeded")
        if kind == "500":
            return status(500)
        # A stream that is cut may have arrived whole: it says what the second try will say.
        return replace(self.reply(ordinal), kind=kind, interval_s=0.05, pieces=8)

    def reply(self, ordinal: int) -> Step:
        match waste_of(ordinal):
            case "truncated":
                return answer(kernel(ordinal), finish_reason="length")
            case "empty":
                return Step(kind="empty")
            case "prose":
                return answer("I would vectorise the loop, and then measure it.")
            case "open_fence":
                return answer(kernel(ordinal)[:-4])
            case _:
                return answer(kernel(ordinal))


def waste_of(ordinal: int) -> str:
    """What is wrong with the answer about a candidate; empty for a good one."""
    return list(WASTE)[ordinal // 5 % len(WASTE)] if ordinal % 5 == 0 else ""


@pytest.mark.slow
async def test_forty_candidates_arrive_whatever_the_endpoint_does(tmp_path: Path) -> None:
    archive = pack(write_sim_task(tmp_path / "task"))
    endpoint = Endpoint()

    def run(url: str) -> tuple[control_pb2.Campaign, list[control_pb2.Candidate], str]:
        with (
            Daemon(tmp_path, config=CONFIG.format(url=url)) as daemon,
            Agent(tmp_path, daemon, "agent", "--executor", "simulated", "--build-lanes", "2"),
        ):
            id_ = daemon.submit(archive, "key", candidates=CANDIDATES, generator="openai")
            return daemon.wait_ended(id_, 120), daemon.candidates(id_), daemon.tail(1 << 20)

    async with ScriptedServer(endpoint) as server:
        campaign, candidates, log = await asyncio.to_thread(run, server.url)

    assert campaign.state == "finished", campaign.reason
    assert len(candidates) == CANDIDATES + 1
    expected = {ordinal: WASTE.get(waste_of(ordinal), "ok") for ordinal in range(1, CANDIDATES + 1)}
    got = {c.ordinal: c.outcome for c in candidates if c.ordinal}
    assert got == expected
    assert {c.model for c in candidates if c.ordinal} == {"scripted", "other"}
    waited = [times[1] - times[0] for c, times in endpoint.times.items() if int(c.rpartition("-")[2]) % 18 == 0]
    assert waited
    assert min(waited) >= 1.0  # Retry-After was heeded
    assert campaign.input_tokens > 0
    assert "Traceback" not in log
