"""What to ask next: operator, parent and inspirations for one new candidate."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from kfd.base.ids import CandidateId
from kfd.core.dice import Dice
from kfd.core.search.archive import Elite
from kfd.core.search.selection import SelectionWeights, choose_parent, inspirations

__all__ = ["NOTHING", "Broken", "EmitterPolicy", "Operator", "Proposal", "propose"]

NOTHING = "nothing"
"""Parent digest of a candidate that is generated from nothing."""


class Operator(StrEnum):
    """How a child is asked for. ``initial`` is the task's own kernel, asked of nobody."""

    INITIAL = "initial"
    REWRITE = "rewrite"
    PATCH = "patch"
    REPAIR = "repair"


@dataclass(frozen=True, slots=True, kw_only=True)
class EmitterPolicy:
    """Shares and limits of the operators."""

    rewrite: float = 0.6
    patch: float = 0.4
    repair_depth: int = 2
    """Repairs in a row on one line of failures; 0 switches repair off."""
    inspirations: int = 2
    selection: SelectionWeights = field(default_factory=SelectionWeights)

    def __post_init__(self) -> None:
        if min(self.rewrite, self.patch) < 0 or self.rewrite + self.patch <= 0:
            raise ValueError("operator weights are not negative and one is positive")


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A failed candidate that may be worth a repair."""

    candidate: CandidateId
    ordinal: int
    generation: int
    depth: int
    """How many repairs in a row led here."""
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What to ask."""

    operator: Operator
    parent: CandidateId | None
    parent_source: str
    generation: int
    repair_depth: int
    inspirations: tuple[CandidateId, ...]


def propose(
    elites: Sequence[Elite],
    broken: Sequence[Broken],
    closed: Collection[tuple[str, str]],
    policy: EmitterPolicy,
    dice: Dice,
    ordinal: int,
) -> Proposal | None:
    """Decide what candidate ``ordinal`` shall be.

    A failure is repaired before a new sample is spent (Kevin: serial repair beats parallel samples). ``closed``
    holds (parent digest, operator) pairs that the generator has no answer for; None when nothing is left to ask.
    """
    for failure in broken:
        if failure.depth < policy.repair_depth and (failure.source, Operator.REPAIR.value) not in closed:
            return Proposal(
                operator=Operator.REPAIR,
                parent=failure.candidate,
                parent_source=failure.source,
                generation=failure.generation + 1,
                repair_depth=failure.depth + 1,
                inspirations=(),
            )
    if not elites:
        if (NOTHING, Operator.REWRITE.value) in closed:
            return None
        return Proposal(
            operator=Operator.REWRITE,
            parent=None,
            parent_source=NOTHING,
            generation=1,
            repair_depth=0,
            inspirations=(),
        )
    return _from_elites(elites, closed, policy, dice, ordinal)


def _from_elites(
    elites: Sequence[Elite],
    closed: Collection[tuple[str, str]],
    policy: EmitterPolicy,
    dice: Dice,
    ordinal: int,
) -> Proposal | None:
    shares = {Operator.REWRITE: policy.rewrite, Operator.PATCH: policy.patch}
    open_operators = {
        elite.candidate: [op for op, share in shares.items() if share > 0 and (elite.source, op.value) not in closed]
        for elite in elites
    }
    askable = [elite for elite in elites if open_operators[elite.candidate]]
    if not askable:
        return None
    parent = choose_parent(askable, policy.selection, dice, ordinal)
    operators = open_operators[parent.candidate]
    operator = dice.pick(operators, [shares[op] for op in operators], "operator", ordinal)
    return Proposal(
        operator=operator,
        parent=parent.candidate,
        parent_source=parent.source,
        generation=parent.generation + 1,
        repair_depth=0,
        inspirations=tuple(
            elite.candidate for elite in inspirations(elites, parent, dice, ordinal, policy.inspirations)
        ),
    )
