"""One run on one landscape: judging with noise, counting, and the end at 90 % of the optimum."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field

from benchmarks.search.harsh import HARSH, HarshModel
from benchmarks.search.landscape import NOISE, Genome, Landscape, landscape
from benchmarks.search.model import Answer, Question, SimulatedModel
from kfd.core.search.fitness import BUILT_BUT_WRONG, NOT_BUILT

__all__ = ["BUDGET", "SHARE", "Judged", "Result", "World"]

BUDGET = {"smooth": 600, "rugged": 1500, "measured": 400, HARSH: 1500}
"""Evaluations after which a run that has not arrived is given up (it counts as the budget)."""

SHARE = 0.9
"""Share of the optimum's speed that a run must reach."""

TARGET = 2.0
EVALUATION_PRICE = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What a worker would report of a genome."""

    genome: Genome
    correct: bool
    fitness: float
    speedup: float = 0.0
    low: float = 0.0
    high: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Where a run ended."""

    evaluations: int
    money: float
    arrived: bool


@dataclass(slots=True)
class World:
    """The landscape, the model and the meter of one run. Every answer and every swept point is one evaluation."""

    family: str
    seed: int
    land: Landscape = field(init=False)
    model: SimulatedModel = field(init=False)
    evaluations: int = 0
    money: float = 0.0
    arrived: bool = False
    _best: float = 0.0
    _noise: random.Random = field(init=False)

    def __post_init__(self) -> None:
        is_harsh = self.family == HARSH
        self.land = landscape("rugged" if is_harsh else self.family, self.seed)
        self.model = (HarshModel if is_harsh else SimulatedModel)(self.land, self.seed)
        self._noise = random.Random(f"noise:{self.family}:{self.seed}")

    @property
    def over(self) -> bool:
        """Whether it arrived or the budget is spent."""
        return self.arrived or self.evaluations >= BUDGET[self.family]

    def ask(self, question: Question) -> tuple[Answer, Judged]:
        """One model call and the evaluation of its answer."""
        answer = self.model.answer(question)
        self.money += answer.price
        return answer, self.judge(answer.genome)

    def judge(self, genome: Genome) -> Judged:
        """One evaluation."""
        self.evaluations += 1
        self.money += EVALUATION_PRICE
        true = self.land.log_speed(genome) if genome.bug == 0 else None
        if true is None:
            wrong = genome.bug == 2
            return Judged(genome=genome, correct=False, fitness=BUILT_BUT_WRONG if wrong else NOT_BUILT)
        measured = math.exp(true + self._noise.gauss(0.0, NOISE))
        half = math.exp(1.96 * NOISE)
        # The run's own choice counts: the kernel that it believes to be the best must truly be good enough.
        if measured > self._best:
            self._best = measured
            self.arrived = true >= self.land.optimum + math.log(SHARE)
        return Judged(
            genome=genome,
            correct=True,
            fitness=0.5 + 0.5 * math.log2(1 + measured / TARGET),
            speedup=measured,
            low=measured / half,
            high=measured * half,
        )

    def first(self) -> Judged:
        """The task's own kernel, measured for free by everybody."""
        judged = self.judge(self.land.initial)
        self.evaluations, self.money = 0, 0.0
        return judged

    def result(self) -> Result:
        """Where it stands."""
        return Result(evaluations=self.evaluations, money=self.money, arrived=self.arrived)
