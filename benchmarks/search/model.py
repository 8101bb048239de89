"""The simulated model: what a language model makes of a prompt, with stated fidelity. Written before any tuning.

* **Follows**: when hints are given, a rewrite goes along one of them with ``FOLLOW``; else it changes an axis of its
  own choice, upwards more often than downwards (models like to sound advanced).
* **Guided by the prompt**: the *strategies* of a prompt variant hold a hidden worth q; with probability ``GUIDED`` q
  the model takes a step that truly helps. *Pitfalls* of worth q take away half of the failures at q = 1. A
  meta-prompter's change moves a region's worth by a random step, upwards in three of five cases.
* **Copies**: from what it is shown it takes an axis or the details of an inspiration with ``COPY``.
* **Forgets**: a rewrite loses each detail with ``FORGET`` and falls back to default tuning constants with ``RESET``.
* **Repeats itself**: with ``REPEAT`` it gives an answer that it gave before to the same question.
* **Fails**: the more often, the more axes change and the more advanced the kernel is; models differ in this
  and in price.
* **Repairs**: a shown failure is mended with the model's own probability; otherwise the bug stays.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from benchmarks.search.landscape import AXES, Genome, Landscape
from kfd.core.search.archive import LEVELS, Cell

__all__ = ["MODELS", "Answer", "Question", "SimulatedModel", "SimulatedPrompt", "Talent"]

FOLLOW = 0.6
GUIDED = 0.3
COPY = 0.3
FORGET = 0.25
RESET = 0.5
REPEAT = 0.15
SECOND_AXIS = 0.25
UPWARDS = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class Talent:
    """What one model can do and what a call costs."""

    fail: float
    """Chance of a failure for a change of nothing."""
    repair: float
    """Chance that a shown failure is mended."""
    price: float
    """Money of one call."""


MODELS = {
    "large": Talent(fail=0.15, repair=0.65, price=0.030),
    "small": Talent(fail=0.30, repair=0.45, price=0.006),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedPrompt:
    """The hidden worth of a prompt variant's regions, each in [0, 1]."""

    strategies: float = 0.3
    pitfalls: float = 0.3

    def mutated(self, rng: random.Random) -> SimulatedPrompt:
        """What a meta-prompter's SEARCH/REPLACE makes of it."""
        step = abs(rng.gauss(0.0, 0.2)) * (1 if rng.random() < 0.6 else -1)
        if rng.random() < 0.5:
            return replace(self, strategies=min(1.0, max(0.0, self.strategies + step)))
        return replace(self, pitfalls=min(1.0, max(0.0, self.pitfalls + step)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What the model is shown. ``operator`` is one of kfd's operators by value."""

    operator: str
    parent: Genome
    inspirations: tuple[Genome, ...] = ()
    hints: tuple[tuple[int, int], ...] = ()
    """(axis, +1 or -1) that the prompt speaks of."""
    model: str = "large"
    prompt: SimulatedPrompt = field(default_factory=SimulatedPrompt)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back."""

    genome: Genome
    repeated: bool
    price: float


class SimulatedModel:
    """One campaign's model; remembers what it said."""

    def __init__(self, land: Landscape, seed: int) -> None:
        self._land = land
        self._rng = random.Random(f"model:{seed}")
        self._said: dict[tuple[str, Genome], list[Genome]] = {}

    def answer(self, question: Question) -> Answer:
        """One call."""
        rng, talent = self._rng, MODELS[question.model]
        said = self._said.setdefault((question.operator, question.parent), [])
        if said and rng.random() < REPEAT:
            return Answer(genome=rng.choice(said), repeated=True, price=talent.price)
        genome = self._made(question, talent)
        said.append(genome)
        return Answer(genome=genome, repeated=False, price=talent.price)

    def _made(self, question: Question, talent: Talent) -> Genome:
        parent = question.parent
        if question.operator == "repair":
            mended = self._rng.random() < talent.repair
            return replace(parent, bug=0) if mended else replace(parent, bug=parent.bug or 1)
        if question.operator == "patch":
            child = self._patched(question)
        elif question.operator == "crossover" and question.inspirations:
            child = self._crossed(parent, self._rng.choice(question.inspirations))
        elif question.operator in ("template", "simplify"):
            child = replace(parent, bug=0)
        else:
            child = self._rewritten(question)
        return self._with_luck(child, parent, talent, question.prompt)

    def _with_luck(self, child: Genome, parent: Genome, talent: Talent, prompt: SimulatedPrompt) -> Genome:
        moved = sum(abs(a - b) for a, b in zip(child.cell, parent.cell, strict=True))
        chance = (talent.fail + 0.06 * moved + 0.015 * sum(child.cell)) * (1 - 0.5 * prompt.pitfalls)
        if self._rng.random() >= chance:
            return replace(child, bug=0)
        return replace(child, bug=1 if self._rng.random() < 0.5 else 2)

    def _rewritten(self, question: Question) -> Genome:
        rng, parent = self._rng, question.parent
        child = self._step(parent, question)
        if rng.random() < SECOND_AXIS:
            child = replace(child, cell=self._shift(child.cell, rng.randrange(AXES), self._sign()))
        if question.inspirations and rng.random() < COPY:
            child = self._copied(child, rng.choice(question.inspirations))
        kept = sum(1 << bit for bit in range(self._land.details) if child.details >> bit & 1 and rng.random() >= FORGET)
        if self._land.details:
            kept |= 1 << rng.randrange(self._land.details)
        knobs = tuple(0 if rng.random() < RESET else value for value in child.knobs)
        return replace(child, details=kept, knobs=knobs, bug=0)

    def _patched(self, question: Question) -> Genome:
        rng, parent = self._rng, question.parent
        roll = rng.random()
        if roll < 0.15:
            return self._step(parent, question)
        if roll < 0.6 and self._land.details:
            return replace(parent, details=parent.details ^ 1 << rng.randrange(self._land.details), bug=0)
        return self._turned(parent)

    def _turned(self, parent: Genome) -> Genome:
        sizes = self._land.knob_sizes
        if not sizes:
            return replace(parent, bug=0)
        which = self._rng.randrange(len(sizes))
        knobs = list(parent.knobs)
        knobs[which] = min(sizes[which] - 1, max(0, knobs[which] + self._rng.choice((-1, 1))))
        return replace(parent, knobs=tuple(knobs), bug=0)

    def _crossed(self, one: Genome, other: Genome) -> Genome:
        rng = self._rng
        first, second, third = (rng.choice(pair) for pair in zip(one.cell, other.cell, strict=True))
        mask = rng.getrandbits(self._land.details) if self._land.details else 0
        return Genome(
            cell=(first, second, third),
            knobs=tuple(rng.choice(pair) for pair in zip(one.knobs, other.knobs, strict=True)),
            details=(one.details & mask) | (other.details & ~mask),
        )

    def _copied(self, child: Genome, shown: Genome) -> Genome:
        if self._rng.random() < 0.5 and self._land.details:
            return replace(child, details=child.details | shown.details)
        axis = self._rng.randrange(AXES)
        return replace(child, cell=_with_level(child.cell, axis, shown.cell[axis]), knobs=shown.knobs)

    def _step(self, parent: Genome, question: Question) -> Genome:
        rng = self._rng
        if question.hints and rng.random() < FOLLOW:
            axis, sign = rng.choice(question.hints)
        elif rng.random() < GUIDED * question.prompt.strategies:
            axis, sign = self._truly_better(parent)
        else:
            axis, sign = rng.randrange(AXES), self._sign()
        return replace(parent, cell=self._shift(parent.cell, axis, sign), bug=0)

    def _truly_better(self, parent: Genome) -> tuple[int, int]:
        moves = [(axis, sign) for axis in range(AXES) for sign in (-1, 1)]
        return max(moves, key=lambda move: self._worth(replace(parent, cell=self._shift(parent.cell, *move))))

    def _worth(self, genome: Genome) -> float:
        value = self._land.log_speed(replace(genome, bug=0))
        return -1e9 if value is None else value

    def _sign(self) -> int:
        return 1 if self._rng.random() < UPWARDS else -1

    @staticmethod
    def _shift(cell: Cell, axis: int, sign: int) -> Cell:
        return _with_level(cell, axis, min(LEVELS - 1, max(0, cell[axis] + sign)))


def _with_level(cell: Cell, axis: int, level: int) -> Cell:
    levels: Sequence[int] = [level if index == axis else old for index, old in enumerate(cell)]
    return (levels[0], levels[1], levels[2])
