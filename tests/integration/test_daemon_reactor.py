"""Laws of the reactor: commit before visible, a stalled store loses nothing, dropped calls are told."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from kfd.base.failure import NotFound
from kfd.base.ids import CampaignId
from kfd.core.campaign.mutation import MutationRequest
from kfd.core.commands import DraftRequest
from kfd.core.engine import Engine
from kfd.core.events import CallDropped, CampaignCancelled, CampaignSubmitted, Ticked
from kfd.core.fleet.model import FleetPolicy
from kfd.daemon import reactor as reactor_module
from kfd.daemon.reactor import Reactor
from kfd.store.journal import Batch, Journal, StoreStalled
from kfd.testing.simulation import sim_spec


class Effects:
    """Remembers what was started."""

    def __init__(self) -> None:
        self.started: list[DraftRequest] = []
        self.stopped: list[str] = []

    def start_draft(self, request: DraftRequest) -> None:
        self.started.append(request)

    def stop_draft(self, candidate: str) -> None:
        self.stopped.append(candidate)

    def start_mutation(self, request: MutationRequest) -> None:
        raise AssertionError(f"{request.mutation} is due in no campaign of these tests")

    def stop_mutation(self, mutation: str) -> None:
        raise AssertionError(f"{mutation} is open in no campaign of these tests")


class Gated(Journal):
    """A journal whose writes wait for the gate, and stall as often as told."""

    gate: asyncio.Event
    stalls: int = 0

    async def write(self, batch: Batch) -> None:
        await self.gate.wait()
        if self.stalls and batch.parts():
            self.stalls -= 1
            raise StoreStalled("database or disk is full")
        await super().write(batch)


@pytest.fixture
async def journal(tmp_path: Path) -> AsyncIterator[Gated]:
    journal = await Gated.open(tmp_path / "kfd.sqlite3")
    assert isinstance(journal, Gated)
    journal.gate = asyncio.Event()
    journal.gate.set()
    yield journal
    await journal.close()


@pytest.fixture
async def running(journal: Gated) -> AsyncIterator[tuple[Reactor, Effects]]:
    reactor, effects = Reactor(Engine(FleetPolicy(), b"b" * 16), journal, b"b" * 16), Effects()
    task = asyncio.create_task(reactor.run(effects, []))
    yield reactor, effects
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


def submit(reactor: Reactor, key: str = "one") -> asyncio.Task[object]:
    spec = sim_spec(key)

    async def call() -> object:
        return await reactor.call(lambda call: CampaignSubmitted(call=call, spec=spec, initial=None, initial_text=None))

    return asyncio.create_task(call())


async def admit(reactor: Reactor, effects: Effects, count: int = 4) -> None:
    """As if a worker had proved the task: drafts may start."""
    for campaign in reactor.engine.campaigns.values():
        campaign.record = replace(campaign.record, admitted=True)
    reactor.post(Ticked())
    async with asyncio.timeout(5):
        while len(effects.started) < count:
            await reactor.committed(0.05)


async def test_nothing_is_visible_before_the_commit(running: tuple[Reactor, Effects], journal: Gated) -> None:
    reactor, effects = running
    journal.gate.clear()
    reply = submit(reactor)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.shield(reply), 0.1)
    assert not effects.started
    journal.gate.set()
    assert await asyncio.wait_for(reply, 5) == (sim_spec("one").id, "one", False)
    journal.gate.clear()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(admit(reactor, effects), 0.2)
    assert not effects.started
    journal.gate.set()
    await admit(reactor, effects)


async def test_a_stalled_store_delays_and_loses_nothing(
    running: tuple[Reactor, Effects], journal: Gated, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reactor_module, "STALL_RETRY_SECONDS", (0.01,))
    reactor, effects = running
    journal.stalls = 3
    assert await asyncio.wait_for(submit(reactor), 5)
    assert journal.stalls == 0
    await admit(reactor, effects)
    assert reactor.stalled_since is None


async def test_a_refusal_reaches_its_caller_and_nobody_else(running: tuple[Reactor, Effects]) -> None:
    reactor, _ = running
    good = submit(reactor)
    with pytest.raises(NotFound):
        await reactor.call(lambda call: CampaignCancelled(call=call, campaign=CampaignId("cnone"), reason=""))
    assert await asyncio.wait_for(good, 5)


async def test_a_caller_that_goes_away_is_reported(running: tuple[Reactor, Effects], journal: Gated) -> None:
    reactor, _ = running
    seen: list[object] = []
    handle = reactor.engine.handle

    def spy(event: object, now: int) -> object:
        seen.append(event)
        return handle(event, now)  # type: ignore[arg-type]

    reactor.engine.handle = spy  # type: ignore[method-assign,assignment]
    journal.gate.clear()
    call = submit(reactor)
    await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    journal.gate.set()
    assert await asyncio.wait_for(submit(reactor, "two"), 5)
    assert any(isinstance(event, CallDropped) for event in seen)


async def test_cancelling_a_campaign_stops_its_drafts_after_the_commit(running: tuple[Reactor, Effects]) -> None:
    reactor, effects = running
    await submit(reactor)
    await admit(reactor, effects)
    campaign = sim_spec("one").id
    await reactor.call(lambda call: CampaignCancelled(call=call, campaign=campaign, reason="enough"))
    assert sorted(effects.stopped) == sorted(request.candidate for request in effects.started)
