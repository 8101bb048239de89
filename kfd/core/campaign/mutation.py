"""Values of prompt evolution in a campaign: one mutation of a prompt variant, from question to outcome."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NewType, TypeAlias

from kfd.base.ids import CampaignId
from kfd.core.campaign.state import CampaignSpec
from kfd.core.search.prompt_archive import Region, Variant, variant_id

__all__ = [
    "Ended",
    "Mutation",
    "MutationId",
    "MutationRequest",
    "MutationState",
    "Regions",
    "accepted",
    "first_variant",
    "mutation_id",
    "nth_of",
    "regions_of",
    "variant_of",
]

MutationId = NewType("MutationId", str)

Regions: TypeAlias = tuple[tuple[Region, str], ...]
"""Texts of regions in the order of ``Region``; an empty one is left out."""


class MutationState(StrEnum):
    """``asking -> accepted | rejected | dropped``: a new variant, an answer without one, no answer any more."""

    ASKING = "asking"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """When a mutation ended, in the order of everything that a replay has to keep apart."""

    at: int
    """How many outcomes the search had been told of."""
    before: int
    """Ordinal of the candidate that was asked for next."""
    nth: int
    """Its place among the campaign's mutations in the order of ending, from 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """One question to the meta-prompter about one variant: its row."""

    nth: int
    """Its place in the order of asking, from 1."""
    parent: str
    """Id of the variant that is to change."""
    asked_at: int
    """How many outcomes the search had been told of."""
    state: MutationState = MutationState.ASKING
    variant: str = ""
    """Id of the new variant; empty unless it was accepted."""
    generation: int = 0
    regions: Regions = ()
    """What the new variant says; empty unless it was accepted."""
    reason: str = ""
    """Why there is no new variant."""
    faults: int = 0
    """How often the provider has failed."""
    model: str = ""
    """Who answered."""
    input_tokens: int = 0
    output_tokens: int = 0
    """Tokens of all attempts, failed ones included."""
    ended: Ended | None = None
    """None while it is open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MutationRequest:
    """What the meta-prompter is asked with; its children's fates and texts are read from the store."""

    campaign: CampaignSpec
    mutation: MutationId
    nth: int
    parent: str
    """Id of the variant that is to change."""
    parent_nth: int
    """How often that variant was to change before."""
    regions: Regions
    generation: int
    children: int
    """Children that its credit rests on."""
    credit: float
    """Mean gain in fitness of its children over their parents, shrunk towards the mean of all."""
    mean: float
    """Mean gain of the children of all variants."""
    model: str
    """Configured name of the model; empty lets the generator choose."""
    model_choice: float
    input_tokens: int
    output_tokens: int
    """Tokens that earlier attempts at this question have cost."""


def mutation_id(campaign: CampaignId, nth: int) -> MutationId:
    """``c7f3k2-p3``: what a mutation is called outside; no candidate has such an id."""
    return MutationId(f"{campaign}-p{nth}")


def nth_of(mutation: MutationId) -> int:
    """Place of a mutation in its campaign's order of asking."""
    return int(mutation.rpartition("-p")[2])


def regions_of(texts: Mapping[Region, str]) -> Regions:
    """Texts by region as they are stored."""
    return tuple((region, texts[region]) for region in Region if texts.get(region))


def first_variant(spec: CampaignSpec) -> Variant:
    """The variant that a campaign begins with."""
    texts = dict(spec.regions)
    return Variant(id=variant_id(texts), regions=texts)


def variant_of(mutation: Mutation) -> Variant:
    """The variant that an accepted mutation made, without children yet."""
    return Variant(
        id=mutation.variant,
        regions=dict(mutation.regions),
        parent=mutation.parent,
        generation=mutation.generation,
    )


def accepted(mutations: Iterable[Mutation]) -> list[tuple[Ended, Mutation]]:
    """Those that made a new variant, in the order in which the search took them in, and when that was."""
    made = [
        (mutation.ended, mutation)
        for mutation in mutations
        if mutation.state is MutationState.ACCEPTED and mutation.ended is not None
    ]
    return sorted(made, key=lambda one: one[0].nth)
