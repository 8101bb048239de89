"""Mutations of prompt variants: entities to rows and back, and what is read of variants and their children."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace

from kfd.base.codec import encode
from kfd.base.ids import CampaignId
from kfd.core.campaign.mutation import Ended, Mutation, MutationState, Regions, accepted, first_variant, variant_of
from kfd.core.campaign.state import CampaignSpec, DiscardReason
from kfd.core.search.operators import Operator, gain_of
from kfd.core.search.prompt_archive import PromptArchive, Region, Variant
from kfd.core.views import ChildView, PromptView
from kfd.store.rows import CANDIDATE_COLUMNS, Row, candidate_from_row, report_from_text, unpack

__all__ = [
    "CHILDREN",
    "COUNTS",
    "GAINS",
    "MUTATIONS",
    "PROMPT_COLUMNS",
    "child_from_row",
    "mutation_from_row",
    "mutation_row",
    "prompt_views",
]

PROMPT_COLUMNS = (
    "campaign, nth, parent, asked_at, state, variant, generation, regions, reason, faults, model, input_tokens, "
    "output_tokens, ended_at, ended_before, ended_nth"
)

MUTATIONS = f"SELECT {PROMPT_COLUMNS} FROM prompt WHERE campaign = ? ORDER BY nth"
"""All mutations of a campaign in the order of asking."""

_IS_CHILD = (
    "campaign = ? AND variant = ? AND told IS NOT NULL AND operator <> 'tune' AND operator <> 'migrate' "
    f"AND outcome <> '{DiscardReason.NO_RECORDING}'"
)

COUNTS = f"SELECT outcome, count(*) FROM candidate WHERE {_IS_CHILD} GROUP BY outcome ORDER BY outcome"
"""What became of all children of a variant."""

GAINS = (
    "SELECT variant, operator, told_fitness - parent_fitness, kept FROM candidate WHERE campaign = ? "
    f"AND told IS NOT NULL AND outcome <> '{DiscardReason.NO_RECORDING}' ORDER BY told"
)
"""What variants are credited with, in the order of telling."""


_REPORT = "SELECT body FROM report WHERE report.campaign = child.campaign AND report.ordinal = child.ordinal AND"
_SOURCE = "SELECT body FROM text WHERE text.campaign = child.campaign AND text.kind = 'source' AND text.ordinal ="

CHILDREN = (
    f"SELECT {CANDIDATE_COLUMNS}, ({_REPORT} purpose = 'build'), "
    # The last side by side measurement counts before the first run.
    f"({_REPORT} (purpose = 'run' OR purpose LIKE 'confirm%') ORDER BY purpose = 'run', purpose DESC LIMIT 1), "
    f"({_SOURCE} child.ordinal), ({_SOURCE} child.parent) "
    f"FROM candidate AS child WHERE {_IS_CHILD} ORDER BY told DESC LIMIT ?"
)
"""The last children of a variant, newest first: rows, reports of build and run, sources of child and parent."""


def mutation_row(campaign: CampaignId, mutation: Mutation) -> Row:
    """Row in the order of ``PROMPT_COLUMNS``."""
    ended = mutation.ended
    return (
        campaign,
        mutation.nth,
        mutation.parent,
        mutation.asked_at,
        mutation.state.value,
        mutation.variant,
        mutation.generation,
        json.dumps(dict(encode(mutation.regions)), separators=(",", ":"), ensure_ascii=False),
        mutation.reason,
        mutation.faults,
        mutation.model,
        mutation.input_tokens,
        mutation.output_tokens,
        None if ended is None else ended.at,
        None if ended is None else ended.before,
        None if ended is None else ended.nth,
    )


def mutation_from_row(row: Row) -> Mutation:
    """Mutation from a row in the order of ``PROMPT_COLUMNS``. Raises ValueError."""
    return Mutation(
        nth=row[1],
        parent=row[2],
        asked_at=row[3],
        state=MutationState(row[4]),
        variant=row[5],
        generation=row[6],
        regions=_regions(row[7]),
        reason=row[8],
        faults=row[9],
        model=row[10],
        input_tokens=row[11],
        output_tokens=row[12],
        ended=None if row[13] is None else Ended(at=row[13], before=row[14], nth=row[15]),
    )


def _regions(text: str) -> Regions:
    texts = json.loads(text)
    if not isinstance(texts, dict) or not all(isinstance(one, str) for one in texts.values()):
        raise ValueError("regions of a prompt are texts by name")
    return tuple((Region(name), one) for name, one in texts.items())


def child_from_row(row: Row) -> ChildView:
    """A child from a row of ``CHILDREN``. Raises ValueError."""
    build, run, source, parent = row[-4:]
    return ChildView(
        candidate=candidate_from_row(row[:-4]),
        build=None if build is None else report_from_text(build),
        run=None if run is None else report_from_text(run),
        source=None if source is None else unpack(source),
        parent_source=None if parent is None else unpack(parent),
    )


def prompt_views(spec: CampaignSpec, mutations: Iterable[Mutation], gains: Iterable[Row]) -> list[PromptView]:
    """The first variant and all mutations, with what the search credits each variant with.

    ``gains`` are the rows of ``GAINS``. The archive is filled as the search filled it, so that the figures are those
    that it decides by; a variant that was dropped keeps what it had then.
    """
    stored = list(mutations)
    first = first_variant(spec)
    archive = PromptArchive(spec.search.prompts, (first,))
    waiting = accepted(stored)[::-1]
    last = {first.id: first}
    told = 0

    def take_in() -> None:
        while waiting and waiting[-1][0].at <= told:
            archive.add(variant_of(waiting.pop()[1]))
            last.update({one.id: one for one in archive.variants})

    for variant, operator, delta, kept in gains:
        take_in()
        told += 1
        if operator in (Operator.TUNE, Operator.MIGRATE):
            continue
        archive.judged(variant, gain_of(Operator(operator), delta, kept=bool(kept)))
        held = archive.get(variant)
        if held is not None:
            last[variant] = held
    take_in()
    views = [PromptView(mutation=None, variant=first.id, regions=tuple(spec.regions))]
    views += [PromptView(mutation=one, variant=one.variant, regions=one.regions) for one in stored]
    return [_credited(view, archive, last) for view in views]


def _credited(view: PromptView, archive: PromptArchive, last: dict[str, Variant]) -> PromptView:
    record = last.get(view.variant)
    if record is None:
        return view
    return replace(
        view,
        children=record.children,
        gain=record.gain,
        credit=archive.credit(record),
        held=archive.get(record.id) is not None,
    )
