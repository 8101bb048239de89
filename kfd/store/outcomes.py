"""What the search was told, from the rows of candidates: read when a daemon starts, tens of thousands at a time."""

from __future__ import annotations

import json
from typing import Any

from kfd.base.digest import Digest
from kfd.base.ids import CampaignId, candidate_id
from kfd.core.campaign.learning import price_of
from kfd.core.campaign.state import CampaignSpec, DiscardReason
from kfd.core.search.archive import Elite
from kfd.core.search.fitness import LEAST_CORRECT
from kfd.core.search.operators import Operator
from kfd.core.search.proposals import Outcome
from kfd.store.rows import Row, cell_from_text, hints_from_text, levels_from_text

__all__ = ["OUTCOMES", "outcome_from_row"]

OUTCOMES = (
    "SELECT ordinal, operator, parent, parent_source, parent_cell, parent_fitness, asked_model, variant, island, "
    "hints, told_fitness, kept, best, input_tokens, output_tokens, generation, cell, speedups, source, artifact, "
    "length, model, extra FROM candidate WHERE campaign = ? AND told IS NOT NULL "
    f"AND outcome <> '{DiscardReason.NO_RECORDING}' ORDER BY told"
)
"""Rows of one campaign in the order of telling."""


def outcome_from_row(spec: CampaignSpec, row: Row) -> Outcome:
    """What ``learning.outcome_of`` says of the same candidate, without reading what it does not need.

    Raises ValueError for a row that cannot be understood.
    """
    campaign, baseline = spec.id, spec.baseline
    return Outcome(
        ordinal=row[0],
        operator=Operator(row[1]),
        parent=None if row[2] is None else candidate_id(campaign, row[2]),
        parent_source=row[3],
        parent_cell=cell_from_text(row[4]),
        parent_fitness=row[5],
        model=row[6],
        prompt=row[7],
        island=row[8],
        hints=hints_from_text(row[9]),
        fitness=row[10],
        elite=_elite(campaign, row, baseline) if row[10] >= LEAST_CORRECT else None,
        kept=bool(row[11]),
        best=bool(row[12]),
        price=price_of(spec, row[21], row[13], row[14]),
    )


def _elite(campaign: CampaignId, row: Row, baseline: str) -> Elite:
    speeds: list[dict[str, Any]] = json.loads(row[17])
    speed = next((one for one in speeds if one["baseline"] == baseline), None)
    if speed is None or row[19] is None:
        raise ValueError(f"{campaign}-{row[0]} was an elite without an artifact or a speedup over {baseline}")
    return Elite(
        candidate=candidate_id(campaign, row[0]),
        ordinal=row[0],
        generation=row[15],
        cell=(0, 0, 0) if row[16] is None else cell_from_text(row[16]),
        fitness=row[10],
        speedup=float(speed["value"]),
        low=float(speed["low"]),
        high=float(speed["high"]),
        source=row[18],
        artifact=Digest.parse(row[19]),
        length=row[20],
        extra=levels_from_text(row[22]),
    )
