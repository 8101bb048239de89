"""Campaigns that end by their budgets, with an endpoint whose first answers are prose: real daemon, agent, HTTP."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from pathlib import Path

import grpc
import pytest

from kfd.api.v1 import control_pb2
from kfd.tasks import pack
from kfd.testing.scripted_server import Request, ScriptedServer, Step, answer
from kfd.testing.sim_task import source_with, write_sim_task
from kfd_client import render
from tests.e2e.harness import Agent, Daemon, wait_for

CONFIG = """
[campaign]
in_flight = 4
[campaign.search.operators]
patch = 0.0
repair_depth = 0
template_every = 0
[llm]
backoff_s = 0.05
backoff_cap_s = 0.1
[[llm.models]]
name = "priced"
base_url = "{url}"
input_price = 3.0
output_price = 15.0
context_tokens = 8000
max_tokens = 500
max_tokens_ceiling = 800
[[llm.models]]
name = "unpriced"
base_url = "{url}"
weight = 0
"""

MONEY, TOKENS = 400_000, 80_000
PROSE = "I would vectorise the loop, and then measure it."


class Endpoint:
    """Breaks off the first attempt at every fifth candidate; answers prose first, and a kernel when asked again."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.turns: list[int] = []
        self.tokens: Counter[str] = Counter()
        self.micro_money: Counter[str] = Counter()

    def __call__(self, request: Request) -> Step:
        candidate = request.headers["x-client-request-id"]
        campaign, _, ordinal = candidate.rpartition("-")
        self.calls[candidate] += 1
        if self.calls[candidate] == 1 and int(ordinal) % 5 == 0:
            return Step(kind="reset_stream", text=PROSE, pieces=2)
        messages = request.body["messages"]
        self.turns.append(len(messages))
        text = PROSE
        if len(messages) > 2:
            text = f"Faster.\n```cpp\n{source_with('verdict=ok speedup=1.2 build_ms=1 run_ms=1', ordinal)}```\n"
        inputs, outputs = len(json.dumps(messages)) // 4, len(text) // 4  # as the server counts them
        self.tokens[campaign] += inputs + outputs
        self.micro_money[campaign] += 3 * inputs + 15 * outputs
        return answer(text)


def budget_of(campaign: control_pb2.Campaign, name: str) -> control_pb2.BudgetView:
    return next(one for one in campaign.budgets if one.name == name)


@pytest.mark.slow
async def test_money_and_tokens_end_campaigns_before_they_are_exceeded_and_prose_is_asked_again(tmp_path: Path) -> None:
    """The second campaign's daemon is killed on the way."""
    archive = pack(write_sim_task(tmp_path / "task"))
    endpoint = Endpoint()
    refused: list[str] = []

    def run(url: str) -> list[tuple[control_pb2.Campaign, list[control_pb2.Candidate]]]:
        with (
            Daemon(tmp_path, config=CONFIG.format(url=url)) as daemon,
            Agent(tmp_path, daemon, "agent", "--executor", "simulated", "--build-lanes", "2"),
        ):
            options = {"generator": "openai", "candidates": 5000}
            try:
                daemon.submit(archive, "none", models=["unpriced"], budget_micro_money=MONEY, **options)
            except grpc.RpcError as error:
                refused.append(error.details() or "")
            money = daemon.submit(archive, "money", budget_micro_money=MONEY, **options)
            daemon.wait_ended(money, 60)
            tokens = daemon.submit(archive, "tokens", budget_tokens=TOKENS, **options)
            wait_for("a third of the tokens", lambda: budget_of(daemon.campaign(tokens), "tokens").spent > TOKENS // 3)
            daemon.kill()
            daemon.start()
            daemon.wait_ended(tokens, 60)
            return [(daemon.campaign(id_), daemon.candidates(id_)) for id_ in (money, tokens)]

    async with ScriptedServer(endpoint) as server:
        by_money, by_tokens = await asyncio.to_thread(run, server.url)

    assert "the model unpriced has no price" in refused[0]
    for (campaign, candidates), reason, limit in (
        (by_money, "budget: money", MONEY),
        (by_tokens, "budget: tokens", TOKENS),
    ):
        assert (campaign.state, campaign.reason) == ("finished", reason)
        budget = budget_of(campaign, reason.removeprefix("budget: "))
        assert 0 < budget.spent <= budget.limit == limit
        asked = [one for one in candidates if one.ordinal]
        assert len(asked) > 10
        assert {one.outcome for one in asked} == {"ok"}
        tokens = budget_of(campaign, "tokens").spent
        assert tokens == sum(one.input_tokens + one.output_tokens for one in asked)
        assert campaign.final_speeds  # the winner was measured afresh
    # Attempts that broke are counted from above, the others as the endpoint counts them.
    campaign, _ = by_money
    assert endpoint.tokens[campaign.id] < budget_of(campaign, "tokens").spent < 2 * endpoint.tokens[campaign.id]
    assert endpoint.micro_money[campaign.id] < budget_of(campaign, "money").spent
    assert set(endpoint.turns) == {2, 4}
    screen = render.campaign_screen(by_money[0])
    assert re.search(r"\n {9}money 0\.\d+ of 0\.40\n {9}tokens \d+\n {9}device time ", screen), screen
