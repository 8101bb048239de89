"""Laws of the store: what was committed is read back as it was, a full disk loses nothing, strangers are refused."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from kfd.base.codec import encode
from kfd.base.failure import CallerError, NotFound
from kfd.base.ids import CampaignId, CandidateId
from kfd.core.campaign.machine import Campaign
from kfd.core.campaign.ports import Loaded
from kfd.core.campaign.state import CampaignRecord, CampaignState, DiscardReason
from kfd.core.commands import Command, CreateCampaign, SaveSpending, SaveText
from kfd.core.fleet.model import Fact, JobState
from kfd.core.search.budgets import Amount
from kfd.core.search.operators import Operator
from kfd.store import rows
from kfd.store.journal import Journal, StoreStalled
from kfd.store.load import load
from kfd.store.migrate import APPLICATION_ID, migrations
from kfd.store.old_specs import translated
from kfd.store.read import Reader
from kfd.store.search import RECENT
from kfd.testing.simulation import Simulation, drafted, sim_spec
from tests.property import test_search_restart as search_restart
from tests.unit.test_core_campaign import answer, judge

AT = "2026-01-01T00:00:00.000+00:00"


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


def source_texts(simulation: Simulation) -> list[Command]:
    """What the drafter would have stored beside the engine's commands."""
    return [
        SaveText(candidate=candidate, text=rows.pack("source", text))
        for candidate, text in simulation.rows.sources.items()
    ]


async def write(journal: Journal, commands: list[Command]) -> None:
    await journal.write(journal.prepare(commands, AT))


def plain(loaded: Loaded) -> Loaded:
    """In an order that does not matter."""
    return replace(
        loaded,
        open_candidates=sorted(loaded.open_candidates, key=lambda c: c.ordinal),
        elites=sorted(loaded.elites, key=lambda e: e.cell),
        answered={key: count for key, count in loaded.answered.items() if count},
    )


@pytest.mark.parametrize("steps", [1, 3, 5, 9, 14, 30])
async def test_a_restart_reads_exactly_what_was_committed(journal: Journal, reader: Reader, steps: int) -> None:
    simulation = Simulation(answer, judge)
    simulation.submit(sim_spec("one"), drafted("initial"))
    simulation.submit(sim_spec("two", seed=5), None)
    for _ in range(steps):
        simulation.step()
    await write(journal, [*simulation.commands, *source_texts(simulation)])
    snapshot = await load(reader.connection)
    expected = {loaded.spec.id: plain(loaded) for loaded in simulation.rows.loaded()}
    assert {loaded.spec.id: plain(loaded) for loaded in snapshot.campaigns} == expected
    open_jobs = {id_: job for id_, job in simulation.rows.jobs.items() if job.state is not JobState.SETTLED}
    assert set(snapshot.jobs) == set(open_jobs)
    for id_, job in snapshot.jobs.items():
        assert replace(job, spec=open_jobs[id_].spec) == open_jobs[id_]
    building = {c.id for one in snapshot.campaigns for c in one.open_candidates if c.state.value == "building"}
    assert set(snapshot.sources) == building
    assert all(simulation.rows.sources[id_] == text for id_, text in snapshot.sources.items())


@pytest.mark.parametrize("steps", [8, 20, 30])
async def test_a_restart_reads_what_the_search_decided_and_was_told(
    journal: Journal, reader: Reader, steps: int
) -> None:
    simulation = Simulation(search_restart.answer, search_restart.judge)
    spec = search_restart.spec_of(3, search_restart.EVERYTHING)
    simulation.submit(spec, drafted("initial"))
    for _ in range(steps):
        simulation.step()
    await write(journal, [*simulation.commands, *source_texts(simulation)])
    (stored,) = (await load(reader.connection)).campaigns
    (expected,) = simulation.rows.loaded()
    assert plain(stored) == plain(expected)
    assert Campaign(stored, simulation.now).proposal() == simulation.engine.campaigns[spec.id].proposal()
    for candidate in simulation.rows.candidates.values():
        assert (await reader.candidate(candidate.id)).candidate == candidate


async def test_a_file_of_an_older_kfd_is_upgraded_and_its_campaign_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "kfd.sqlite3"
    old = sqlite3.connect(path, isolation_level=None)
    for migration in migrations()[:2]:
        old.executescript(migration.sql)
    old.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    old.execute("PRAGMA user_version = 2")
    spec = encode(sim_spec("old"))
    del spec["search"]
    spec["models"] = ["large", "small"]
    spec["emitter"] = {
        "@": "EmitterPolicy",
        "rewrite": 0.7,
        "patch": 0.3,
        "repair_depth": 3,
        "inspirations": 1,
        "selection": {"@": "SelectionWeights", "uniform": 0.4, "fitness": 0.6},
    }
    record = ("running", "", None, "[]", "", 0, 0, 0, 1, "2026-01-01T00:00:00+00:00")
    old.execute(
        "INSERT INTO campaign (id, idempotency_key, name, spec, state, reason, best, final_speedups, verify_note, "
        f"verifications, active_ns, incidents, admitted, submitted_at) VALUES ({', '.join('?' * 14)})",
        (spec["id"], "old", "old", json.dumps(spec), *record),
    )
    for ordinal, outcome in ((1, "compile_error"), (2, "no_recording")):
        old.execute(
            "INSERT INTO candidate VALUES (?, ?, ?, ?, '', 'rewrite', NULL, 'nothing', '', 0, 1, 0, 'm', 's', 'n', "
            "'1,2,3', NULL, 0.0, '[]', 1, 1, 'w', NULL, NULL, 0)",
            (spec["id"], ordinal, "judged" if ordinal == 1 else "discarded", outcome),
        )
    old.close()
    journal, reader = await Journal.open(path), await Reader.open(path)
    (loaded,) = (await load(reader.connection)).campaigns
    assert loaded.spent == Amount(tokens=4)  # those of its candidates; what they cost is not known
    policy = loaded.spec.search
    assert (policy.operators.rewrite, policy.operators.patch, policy.operators.repair_depth) == (0.7, 0.3, 3)
    assert (policy.operators.template_every, policy.parents.curiosity, policy.inspirations) == (0, 0.0, 1)
    assert policy.hints.limit == 0
    assert policy.models == (("large", 1.0), ("small", 1.0))
    assert (loaded.outcomes, loaded.told, loaded.closed) == ([], 0, {("nothing", "rewrite")})
    proposal = Campaign(loaded, 0).proposal()
    assert proposal is not None
    assert (proposal.operator, proposal.parent_source) == (Operator.REPAIR, "s")
    await reader.close()
    await journal.close()


@pytest.mark.parametrize("emitter", [{}, 3, {"selection": 1}, {"selection": {"uniform": 1}}])
def test_a_damaged_old_spec_is_an_error_and_not_a_surprise(emitter: object) -> None:
    with pytest.raises(ValueError, match="older kfd"):
        translated({"emitter": emitter, "models": []})


async def test_a_full_disk_rolls_back_whole_and_the_same_batch_goes_in_later(journal: Journal, reader: Reader) -> None:
    simulation = Simulation(answer, judge)
    simulation.submit(sim_spec(), drafted("initial"))
    await write(journal, list(simulation.commands))
    connection = journal._connection
    async with connection.execute("PRAGMA page_count") as cursor:
        row = await cursor.fetchone()
    assert row is not None
    await connection.execute(f"PRAGMA max_page_count = {row[0]}")
    big = SaveText(
        candidate=CandidateId(f"{sim_spec().id}-0"), text=rows.pack("prompt", "".join(map(str, range(90_000))))
    )
    batch = journal.prepare([big, Fact(kind="test.happened")], AT)
    with pytest.raises(StoreStalled):
        await journal.write(batch)
    assert await reader.text(CandidateId(f"{sim_spec().id}-0"), "prompt") is None
    await connection.execute("PRAGMA max_page_count = 1000000")
    await journal.write(batch)
    assert await reader.text(CandidateId(f"{sim_spec().id}-0"), "prompt") is not None
    events = await reader.events(0, "", 100)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))


async def test_a_foreign_lock_stalls_and_does_not_break(journal: Journal, tmp_path: Path) -> None:
    await journal._connection.execute("PRAGMA busy_timeout = 50")
    other = sqlite3.connect(tmp_path / "kfd.sqlite3", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    batch = journal.prepare([Fact(kind="test.happened")], AT)
    with pytest.raises(StoreStalled):
        await journal.write(batch)
    other.execute("ROLLBACK")
    other.close()
    await journal.write(batch)


async def test_a_second_open_goes_on_where_the_first_stopped(tmp_path: Path) -> None:
    first = await Journal.open(tmp_path / "kfd.sqlite3")
    await write(first, [Fact(kind="test.happened")] * 3)
    await first.close()
    second = await Journal.open(tmp_path / "kfd.sqlite3")
    assert second.last_seq == 3
    await second.close()


async def test_a_newer_schema_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "kfd.sqlite3"
    await (await Journal.open(path)).close()
    newer = sqlite3.connect(path)
    newer.execute(f"PRAGMA user_version = {migrations()[-1].version + 1}")
    newer.close()
    with pytest.raises(CallerError, match="knows up to"):
        await Journal.open(path)


async def test_another_programs_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "kfd.sqlite3"
    stranger = sqlite3.connect(path)
    stranger.execute("CREATE TABLE precious (x)")
    stranger.close()
    with pytest.raises(CallerError, match="not a kfd database"):
        await Journal.open(path)
    assert sqlite3.connect(path).execute("SELECT count(*) FROM sqlite_master").fetchone() == (1,)


async def test_durability_is_as_promised(journal: Journal) -> None:
    values = {}
    for pragma in ("journal_mode", "synchronous", "foreign_keys", "wal_autocheckpoint", "application_id"):
        async with journal._connection.execute(f"PRAGMA {pragma}") as cursor:
            row = await cursor.fetchone()
            assert row is not None
            values[pragma] = row[0]
    assert values == {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "wal_autocheckpoint": 0,
        "application_id": APPLICATION_ID,
    }


async def test_the_reader_cannot_write(reader: Reader) -> None:
    with pytest.raises(sqlite3.OperationalError, match=r"readonly|query_only"):
        await reader.connection.execute("DELETE FROM event")


async def test_campaigns_are_found_by_id_name_prefix_and_last(journal: Journal, reader: Reader) -> None:
    simulation = Simulation(answer, judge)
    one, two = sim_spec("one"), sim_spec("two", submitted_at="2026-02-01T00:00:00.000+00:00")
    simulation.submit(one, None)
    simulation.submit(two, None)
    await write(journal, list(simulation.commands))
    assert await reader.resolve_campaign(one.id) == one.id
    assert await reader.resolve_campaign("two") == two.id
    assert await reader.resolve_campaign(one.id[:4]) == one.id
    assert await reader.resolve_campaign("@last") == two.id
    with pytest.raises(NotFound, match="several"):
        await reader.resolve_campaign("c")
    with pytest.raises(NotFound, match="no campaign"):
        await reader.resolve_campaign("zzz")


async def test_counts_are_derived_from_rows(journal: Journal, reader: Reader) -> None:
    simulation = Simulation(answer, judge)
    spec = sim_spec()
    simulation.submit(spec, drafted("initial"))
    simulation.run()
    await write(journal, [*simulation.commands, *source_texts(simulation)])
    view = await reader.campaign(spec.id)
    expected = {
        key if key in ("ok", "incorrect", "compile_error") else f"discarded:{key}": n
        for key, n in simulation.outcomes(spec.id).items()
    }
    assert dict(view.outcomes) == expected
    assert view.record == simulation.rows.records[spec.id]
    assert view.best is not None
    assert view.best.id == view.record.best
    elites = await reader.candidates(spec.id, after=-1, limit=100, elites_only=True)
    assert {e.candidate.id for e in elites} == {
        owner for (of, _), owner in simulation.rows.elites.items() if of == spec.id
    }
    assert len(elites) == view.cells


@pytest.mark.parametrize("steps", [20, 200])
async def test_the_searchs_standing_is_derived_from_rows(journal: Journal, reader: Reader, steps: int) -> None:
    """Counted here in Python over the same rows, running and ended."""
    simulation = Simulation(search_restart.answer, search_restart.judge)
    spec = search_restart.spec_of(3, search_restart.EVERYTHING)
    simulation.submit(spec, drafted("initial"))
    for _ in range(steps):
        simulation.step()
    await write(journal, [*simulation.commands, *source_texts(simulation)])
    view = await reader.search(spec.id)
    every = sorted(simulation.rows.candidates.values(), key=lambda one: one.ordinal)
    asked = [
        one
        for one in every
        if one.operator not in (Operator.INITIAL, Operator.TUNE) and one.outcome != DiscardReason.NO_RECORDING
    ]
    newest = asked[-RECENT:]
    assert view.recent == len(newest)
    shares = {(one.kind, one.name): (one.asked, one.recent, one.elites) for one in view.shares}
    for kind, name in (("operator", lambda one: one.operator.value), ("prompt", lambda one: one.asked.variant)):
        for value in {name(one) for one in asked}:
            chosen = [one for one in asked if name(one) == value]
            kept = sum(one.told is not None and one.told.kept for one in chosen)
            assert shares[kind, value] == (len(chosen), sum(one in newest for one in chosen), kept)
    hinted = [one for one in asked if one.asked.hints]
    assert view.hinted == len(hinted)
    assert view.hints == (hinted[-1].asked.words if hinted else ())
    assert view.reaction == newest[-1].asked.reaction
    assert view.reacting == sum(bool(one.asked.reaction) for one in asked)
    points = [one for one in every if one.operator is Operator.TUNE]
    assert (view.points, view.templates) == (len(points), len({one.parent for one in points}))
    assert view.swept == (points[-1].parent if points else None)
    if steps == 200:
        assert hinted
        assert points
        assert view.reacting


async def test_a_campaign_that_has_asked_nothing_stands_at_nothing(reader: Reader) -> None:
    view = await reader.search(CampaignId("c"))
    assert (view.shares, view.recent, view.hints, view.reaction, view.swept) == ((), 0, (), "", None)


@pytest.mark.parametrize("text", ["", "ünïcode 😀\r\nCRLF\t\x00nul", "a\ud800b", "x" * 100_000])
def test_texts_survive_byte_for_byte(text: str) -> None:
    assert rows.unpack(rows.pack("source", text).body) == text


@pytest.mark.parametrize("body", [b"", b"junk", b"x\x9c"])
def test_a_damaged_text_is_an_error_and_not_a_surprise(body: bytes) -> None:
    with pytest.raises(ValueError, match="damaged"):
        rows.unpack(body)


async def test_hot_queries_use_an_index(reader: Reader) -> None:
    for query in (
        "SELECT 1 FROM event WHERE seq > 5 AND campaign = 'c' ORDER BY seq LIMIT 5",
        "SELECT 1 FROM candidate WHERE campaign = 'c' AND state IN ('drafting', 'building', 'running', 'confirming')",
        "SELECT 1 FROM candidate AS c WHERE c.campaign = 'c' AND c.parent = 3 AND c.operator = 'repair'",
        "SELECT 1 FROM text WHERE campaign = 'c' AND ordinal = 1 AND kind = 'source'",
        "SELECT 1 FROM job WHERE campaign = 'c' AND state <> 'settled'",
    ):
        async with reader.connection.execute(f"EXPLAIN QUERY PLAN {query}") as cursor:
            plan = " ".join([str(row[3]) async for row in cursor])
        assert "SEARCH" in plan, plan
        assert "SCAN" not in plan, plan


async def test_costs_add_up_in_the_store_whatever_key_they_have(journal: Journal, reader: Reader) -> None:
    spec = sim_spec("costs")
    create = CreateCampaign(spec=spec, record=CampaignRecord(id=spec.id, state=CampaignState.RUNNING))
    costs: list[Command] = [
        SaveSpending(campaign=spec.id, key="c-1", cost=Amount(micro_money=7, tokens=100)),
        SaveSpending(campaign=spec.id, key="c-1", cost=Amount(micro_money=5, tokens=10)),
        SaveSpending(campaign=spec.id, key="c-1.run", cost=Amount(device_ns=1 << 40)),
    ]
    await write(journal, [create, *costs])
    await write(journal, costs[:1])
    (loaded,) = (await load(reader.connection)).campaigns
    assert loaded.spent == Amount(micro_money=19, tokens=210, device_ns=1 << 40)


@pytest.mark.parametrize("ordinal", ["9" * 10, "9" * 25, "9" * 5000, "-1", "x", ""])
async def test_a_candidate_that_cannot_be_is_not_found_whatever_is_typed(
    journal: Journal, reader: Reader, ordinal: str
) -> None:
    simulation = Simulation(answer, judge)
    simulation.submit(sim_spec(), drafted("initial"))
    await write(journal, list(simulation.commands))
    with pytest.raises(NotFound):
        await reader.resolve_candidate(f"{sim_spec().id}-{ordinal}")
    assert await reader.resolve_candidate(f"{sim_spec().id}-{'9' * 9}") == f"{sim_spec().id}-{'9' * 9}"
    with pytest.raises(NotFound):
        await reader.candidate(CandidateId(f"{sim_spec().id}-{'9' * 9}"))
