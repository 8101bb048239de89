"""Entities to rows and back, by hand."""

from __future__ import annotations

import json
import zlib
from typing import Any, TypeAlias

from kfd.base.codec import decode, encode
from kfd.base.digest import Digest
from kfd.base.ids import (
    CampaignId,
    CandidateId,
    JobId,
    SessionId,
    SlotName,
    WorkerName,
    candidate_id,
    ordinal_of,
)
from kfd.base.work import Report, Speedup
from kfd.core.campaign.state import Asked, CampaignRecord, CampaignSpec, CampaignState, Candidate, CandidateState, Told
from kfd.core.commands import Packed
from kfd.core.fleet.model import Job, JobState
from kfd.core.search.archive import Cell, Niche
from kfd.core.search.operators import Operator
from kfd.core.search.transitions import Direction
from kfd.core.search.tuning import Declared, Values
from kfd.store.old_specs import translated

__all__ = [
    "CANDIDATE_COLUMNS",
    "RECORD_COLUMNS",
    "Row",
    "campaign_record",
    "campaign_spec",
    "candidate_from_row",
    "candidate_row",
    "cell_from_text",
    "cell_text",
    "hints_from_text",
    "hints_text",
    "job_fields",
    "job_row",
    "levels_from_text",
    "pack",
    "record_row",
    "report_from_text",
    "report_text",
    "speedups_from_text",
    "speedups_text",
    "unpack",
]

Row: TypeAlias = tuple[Any, ...]

CANDIDATE_COLUMNS = (
    "campaign, ordinal, state, outcome, text, operator, parent, parent_source, inspirations, nth, generation, "
    "repair_depth, model, source, normal, cell, artifact, fitness, speedups, input_tokens, output_tokens, worker, "
    "rival, rival_artifact, confirmations, length, asked_at, asked_model, variant, strategy, reaction, island, hints, "
    "parent_cell, parent_fitness, told, told_fitness, kept, best, space, point, origin, extra, shape"
)

RECORD_COLUMNS = (
    "state, reason, best, final_speedups, verify_note, verifications, active_ns, incidents, admitted, roofline"
)

TEXT_LIMIT = 8 << 20


def pack(kind: str, text: str) -> Packed:
    """Compress a text for the store. Lone surrogates are kept as they are."""
    return Packed(kind=kind, body=zlib.compress(text.encode("utf-8", "surrogatepass"), 1))


def unpack(body: bytes) -> str:
    """Read what ``pack`` wrote. Raises ValueError when it is damaged or absurdly large."""
    inflater = zlib.decompressobj()
    try:
        data = inflater.decompress(body, TEXT_LIMIT)
    except zlib.error as error:
        raise ValueError(f"damaged text: {error}") from error
    if inflater.unconsumed_tail:
        raise ValueError("text too large")
    if not inflater.eof:
        raise ValueError("damaged text: it ends too early")
    return data.decode("utf-8", "surrogatepass")


def _dumps(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def speedups_text(speedups: tuple[Speedup, ...]) -> str:
    """Speedups as JSON."""
    return _dumps(encode(speedups)) if speedups else "[]"


def speedups_from_text(text: str) -> tuple[Speedup, ...]:
    """Speedups from JSON."""
    return tuple(decode(Speedup, item) for item in json.loads(text))


def report_text(report: Report) -> str:
    """A report as JSON."""
    return _dumps(encode(report))


def report_from_text(text: str) -> Report:
    """A report from JSON."""
    return decode(Report, json.loads(text))


def cell_text(cell: Niche | None) -> str | None:
    """``"0,1,2"``."""
    return None if cell is None else ",".join(map(str, cell))


def cell_from_text(text: str) -> Cell:
    """A cell from ``cell_text``. Raises ValueError."""
    memory, algorithm, parallelism = (int(part) for part in text.split(","))
    return memory, algorithm, parallelism


def levels_from_text(text: str) -> tuple[int, ...]:
    """Levels of further axes from ``cell_text``. Raises ValueError."""
    return tuple(int(part) for part in text.split(",") if part)


def hints_text(hints: tuple[Direction, ...]) -> str:
    """``"0+1 2-1"``: axis and step of each direction."""
    return " ".join(f"{axis}{step:+d}" for axis, step in hints)


def hints_from_text(text: str) -> tuple[Direction, ...]:
    """Directions from ``hints_text``. Raises ValueError."""
    return tuple((int(part[:1]), int(part[1:])) for part in text.split())


def _values(text: str) -> Values:
    """A sweep's point from ``"TILE=32 VEC=4"``. Raises ValueError."""
    parts = [part.partition("=") for part in text.split()]
    return tuple((name, int(value)) for name, _, value in parts)


def candidate_row(campaign: CampaignId, candidate: Candidate) -> Row:
    """Row in the order of ``CANDIDATE_COLUMNS``."""
    return (
        campaign,
        candidate.ordinal,
        candidate.state.value,
        candidate.outcome,
        candidate.text,
        candidate.operator.value,
        None if candidate.parent is None else ordinal_of(candidate.parent),
        candidate.parent_source,
        ",".join(str(ordinal_of(other)) for other in candidate.inspirations),
        candidate.nth,
        candidate.generation,
        candidate.repair_depth,
        candidate.model,
        candidate.source,
        candidate.normal,
        cell_text(candidate.cell),
        None if candidate.artifact is None else str(candidate.artifact),
        candidate.fitness,
        speedups_text(candidate.speedups),
        candidate.input_tokens,
        candidate.output_tokens,
        candidate.worker,
        None if candidate.rival is None else ordinal_of(candidate.rival),
        None if candidate.rival_artifact is None else str(candidate.rival_artifact),
        candidate.confirmations,
        candidate.length,
        candidate.asked.at,
        candidate.asked.model,
        candidate.asked.variant,
        candidate.asked.strategy,
        candidate.asked.reaction,
        candidate.asked.island,
        hints_text(candidate.asked.hints),
        cell_text(candidate.asked.parent_cell),
        candidate.asked.parent_fitness,
        None if candidate.told is None else candidate.told.nth,
        None if candidate.told is None else candidate.told.fitness,
        int(candidate.told is not None and candidate.told.kept),
        int(candidate.told is not None and candidate.told.best),
        None if candidate.space is None else _dumps(encode(candidate.space)),
        " ".join(f"{name}={value}" for name, value in candidate.values),
        candidate.origin,
        cell_text(candidate.extra),
        candidate.shape,
    )


def candidate_from_row(row: Row) -> Candidate:
    """Candidate from a row in the order of ``CANDIDATE_COLUMNS``."""
    campaign = CampaignId(row[0])
    return Candidate(
        id=candidate_id(campaign, row[1]),
        ordinal=row[1],
        state=CandidateState(row[2]),
        outcome=row[3],
        text=row[4],
        operator=Operator(row[5]),
        parent=None if row[6] is None else candidate_id(campaign, row[6]),
        parent_source=row[7],
        inspirations=tuple(candidate_id(campaign, int(part)) for part in row[8].split(",") if part),
        nth=row[9],
        generation=row[10],
        repair_depth=row[11],
        model=row[12],
        source=row[13],
        normal=row[14],
        cell=None if row[15] is None else cell_from_text(row[15]),
        artifact=None if row[16] is None else Digest.parse(row[16]),
        fitness=row[17],
        speedups=speedups_from_text(row[18]),
        input_tokens=row[19],
        output_tokens=row[20],
        worker=row[21],
        rival=None if row[22] is None else candidate_id(campaign, row[22]),
        rival_artifact=None if row[23] is None else Digest.parse(row[23]),
        confirmations=row[24],
        length=row[25],
        space=None if row[39] is None else decode(Declared, json.loads(row[39])),
        values=_values(row[40]),
        origin=None if row[41] is None else CandidateId(row[41]),
        extra=levels_from_text(row[42]),
        shape=row[43],
        asked=Asked(
            at=row[26],
            model=row[27],
            variant=row[28],
            strategy=row[29],
            reaction=row[30],
            island=row[31],
            hints=hints_from_text(row[32]),
            parent_cell=cell_from_text(row[33]),
            parent_fitness=row[34],
        ),
        told=None if row[35] is None else Told(nth=row[35], fitness=row[36], kept=bool(row[37]), best=bool(row[38])),
    )


def campaign_spec(text: str) -> CampaignSpec:
    """A spec from its JSON, as this or an older kfd wrote it."""
    return decode(CampaignSpec, translated(json.loads(text)))


def record_row(record: CampaignRecord) -> Row:
    """Row in the order of ``RECORD_COLUMNS``."""
    return (
        record.state.value,
        record.reason,
        record.best,
        speedups_text(record.final_speedups),
        record.verify_note,
        record.verifications,
        record.active_ns,
        record.incidents,
        int(record.admitted),
        record.roofline,
    )


def campaign_record(id_: str, row: Row) -> CampaignRecord:
    """Record from a row in the order of ``RECORD_COLUMNS``."""
    return CampaignRecord(
        id=CampaignId(id_),
        state=CampaignState(row[0]),
        reason=row[1],
        best=None if row[2] is None else CandidateId(row[2]),
        final_speedups=speedups_from_text(row[3]),
        verify_note=row[4],
        verifications=row[5],
        active_ns=row[6],
        incidents=row[7],
        admitted=bool(row[8]),
        roofline=row[9],
    )


def job_row(job: Job) -> Row:
    """Row of a job; its spec is derived from the candidate and is not stored."""
    return (
        job.id,
        job.campaign,
        job.state.value,
        job.attempt,
        job.incidents,
        job.agent_losses,
        int(job.cancelled),
        job.worker,
        job.slot,
        job.session,
    )


def job_fields(row: Row) -> dict[str, Any]:
    """Fields of a job by name, all but its spec."""
    return {
        "id": JobId(row[0]),
        "campaign": CampaignId(row[1]),
        "state": JobState(row[2]),
        "attempt": row[3],
        "incidents": row[4],
        "agent_losses": row[5],
        "cancelled": bool(row[6]),
        "worker": None if row[7] is None else WorkerName(row[7]),
        "slot": None if row[8] is None else SlotName(row[8]),
        "session": None if row[9] is None else SessionId(row[9]),
    }
