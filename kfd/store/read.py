"""Read models for people: read-only, on a connection of their own, bounded in rows and in time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiosqlite

from kfd.base.failure import Exhausted, NotFound
from kfd.base.ids import CampaignId, CandidateId, campaign_of, ordinal_of
from kfd.base.work import AdmitResult
from kfd.core.campaign.mutation import Mutation
from kfd.core.campaign.state import BUILD, CONFIRM, RUN, CampaignSpec, DiscardReason
from kfd.core.views import CampaignView, CandidateView, ChildView, EventRow, PromptView, SearchView
from kfd.store import prompts, rows
from kfd.store.rows import CANDIDATE_COLUMNS, RECORD_COLUMNS
from kfd.store.search import search_view
from kfd.store.spending import SPENT, amount_from_row

__all__ = ["Reader"]

QUERY_SECONDS = 2.0
"""A query that takes longer is stopped: readers must not pin the log."""


MAX_DIGITS = 9
"""Digits of an ordinal: a longer one is no candidate's, and no integer of the store."""


class Reader:
    """Read-only view of the store. One query at a time; each is stopped after two seconds."""

    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection = connection
        self._lock = asyncio.Lock()
        self._stop_at = 0.0

    @classmethod
    async def open(cls, path: Path) -> Reader:
        """Open the file read-only."""
        connection = await aiosqlite.connect(f"file:{quote(str(path))}?mode=ro", uri=True, isolation_level=None)
        await connection.execute("PRAGMA query_only = ON")
        reader = cls(connection)
        await connection.set_progress_handler(reader._is_late, 20_000)
        return reader

    @property
    def connection(self) -> aiosqlite.Connection:
        """The read-only connection, for loading at start."""
        return self._connection

    async def close(self) -> None:
        """Close the connection."""
        await self._connection.close()

    def _is_late(self) -> int:
        return int(self._stop_at != 0.0 and time.monotonic() > self._stop_at)

    async def _all(self, query: str, arguments: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        async with self._lock:
            self._stop_at = time.monotonic() + QUERY_SECONDS
            try:
                async with self._connection.execute(query, arguments) as cursor:
                    return [tuple(row) for row in await cursor.fetchall()]
            except aiosqlite.OperationalError as error:
                if "interrupted" in str(error):
                    raise Exhausted("the query took too long", mend="ask for less, or again later") from error
                raise
            finally:
                self._stop_at = 0.0

    async def schema_version(self) -> int:
        """Version of the file's schema."""
        return int((await self._all("PRAGMA user_version"))[0][0])

    # ---- campaigns ------------------------------------------------------------------------------------

    async def resolve_campaign(self, text: str) -> CampaignId:
        """A campaign by id, name, unique prefix of an id, or ``@last``. Raises NotFound."""
        if text in ("@last", ""):
            found = await self._all("SELECT id FROM campaign ORDER BY submitted_at DESC, rowid DESC LIMIT 1")
            if not found:
                raise NotFound("there is no campaign yet", mend="kfd-client submit TASK")
            return CampaignId(found[0][0])
        exact = await self._all("SELECT id FROM campaign WHERE id = ? OR name = ?", (text, text))
        if exact:
            return CampaignId(exact[0][0])
        high = text + "\x7f"
        prefixed = await self._all("SELECT id FROM campaign WHERE id >= ? AND id < ? LIMIT 2", (text, high))
        if len(prefixed) == 1:
            return CampaignId(prefixed[0][0])
        if prefixed:
            raise NotFound(f"{text} begins the ids of several campaigns", mend="type more of the id")
        raise NotFound(f"no campaign {text}", mend="kfd-client list shows those that exist")

    async def campaign(self, campaign: CampaignId) -> CampaignView:
        """One campaign. Raises NotFound."""
        found = await self._all(f"SELECT id, spec, {RECORD_COLUMNS} FROM campaign WHERE id = ?", (campaign,))
        if not found:
            raise NotFound(f"no campaign {campaign}", mend="kfd-client list shows those that exist")
        return await self._campaign_view(found[0])

    async def search(self, campaign: CampaignId) -> SearchView:
        """How its search stands."""
        return await search_view(self._all, campaign)

    async def campaigns(self, state: str, limit: int) -> list[CampaignView]:
        """The newest campaigns, newest first; of one state unless it is empty."""
        where = "WHERE state = ?" if state else ""
        arguments = (state, limit) if state else (limit,)
        found = await self._all(
            f"SELECT id, spec, {RECORD_COLUMNS} FROM campaign {where} ORDER BY submitted_at DESC, rowid DESC LIMIT ?",
            arguments,
        )
        return [await self._campaign_view(row) for row in found]

    async def _campaign_view(self, row: tuple[Any, ...]) -> CampaignView:
        spec = rows.campaign_spec(row[1])
        record = rows.campaign_record(row[0], row[2:])
        counts = await self._all(
            "SELECT CASE state WHEN 'judged' THEN outcome WHEN 'discarded' THEN 'discarded:' || outcome "
            "ELSE state END AS what, count(*), sum(input_tokens), sum(output_tokens), "
            "sum(operator = 'initial') FROM candidate WHERE campaign = ? AND outcome <> ? GROUP BY what ORDER BY what",
            (spec.id, DiscardReason.NO_RECORDING.value),
        )
        cells = await self._all("SELECT count(*) FROM elite WHERE campaign = ?", (spec.id,))
        spent = await self._all(SPENT, (spec.id,))
        last = await self._all("SELECT coalesce(max(seq), 0) FROM event WHERE campaign = ?", (spec.id,))
        admission = await self._all(
            "SELECT body FROM report WHERE campaign = ? AND ordinal = 0 AND purpose = 'admit'", (spec.id,)
        )
        detail = rows.report_from_text(admission[0][0]).detail if admission else None
        (meta,) = await self._all(
            "SELECT coalesce(sum(input_tokens), 0), coalesce(sum(output_tokens), 0) FROM prompt WHERE campaign = ?",
            (spec.id,),
        )
        best = None
        if record.best is not None:
            best = (await self.candidate(record.best)).candidate
        return CampaignView(
            spec=spec,
            record=record,
            outcomes=tuple((what, number) for what, number, *_ in counts),
            cells=cells[0][0],
            best=best,
            has_initial=any(row[4] for row in counts),
            admission=detail if isinstance(detail, AdmitResult) else None,
            input_tokens=sum(row[2] for row in counts) + meta[0],
            output_tokens=sum(row[3] for row in counts) + meta[1],
            spent=amount_from_row(spent[0]),
            last_seq=last[0][0],
        )

    # ---- candidates -----------------------------------------------------------------------------------

    async def resolve_candidate(self, text: str, campaign: str = "") -> CandidateId:
        """A candidate by id, or ``@best`` (of ``campaign``). Raises NotFound."""
        if text == "@best" or (not text and campaign):
            of = await self.resolve_campaign(campaign)
            best = (await self.campaign(of)).record.best
            if best is None:
                raise NotFound(f"{of} has no correct candidate yet", mend=f"kfd-client status {of}")
            return best
        prefix, dash, ordinal = text.rpartition("-")
        if not dash or not ordinal.isdecimal() or len(ordinal) > MAX_DIGITS:
            raise NotFound(f"{text} is not a candidate id (they look like c7f3k2-17)", mend="kfd-client status ID")
        of = await self.resolve_campaign(prefix)
        return CandidateId(f"{of}-{int(ordinal)}")

    async def candidate(self, candidate: CandidateId) -> CandidateView:
        """One candidate with its evidence. Raises NotFound."""
        campaign, ordinal = campaign_of(candidate), ordinal_of(candidate)
        found = await self._all(
            f"SELECT {CANDIDATE_COLUMNS}, EXISTS (SELECT 1 FROM elite WHERE elite.campaign = candidate.campaign "
            "AND elite.ordinal = candidate.ordinal) FROM candidate WHERE campaign = ? AND ordinal = ?",
            (campaign, ordinal),
        )
        if not found:
            raise NotFound(f"no candidate {candidate}", mend=f"kfd-client status {campaign}")
        reports = await self._all(
            "SELECT purpose = 'build', body FROM report WHERE campaign = ? AND ordinal = ? "
            "AND (purpose IN ('build', 'run') OR purpose GLOB 'confirm[0-9]*') "
            "ORDER BY purpose GLOB 'confirm*', purpose = 'run', length(purpose), purpose",
            (campaign, ordinal),
        )
        jobs = [f"{candidate}.{purpose}" for purpose in (BUILD, RUN, *(f"{CONFIRM}{n}" for n in range(1, 10)))]
        attempts = await self._all(
            f"SELECT coalesce(sum(attempt), 0) FROM job WHERE campaign = ? AND id IN ({', '.join('?' * len(jobs))})",
            (campaign, *jobs),
        )
        return CandidateView(
            candidate=rows.candidate_from_row(found[0][:-1]),
            campaign=campaign,
            elite=bool(found[0][-1]),
            report=rows.report_from_text(reports[-1][1]) if reports else None,
            build=rows.report_from_text(reports[0][1]) if reports and reports[0][0] else None,
            attempts=attempts[0][0],
        )

    async def candidates(
        self, campaign: CampaignId, *, after: int, limit: int, outcome: str = "", elites_only: bool = False
    ) -> list[CandidateView]:
        """Candidates in the order of asking, without their evidence; ``after`` is exclusive (-1 for all)."""
        where = "" if not outcome else "AND outcome = ? "
        elite = (
            "EXISTS (SELECT 1 FROM elite WHERE elite.campaign = candidate.campaign "
            "AND elite.ordinal = candidate.ordinal)"
        )
        only = f"AND {elite} " if elites_only else ""
        arguments: list[Any] = [campaign, after, *([outcome] if outcome else []), limit]
        found = await self._all(
            f"SELECT {CANDIDATE_COLUMNS}, {elite} FROM candidate WHERE campaign = ? AND ordinal > ? "
            f"{where}{only}ORDER BY ordinal LIMIT ?",
            arguments,
        )
        return [
            CandidateView(
                candidate=rows.candidate_from_row(row[:-1]),
                campaign=campaign,
                elite=bool(row[-1]),
                report=None,
                attempts=0,
            )
            for row in found
        ]

    async def text(self, candidate: CandidateId, kind: str) -> str | None:
        """Source, prompt or answer of a candidate; None when there is none."""
        found = await self._all(
            "SELECT body FROM text WHERE campaign = ? AND ordinal = ? AND kind = ?",
            (campaign_of(candidate), ordinal_of(candidate), kind),
        )
        return rows.unpack(found[0][0]) if found else None

    # ---- prompts --------------------------------------------------------------------------------------

    async def mutations(self, campaign: CampaignId) -> list[Mutation]:
        """All mutations of a campaign's prompts in the order of asking."""
        return [prompts.mutation_from_row(row) for row in await self._all(prompts.MUTATIONS, (campaign,))]

    async def prompts(self, spec: CampaignSpec) -> list[PromptView]:
        """The first variant and all mutations with the credit of each variant."""
        mutations = await self.mutations(spec.id)
        gains = await self._all(prompts.GAINS, (spec.id,))
        # In a thread: one step for each candidate of the campaign.
        return await asyncio.to_thread(prompts.prompt_views, spec, mutations, gains)

    async def mutation_text(self, campaign: CampaignId, nth: int, kind: str) -> str | None:
        """Question (``prompt``) or answer of a mutation; None when there is none."""
        found = await self._all(
            "SELECT body FROM prompt_text WHERE campaign = ? AND nth = ? AND kind = ?", (campaign, nth, kind)
        )
        return rows.unpack(found[0][0]) if found else None

    async def children(self, campaign: CampaignId, variant: str, limit: int) -> list[ChildView]:
        """The last children of a prompt variant, newest first."""
        return [prompts.child_from_row(row) for row in await self._all(prompts.CHILDREN, (campaign, variant, limit))]

    async def child_counts(self, campaign: CampaignId, variant: str) -> tuple[tuple[str, int], ...]:
        """(verdict code or discard reason, number) of all children of a prompt variant."""
        found = await self._all(prompts.COUNTS, (campaign, variant))
        return tuple((outcome, number) for outcome, number in found)

    # ---- events ---------------------------------------------------------------------------------------

    async def events(self, after: int, campaign: str, limit: int) -> list[EventRow]:
        """Events after a sequence number, oldest first; of one campaign unless it is empty."""
        where = "AND campaign = ? " if campaign else ""
        arguments: list[Any] = [after, *([campaign] if campaign else []), limit]
        found = await self._all(
            f"SELECT seq, at, coalesce(campaign, ''), kind, body FROM event WHERE seq > ? {where}ORDER BY seq LIMIT ?",
            arguments,
        )
        return [EventRow(seq=row[0], at=row[1], campaign=row[2], kind=row[3], body=row[4]) for row in found]

    async def tail_seq(self, campaign: str, count: int) -> int:
        """Sequence number after which the last ``count`` events lie."""
        where = "WHERE campaign = ? " if campaign else ""
        arguments: list[Any] = [*([campaign] if campaign else []), count]
        found = await self._all(
            f"SELECT min(seq) FROM (SELECT seq FROM event {where}ORDER BY seq DESC LIMIT ?)", arguments
        )
        return (found[0][0] or 1) - 1
