"""What a restarted daemon needs to know: open campaigns, their open candidates, elites and open jobs."""

from __future__ import annotations

from dataclasses import dataclass, field

import aiosqlite

from kfd.base.digest import Digest
from kfd.base.failure import Bug
from kfd.base.ids import CampaignId, CandidateId, JobId, candidate_id
from kfd.base.work import JobSpec, Limits, RunSpec
from kfd.core.campaign.judging import REPAIRABLE, as_elite, baseline_speedup
from kfd.core.campaign.learning import PERIODIC, UNASKED
from kfd.core.campaign.ports import Loaded
from kfd.core.campaign.state import CampaignSpec, Candidate, CandidateState, DiscardReason
from kfd.core.fleet.model import Job
from kfd.core.search.archive import Elite
from kfd.core.search.operators import Operator
from kfd.core.search.proposals import Broken
from kfd.store import rows
from kfd.store.outcomes import OUTCOMES, outcome_from_row
from kfd.store.prompts import MUTATIONS, mutation_from_row
from kfd.store.rows import CANDIDATE_COLUMNS, RECORD_COLUMNS
from kfd.store.spending import SPENT, amount_from_row

__all__ = ["Snapshot", "load"]

_PLACEHOLDER = JobSpec(
    work=RunSpec(
        task=Digest("0" * 64, 0),
        artifact=Digest("0" * 64, 0),
        initial_artifact=None,
        toolchain="",
        target="",
        seed=b"",
    ),
    limits=Limits(),
)
"""Job rows hold no spec; the engine derives it from the candidate."""


@dataclass(kw_only=True)
class Snapshot:
    """State of everything that has not ended."""

    campaigns: list[Loaded] = field(default_factory=list)
    jobs: dict[JobId, Job] = field(default_factory=dict)
    sources: dict[CandidateId, str] = field(default_factory=dict)
    keys: list[tuple[str, CampaignId, str]] = field(default_factory=list)
    bonds: dict[tuple[CampaignId, str, str], str] = field(default_factory=dict)
    """Device model that a campaign's runs for (toolchain, target) stay on: the last one bound."""


async def load(connection: aiosqlite.Connection) -> Snapshot:
    """Read the snapshot. Raises Bug for rows that cannot be understood."""
    snapshot = Snapshot()
    async with connection.execute("SELECT idempotency_key, id, name FROM campaign") as cursor:
        snapshot.keys = [(row[0], CampaignId(row[1]), row[2]) async for row in cursor]
    query = (
        f"SELECT id, spec, {RECORD_COLUMNS} FROM campaign "
        "WHERE state NOT IN ('finished', 'failed', 'cancelled') ORDER BY id"
    )
    async with connection.execute(query) as cursor:
        open_campaigns = [row async for row in cursor]
    for row in open_campaigns:
        try:
            spec = rows.campaign_spec(row[1])
            loaded = Loaded(spec=spec, record=rows.campaign_record(row[0], tuple(row[2:])))
            await _load_campaign(connection, loaded, snapshot)
        except ValueError as error:
            raise Bug(f"campaign {row[0]} cannot be read back: {error}") from error
        snapshot.campaigns.append(loaded)
    return snapshot


async def _load_campaign(connection: aiosqlite.Connection, loaded: Loaded, snapshot: Snapshot) -> None:
    campaign = loaded.spec.id
    async with connection.execute(
        f"SELECT {CANDIDATE_COLUMNS} FROM candidate WHERE campaign = ? "
        "AND state IN ('drafting', 'building', 'running', 'confirming') ORDER BY ordinal",
        (campaign,),
    ) as cursor:
        loaded.open_candidates = [rows.candidate_from_row(tuple(row)) async for row in cursor]
    for candidate in loaded.open_candidates:
        if candidate.state is CandidateState.BUILDING:
            snapshot.sources[candidate.id] = await _source(connection, campaign, candidate.ordinal)
    async with connection.execute(SPENT, (campaign,)) as cursor:
        for sums in await cursor.fetchall():
            loaded.spent = amount_from_row(tuple(sums))
    loaded.initial = await _initial(connection, campaign)
    loaded.elites = await _elites(connection, loaded.spec)
    loaded.broken = await _broken(connection, loaded.spec)
    await _load_search(connection, loaded)
    async with connection.execute(
        "SELECT DISTINCT normal FROM candidate WHERE campaign = ? AND normal <> ''", (campaign,)
    ) as cursor:
        loaded.normals = {row[0] async for row in cursor}
    async with connection.execute(
        "SELECT DISTINCT shape FROM candidate WHERE campaign = ? AND shape <> ''", (campaign,)
    ) as cursor:
        loaded.shapes = {row[0] async for row in cursor}
    async with connection.execute(
        "SELECT parent_source, operator, count(*) FROM candidate WHERE campaign = ? AND operator <> 'initial' "
        "AND outcome <> ? GROUP BY parent_source, operator",
        (campaign, DiscardReason.NO_RECORDING.value),
    ) as cursor:
        loaded.answered = {(row[0], row[1]): int(row[2]) async for row in cursor}
    async with connection.execute(
        "SELECT coalesce(max(ordinal), -1) + 1 FROM candidate WHERE campaign = ?", (campaign,)
    ) as cursor:
        row = await cursor.fetchone()
        loaded.next_ordinal = int(row[0]) if row else 0
    async with connection.execute(
        "SELECT id, campaign, state, attempt, incidents, agent_losses, cancelled, worker, slot, session "
        "FROM job WHERE campaign = ? AND state <> 'settled'",
        (campaign,),
    ) as cursor:
        async for row in cursor:
            job = Job(spec=_PLACEHOLDER, **rows.job_fields(tuple(row)))
            snapshot.jobs[job.id] = job
    async with connection.execute(
        "SELECT body ->> 'toolchain', body ->> 'target', body ->> 'device_name' FROM event "
        "WHERE campaign = ? AND kind = 'campaign.bound' ORDER BY seq",
        (campaign,),
    ) as cursor:
        async for row in cursor:
            snapshot.bonds[campaign, row[0], row[1]] = row[2]


async def _source(connection: aiosqlite.Connection, campaign: CampaignId, ordinal: int) -> str:
    async with connection.execute(
        "SELECT body FROM text WHERE campaign = ? AND ordinal = ? AND kind = 'source'", (campaign, ordinal)
    ) as cursor:
        row = await cursor.fetchone()
    if row is None:
        raise Bug(f"the source of {campaign}-{ordinal} is missing")
    return rows.unpack(row[0])


async def _initial(connection: aiosqlite.Connection, campaign: CampaignId) -> Candidate | None:
    async with connection.execute(
        f"SELECT {CANDIDATE_COLUMNS} FROM candidate WHERE campaign = ? AND ordinal = 0 AND operator = 'initial'",
        (campaign,),
    ) as cursor:
        row = await cursor.fetchone()
    return None if row is None else rows.candidate_from_row(tuple(row))


async def _elites(connection: aiosqlite.Connection, spec: CampaignSpec) -> list[Elite]:
    columns = ", ".join(f"candidate.{name.strip()}" for name in CANDIDATE_COLUMNS.split(","))
    async with connection.execute(
        f"SELECT {columns} FROM elite JOIN candidate USING (campaign, ordinal) WHERE elite.campaign = ?",
        (spec.id,),
    ) as cursor:
        candidates = [rows.candidate_from_row(tuple(row)) async for row in cursor]
    return [as_elite(candidate, baseline_speedup(candidate, spec.baseline)) for candidate in candidates]


async def _load_search(connection: aiosqlite.Connection, loaded: Loaded) -> None:
    """What the search was told, and which questions had no answer."""
    campaign = loaded.spec.id
    async with connection.execute(OUTCOMES, (campaign,)) as cursor:
        loaded.outcomes = [outcome_from_row(loaded.spec, tuple(row)) async for row in cursor]
    async with connection.execute(MUTATIONS, (campaign,)) as cursor:
        loaded.mutations = [mutation_from_row(tuple(row)) async for row in cursor]
    async with connection.execute(
        "SELECT DISTINCT parent_source, operator FROM candidate WHERE campaign = ? AND outcome = ?",
        (campaign, DiscardReason.NO_RECORDING.value),
    ) as cursor:
        loaded.closed = {(row[0], row[1]) async for row in cursor}
    async with connection.execute(
        f"SELECT {CANDIDATE_COLUMNS} FROM candidate INDEXED BY candidate_tuning WHERE campaign = ? "
        "AND (operator = 'tune' OR space IS NOT NULL) ORDER BY ordinal",
        (campaign,),
    ) as cursor:
        loaded.tuning = [rows.candidate_from_row(tuple(row)) async for row in cursor]
    async with connection.execute(
        f"SELECT {CANDIDATE_COLUMNS} FROM candidate INDEXED BY candidate_migrant WHERE campaign = ? "
        "AND operator = 'migrate' ORDER BY ordinal",
        (campaign,),
    ) as cursor:
        loaded.migrants = [rows.candidate_from_row(tuple(row)) async for row in cursor]
    async with connection.execute(
        "SELECT operator, max(asked_at) FROM candidate WHERE campaign = ? AND operator IN (?, ?) GROUP BY operator",
        (campaign, *PERIODIC),
    ) as cursor:
        loaded.last_asked = {Operator(row[0]): int(row[1]) async for row in cursor}
    async with connection.execute(
        "SELECT coalesce(max(told), 0) FROM candidate WHERE campaign = ?", (campaign,)
    ) as cursor:
        row = await cursor.fetchone()
        loaded.told = int(row[0]) if row else 0


async def _broken(connection: aiosqlite.Connection, spec: CampaignSpec) -> list[Broken]:
    """Failures that wait for a repair, in the order in which they were judged."""
    codes = sorted(code.value for code in REPAIRABLE)
    async with connection.execute(
        "SELECT ordinal, generation, repair_depth, source, cell, fitness FROM candidate WHERE campaign = ? "
        f"AND operator NOT IN ({', '.join('?' * len(UNASKED))}) AND repair_depth < ? "
        f"AND outcome IN ({', '.join('?' * len(codes))}) "
        # A list that is made once: asked of each failure by itself, this read the whole campaign again each time.
        "AND ordinal NOT IN (SELECT parent FROM candidate WHERE campaign = ? AND operator = 'repair' "
        "AND parent IS NOT NULL) ORDER BY told, ordinal",
        (spec.id, *UNASKED, spec.search.operators.repair_depth, *codes, spec.id),
    ) as cursor:
        return [
            Broken(
                candidate=candidate_id(spec.id, row[0]),
                ordinal=row[0],
                generation=row[1],
                depth=row[2],
                source=row[3],
                cell=None if row[4] is None else rows.cell_from_text(row[4]),
                fitness=row[5] or 0.0,
            )
            async for row in cursor
        ]
