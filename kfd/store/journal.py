"""The one writer: commands of a batch become one transaction, durable before anything is visible."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import aiosqlite

from kfd.base.codec import encode
from kfd.base.ids import campaign_of, ordinal_of
from kfd.core.commands import (
    Command,
    CreateCampaign,
    DemoteCandidate,
    SaveCampaign,
    SaveCandidate,
    SaveElite,
    SaveMutation,
    SaveMutationText,
    SaveReport,
    SaveSpending,
    SaveText,
)
from kfd.core.fleet.model import Fact, SaveJob
from kfd.store import rows
from kfd.store.migrate import migrate
from kfd.store.prompts import PROMPT_COLUMNS, mutation_row
from kfd.store.rows import Row
from kfd.store.spending import ADD, spending_row

__all__ = ["Batch", "Journal", "StoreStalled"]

CHECKPOINT_PAGES = 2_000
"""Pages in the log after which it is copied into the file between two batches (8 MiB)."""

TRUNCATE_PAGES = 16_384
"""Pages after which the log file is cut down (64 MiB)."""

_STALLS = ("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_BUSY", "SQLITE_LOCKED")

_STATEMENTS: dict[str, str] = {
    "create": f"INSERT INTO campaign (id, idempotency_key, name, submitted_at, spec, {rows.RECORD_COLUMNS}) "
    f"VALUES ({', '.join('?' * (6 + rows.RECORD_COLUMNS.count(',')))})",
    "campaign": f"UPDATE campaign SET {rows.RECORD_COLUMNS.replace(',', ' = ?,')} = ? WHERE id = ?",
    "candidate": f"INSERT OR REPLACE INTO candidate ({rows.CANDIDATE_COLUMNS}) "
    f"VALUES ({', '.join('?' * (rows.CANDIDATE_COLUMNS.count(',') + 1))})",
    "text": "INSERT INTO text (campaign, ordinal, kind, body) VALUES (?, ?, ?, ?) "
    "ON CONFLICT (campaign, ordinal, kind) DO NOTHING",
    "report": "INSERT INTO report (campaign, ordinal, purpose, body) VALUES (?, ?, ?, ?) "
    "ON CONFLICT (campaign, ordinal, purpose) DO NOTHING",
    "elite": "INSERT INTO elite (campaign, cell, ordinal) VALUES (?, ?, ?) "
    "ON CONFLICT (campaign, cell) DO UPDATE SET ordinal = excluded.ordinal",
    "demote_elite": "DELETE FROM elite WHERE campaign = ? AND ordinal = ?",
    "demote": "UPDATE candidate SET outcome = 'suspect', fitness = NULL, text = ? WHERE campaign = ? AND ordinal = ?",
    "job": "INSERT OR REPLACE INTO job (id, campaign, state, attempt, incidents, agent_losses, cancelled, worker, "
    "slot, session) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    "spending": ADD,
    # An upsert: to replace the row would delete it first, and texts refer to it.
    "prompt": f"INSERT INTO prompt ({PROMPT_COLUMNS}) VALUES ({', '.join('?' * (PROMPT_COLUMNS.count(',') + 1))}) "
    "ON CONFLICT (campaign, nth) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in PROMPT_COLUMNS.split(", ")[4:]),
    "prompt_text": "INSERT OR REPLACE INTO prompt_text (campaign, nth, kind, body) VALUES (?, ?, ?, ?)",
    "event": "INSERT INTO event (seq, at, campaign, kind, body) VALUES (?, ?, ?, ?, ?)",
}


class StoreStalled(Exception):
    """The batch was rolled back because the disk is full, failing or locked; writing it again may succeed."""


@dataclass(slots=True)
class Batch:
    """Rows of one transaction. Within a batch the last write of a row wins."""

    create: list[Row] = field(default_factory=list)
    campaign: dict[str, Row] = field(default_factory=dict)
    candidate: dict[tuple[str, int], Row] = field(default_factory=dict)
    text: list[Row] = field(default_factory=list)
    report: list[Row] = field(default_factory=list)
    elite: list[Row] = field(default_factory=list)
    demote: list[Row] = field(default_factory=list)
    demote_elite: list[Row] = field(default_factory=list)
    job: dict[str, Row] = field(default_factory=dict)
    spending: list[Row] = field(default_factory=list)
    prompt: dict[tuple[str, int], Row] = field(default_factory=dict)
    prompt_text: list[Row] = field(default_factory=list)
    event: list[Row] = field(default_factory=list)

    def parts(self) -> list[tuple[str, list[Row]]]:
        """(statement, rows) in an order that foreign keys allow."""
        parts = [
            ("create", self.create),
            ("campaign", list(self.campaign.values())),
            ("candidate", list(self.candidate.values())),
            ("text", self.text),
            ("report", self.report),
            ("elite", self.elite),
            ("demote_elite", self.demote_elite),
            ("demote", self.demote),
            ("job", list(self.job.values())),
            ("spending", self.spending),
            ("prompt", list(self.prompt.values())),
            ("prompt_text", self.prompt_text),
            ("event", self.event),
        ]
        return [(name, batch) for name, batch in parts if batch]

    @property
    def facts(self) -> list[Row]:
        """(seq, at, campaign, kind, body) of the batch's events."""
        return self.event


class Journal:
    """Owns the only read-write connection, and the only one that checkpoints (DESIGN, section 10)."""

    def __init__(self, connection: aiosqlite.Connection, last_seq: int) -> None:
        self._connection = connection
        self._last_seq = last_seq

    @classmethod
    async def open(cls, path: Path) -> Journal:
        """Migrate the file if needed and open it. Raises CallerError for a file that is not ours."""
        migrate(path)
        connection = await aiosqlite.connect(path, isolation_level=None)
        for pragma in (
            "journal_mode = WAL",
            "synchronous = FULL",
            "foreign_keys = ON",
            "wal_autocheckpoint = 0",
            "journal_size_limit = 67108864",
            "busy_timeout = 2000",
            "cache_size = -65536",
        ):
            await connection.execute(f"PRAGMA {pragma}")
        async with connection.execute("SELECT coalesce(max(seq), 0) FROM event") as cursor:
            row = await cursor.fetchone()
        return cls(connection, int(row[0]) if row else 0)

    @property
    def last_seq(self) -> int:
        """Number of the newest event."""
        return self._last_seq

    def prepare(self, commands: Iterable[Command], at: str) -> Batch:
        """Rows of a batch; ``at`` is the wall time shown to people (RFC 3339). Numbers the events."""
        batch = Batch()
        for command in commands:
            self._prepare(batch, command, at)
        return batch

    def _prepare(self, batch: Batch, command: Command, at: str) -> None:
        match command:
            case SaveJob(job=job):
                batch.job[job.id] = rows.job_row(job)
            case SaveCandidate(campaign=campaign, candidate=candidate):
                batch.candidate[campaign, candidate.ordinal] = rows.candidate_row(campaign, candidate)
            case Fact(kind=kind, campaign=of, body=body):
                self._last_seq += 1
                text = json.dumps(encode_body(body), separators=(",", ":"), ensure_ascii=False)
                batch.event.append((self._last_seq, at, of, kind, text))
            case SaveText(candidate=candidate, text=packed):
                batch.text.append((campaign_of(candidate), ordinal_of(candidate), packed.kind, packed.body))
            case SaveReport(job=job, candidate=candidate, report=report):
                key = (campaign_of(candidate), ordinal_of(candidate), job.rpartition(".")[2])
                batch.report.append((*key, rows.report_text(report)))
            case SaveSpending():
                batch.spending.append(spending_row(command))
            case SaveElite(campaign=campaign, cell=cell, candidate=candidate):
                batch.elite.append((campaign, rows.cell_text(cell), ordinal_of(candidate)))
            case DemoteCandidate(campaign=campaign, candidate=candidate, text=why):
                batch.demote.append((why, campaign, ordinal_of(candidate)))
                batch.demote_elite.append((campaign, ordinal_of(candidate)))
            case SaveMutation() | SaveMutationText():
                _mutation(batch, command)
            case SaveCampaign(record=record):
                batch.campaign[record.id] = (*rows.record_row(record), record.id)
            case CreateCampaign(spec=spec, record=record):
                text = json.dumps(encode(spec), separators=(",", ":"), ensure_ascii=False)
                head = (spec.id, spec.idempotency_key, spec.name, spec.submitted_at, text)
                batch.create.append((*head, *rows.record_row(record)))
            case _:
                pass  # replies and effects are the reactor's

    async def write(self, batch: Batch) -> None:
        """Make a batch durable. Raises StoreStalled after a rollback that left nothing behind."""
        parts = batch.parts()
        if not parts:
            return
        # The whole transaction is one hop to aiosqlite's thread: its public calls would take ten, each a wake-up of
        # two threads, which cost more than the statements (measured: a fifth of the daemon's time).
        connection = self._connection
        try:
            await connection._execute(_transact, connection._conn, parts)  # type: ignore[no-untyped-call]
        except sqlite3.OperationalError as error:
            if (getattr(error, "sqlite_errorname", None) or "").startswith(_STALLS):
                raise StoreStalled(str(error)) from error
            raise

    async def checkpoint(self, *, idle: bool) -> None:
        """Copy the log into the file: a little between batches, all of it when idle. Never raises StoreStalled:
        a checkpoint that cannot be done now is done later."""
        try:
            async with self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)") as cursor:
                row = await cursor.fetchone()
            if row is not None and (idle or row[1] > TRUNCATE_PAGES):
                async with self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)") as cursor:
                    await cursor.fetchone()
        except sqlite3.OperationalError:
            return

    async def close(self) -> None:
        """Checkpoint and close."""
        await self.checkpoint(idle=True)
        await self._connection.close()


def _mutation(batch: Batch, command: SaveMutation | SaveMutationText) -> None:
    match command:
        case SaveMutation(campaign=campaign, mutation=mutation):
            batch.prompt[campaign, mutation.nth] = mutation_row(campaign, mutation)
        case SaveMutationText(campaign=campaign, nth=nth, text=packed):
            batch.prompt_text.append((campaign, nth, packed.kind, packed.body))


def _transact(connection: sqlite3.Connection, parts: list[tuple[str, list[Row]]]) -> None:
    """Write the parts in one transaction; whatever fails leaves nothing behind. Runs in the writer's thread."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        for name, rows_ in parts:
            connection.executemany(_STATEMENTS[name], rows_)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def encode_body(body: tuple[tuple[str, str | int | float | bool | None], ...]) -> dict[str, object]:
    """Body of an event as a JSON object; what has no value is left out."""
    return {key: encode(value) for key, value in body if value is not None}
