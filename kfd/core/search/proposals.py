"""What the search is asked with and what it answers: policy, view, proposal, outcome."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from kfd.base.ids import CandidateId
from kfd.core.search.archive import Cell, Elite
from kfd.core.search.axes import ExtraAxis
from kfd.core.search.bandit import BanditPolicy
from kfd.core.search.gradient import GradientPolicy
from kfd.core.search.hints import Hint, HintPolicy
from kfd.core.search.operators import Operator, OperatorPolicy
from kfd.core.search.plateau import PlateauPolicy
from kfd.core.search.prompt_archive import PromptPolicy
from kfd.core.search.strategies import ParentWeights
from kfd.core.search.tuning import TunePolicy

__all__ = ["ANY_MODEL", "NOTHING", "Broken", "Outcome", "Proposal", "SearchPolicy", "View"]

NOTHING = "nothing"
"""Parent digest of a candidate that is generated from nothing."""

ANY_MODEL = "default"
"""Name that lets the generator choose the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPolicy:
    """All that can be configured about the search. What is off by default has not proved its gain (docs/search.md)."""

    parents: ParentWeights = field(default_factory=ParentWeights)
    gradient: GradientPolicy = field(default_factory=GradientPolicy)
    hints: HintPolicy = field(default_factory=HintPolicy)
    operators: OperatorPolicy = field(default_factory=OperatorPolicy)
    bandit: BanditPolicy | None = None
    """None: models and operators are drawn by their shares."""
    prompts: PromptPolicy = field(default_factory=PromptPolicy)
    plateau: PlateauPolicy = field(default_factory=PlateauPolicy)
    sweep: TunePolicy = field(default_factory=TunePolicy)
    models: tuple[tuple[str, float], ...] = ((ANY_MODEL, 1.0),)
    """Names and shares."""
    inspirations: int = 0
    """Other elites shown in a prompt, at most."""
    axes: tuple[ExtraAxis, ...] = ()
    """Further axes of the archive, beside memory, algorithm and parallelism: length, registers, vectors."""
    best_of_n: bool = False
    """Plain sampling, to compare with at the same budget: every question asks to rewrite the task's own kernel (or to
    write one from nothing), and nothing is shown, learnt, repaired or swept. Only `models` and `plateau` stand beside
    it; any other section is refused."""

    def __post_init__(self) -> None:
        names = [name for name, _ in self.models]
        if not names or len(set(names)) != len(names):
            raise ValueError("name at least one model, and each one once")
        if not all(math.isfinite(share) and share > 0 for _, share in self.models):
            raise ValueError("shares of models are positive; leave out a model that shall not be asked")
        if not 0 <= self.inspirations <= 16:
            raise ValueError("inspirations are 0 to 16")


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A failed candidate that may be worth a repair."""

    candidate: CandidateId
    ordinal: int
    generation: int
    depth: int
    """How many repairs in a row led here."""
    source: str
    cell: Cell | None = None
    fitness: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What the campaign holds now."""

    elites: Sequence[Elite]
    broken: Sequence[Broken] = ()
    """Failures that wait, oldest first; the campaign drops one when its repair is asked."""
    closed: Collection[tuple[str, str]] = ()
    """(parent digest, operator) that the generator has no answer for."""
    best_length_ratio: float = 1.0
    """Length of the best kernel over the initial one's."""
    told: int = 0
    """How many candidates were told of."""
    last_asked: Mapping[Operator, int] = field(default_factory=dict)
    """``told`` when template and simplify were asked for last: neither is asked for again while it is awaited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What to ask, of whom, and why."""

    operator: Operator
    parent: CandidateId | None
    parent_source: str
    parent_cell: Cell
    parent_fitness: float
    generation: int
    repair_depth: int
    inspirations: tuple[CandidateId, ...]
    hints: tuple[Hint, ...]
    model: str
    prompt: str
    """Id of the prompt variant."""
    strategy: str
    """How the parent was found, for the log."""
    island: int
    reaction: str
    """The plateau reaction in force, or empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one proposal: the row that restores the search. Incidents are never told."""

    ordinal: int
    operator: Operator
    parent: CandidateId | None
    parent_source: str
    parent_cell: Cell
    parent_fitness: float
    model: str
    prompt: str
    island: int
    hints: tuple[tuple[int, int], ...]
    fitness: float
    """0 not built, 0.1 wrong, 0.5 and more when correct."""
    elite: Elite | None
    """The child as the archive was offered it; None for a failure."""
    kept: bool
    """Whether it is an elite now."""
    best: bool
    """Whether it is the best now."""
    price: float
    """Money that the call cost."""

    def __post_init__(self) -> None:
        if not all(math.isfinite(number) for number in (self.fitness, self.parent_fitness, self.price)):
            raise ValueError(f"outcome {self.ordinal}: fitness, the parent's fitness and price must be finite")
        if self.price < 0:
            raise ValueError(f"outcome {self.ordinal}: a price is not negative")
