"""Prompt evolution in the store: what is read back is what was written, and credits are those of the search."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from kfd.base.codec import encode
from kfd.core.campaign.machine import Campaign
from kfd.core.campaign.mutation import MutationState
from kfd.core.commands import Command, SaveMutation, SaveMutationText
from kfd.daemon.replay import replayed
from kfd.store import prompts, rows
from kfd.store.journal import Journal
from kfd.store.load import load
from kfd.store.migrate import APPLICATION_ID, migrations
from kfd.store.read import Reader
from kfd.testing.simulation import Simulation, drafted, sim_spec
from tests.integration.test_store_journal import plain, source_texts, write
from tests.property.test_prompt_evolution import Slow, evolving
from tests.property.test_search_restart import answer, judge
from tests.unit.test_core_campaign import judge as judge_plainly
from tests.unit.test_prompt_campaign import FIRST, improved, spec_of, varied

SPEC = evolving(11)


@pytest.fixture
async def journal(tmp_path: Path) -> AsyncIterator[Journal]:
    journal = await Journal.open(tmp_path / "kfd.sqlite3")
    yield journal
    await journal.close()


@pytest.fixture
async def reader(journal: Journal, tmp_path: Path) -> AsyncIterator[Reader]:
    reader = await Reader.open(tmp_path / "kfd.sqlite3")
    yield reader
    await reader.close()


def played(steps: int) -> Simulation:
    simulation = Simulation(answer, judge, mutate=Slow())
    simulation.submit(SPEC, drafted("initial"))
    for _ in range(steps):
        simulation.step()
    return simulation


@pytest.mark.parametrize("steps", [10, 25, 40])
async def test_a_restart_reads_the_mutations_as_they_were_written(journal: Journal, reader: Reader, steps: int) -> None:
    simulation = played(steps)
    await write(journal, [*simulation.commands, *source_texts(simulation)])
    (stored,) = (await load(reader.connection)).campaigns
    (expected,) = simulation.rows.loaded()
    assert expected.mutations
    assert plain(stored) == plain(expected)
    restored, live = Campaign(stored, simulation.now), simulation.engine.campaigns[SPEC.id]
    assert restored._search.prompts == live._search.prompts
    assert restored.proposal() == live.proposal()
    assert await reader.mutations(SPEC.id) == simulation.rows.mutations_of(SPEC.id)


async def test_each_batch_may_write_a_row_again_and_keeps_its_texts(journal: Journal, reader: Reader) -> None:
    simulation = Simulation(varied, judge_plainly, mutate=improved)  # type: ignore[arg-type]
    spec = spec_of()
    simulation.submit(spec, drafted("initial"))
    simulation.run()
    for command in simulation.commands:  # one transaction each, as slowly as it can be
        if isinstance(command, SaveMutation | SaveMutationText) or "Campaign" in type(command).__name__:
            await write(journal, [command])
    assert await reader.mutations(spec.id) == simulation.rows.mutations_of(spec.id)
    again = [SaveMutation(campaign=spec.id, mutation=one) for one in simulation.rows.mutations_of(spec.id)]
    await write(journal, list[Command](again))
    async with reader.connection.execute("SELECT nth, kind, body FROM prompt_text ORDER BY nth, kind") as cursor:
        texts = [(row[0], row[1], rows.unpack(row[2])) async for row in cursor]
    assert texts[:2] == [(1, "answer", "a"), (1, "prompt", "q")]
    assert len(texts) == 2 * len(again)


@pytest.mark.parametrize("steps", [12, 30, 45])
async def test_credits_are_those_that_the_search_decides_by(journal: Journal, reader: Reader, steps: int) -> None:
    simulation = played(steps)
    await write(journal, [*simulation.commands, *source_texts(simulation)])
    search = simulation.engine.campaigns[SPEC.id]._search
    views = await reader.prompts(SPEC)
    assert views[0].mutation is None
    assert [view.mutation for view in views[1:]] == simulation.rows.mutations_of(SPEC.id)
    held = {view.variant: view for view in views if view.held}
    assert set(held) == {one.id for one in search.prompts}
    for one in search.prompts:
        view = held[one.id]
        assert (view.children, view.gain) == (one.children, one.gain)
        assert view.credit == search.prompt_credit(one.id)[1]
        assert dict(view.regions) == dict(one.regions)
    for view in views[1:]:
        assert view.mutation is not None
        assert bool(view.variant) == (view.mutation.state is MutationState.ACCEPTED)


async def test_a_variant_that_was_dropped_keeps_its_record(journal: Journal, reader: Reader) -> None:
    spec = replace(spec_of(80, size=2, period=2), in_flight=1)
    simulation = Simulation(varied, judge_plainly, mutate=improved)  # type: ignore[arg-type]
    simulation.submit(spec, drafted("initial"))
    simulation.run()
    await write(journal, [*simulation.commands, *source_texts(simulation)])
    views = await reader.prompts(spec)
    dropped = [view for view in views if view.variant and not view.held]
    assert sum(view.children for view in dropped) > 3
    for view in dropped:
        mine = [one for one in simulation.rows.candidates.values() if one.asked.variant == view.variant]
        assert view.children <= len(mine)


async def test_the_last_children_come_with_sources_reports_and_counts(journal: Journal, reader: Reader) -> None:
    simulation = played(60)
    await write(journal, [*simulation.commands, *source_texts(simulation)])
    variant = simulation.rows.candidates[f"{SPEC.id}-1"].asked.variant  # type: ignore[index]
    mine = [
        one
        for one in simulation.rows.candidates.values()
        if one.asked.variant == variant and one.told and one.operator != "tune" and one.outcome != "no_recording"
    ]
    children = await reader.children(SPEC.id, variant, 5)
    newest = sorted(mine, key=lambda one: -(one.told.nth if one.told else 0))[:5]
    assert [child.candidate for child in children] == newest
    for child in await reader.children(SPEC.id, variant, 500):
        assert child.source == simulation.rows.sources.get(child.candidate.id)
        assert child.parent_source == simulation.rows.sources.get(child.candidate.parent or "")  # type: ignore[call-overload]
        assert (child.build is not None) == bool(child.candidate.source and child.candidate.outcome != "duplicate")
        assert (child.run is not None) == (child.candidate.artifact is not None)
    counts = dict(await reader.child_counts(SPEC.id, variant))
    assert sum(counts.values()) == len(mine)
    assert counts == {outcome: sum(one.outcome == outcome for one in mine) for outcome in counts}


async def test_tokens_of_mutations_are_spent_too(journal: Journal, reader: Reader) -> None:
    simulation = played(40)
    await write(journal, [*simulation.commands, *source_texts(simulation)])
    view = await reader.campaign(SPEC.id)
    candidates = simulation.rows.candidates.values()
    mutations = simulation.rows.mutations_of(SPEC.id)
    assert sum(one.input_tokens for one in mutations) > 0
    assert view.input_tokens == sum(one.input_tokens for one in (*candidates, *mutations))
    assert view.output_tokens == sum(one.output_tokens for one in (*candidates, *mutations))


async def test_a_replay_of_the_store_proves_mutations_and_names_one_that_was_changed(
    journal: Journal, tmp_path: Path
) -> None:
    simulation = played(60)
    await write(journal, [*simulation.commands, *source_texts(simulation)])
    path = tmp_path / "kfd.sqlite3"
    is_equal, text = await replayed(path, SPEC.id)
    count = len(simulation.rows.mutations_of(SPEC.id))
    assert (is_equal, f"{count} mutations" in text) == (True, True)
    with sqlite3.connect(path) as other:
        other.execute("UPDATE prompt SET regions = replace(regions, 'first', 'last') WHERE state = 'accepted'")
    is_equal, text = await replayed(path, SPEC.id)
    assert not is_equal
    assert f"{SPEC.id}-p" in text
    assert "new variant" in text


async def test_a_campaign_of_an_older_kfd_goes_on_with_its_own_prompt(tmp_path: Path) -> None:
    path = tmp_path / "kfd.sqlite3"
    old = sqlite3.connect(path, isolation_level=None)
    for migration in migrations()[:4]:
        old.executescript(migration.sql)
    old.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    old.execute("PRAGMA user_version = 4")
    spec = encode(sim_spec("old"))
    del spec["regions"]
    del spec["search"]["prompts"]["model"]
    record = ("running", "", None, "[]", "", 0, 0, 0, 1, "2026-01-01T00:00:00+00:00")
    old.execute(
        "INSERT INTO campaign (id, idempotency_key, name, spec, state, reason, best, final_speedups, verify_note, "
        f"verifications, active_ns, incidents, admitted, submitted_at) VALUES ({', '.join('?' * 14)})",
        (spec["id"], "old", "old", json.dumps(spec), *record),
    )
    old.close()
    journal, reader = await Journal.open(path), await Reader.open(path)
    (loaded,) = (await load(reader.connection)).campaigns
    assert (loaded.spec, loaded.mutations) == (sim_spec("old"), [])
    assert (await reader.prompts(loaded.spec))[0].regions == ()
    await reader.close()
    await journal.close()


@pytest.mark.parametrize("text", ["[]", '{"zzz": "x"}', '{"pitfalls": 3}', "no json"])
def test_damaged_regions_are_an_error_and_not_a_surprise(text: str) -> None:
    mutation = prompts.mutation_row(SPEC.id, replace(played(30).rows.mutations_of(SPEC.id)[0], regions=FIRST))
    with pytest.raises(ValueError):  # noqa: PT011 - whichever part of it is wrong
        prompts.mutation_from_row((*mutation[:7], text, *mutation[8:]))


async def test_queries_of_prompts_use_an_index(reader: Reader) -> None:
    for query, count in ((prompts.CHILDREN, 3), (prompts.COUNTS, 2), (prompts.MUTATIONS, 1)):
        arguments = ("c", "v", 5)[:count]
        async with reader.connection.execute(f"EXPLAIN QUERY PLAN {query}", arguments) as cursor:
            plan = " ".join([str(row[3]) async for row in cursor])
        assert "SEARCH" in plan, plan
        assert "SCAN" not in plan, plan
