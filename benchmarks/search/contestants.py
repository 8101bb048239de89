"""The plain contestants: best of N, greedy, uniform MAP-Elites. All ask the same simulated model."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from benchmarks.search.model import MODELS, Question
from benchmarks.search.world import Judged, Result, World
from kfd.core.search.archive import Cell

__all__ = ["PLAIN", "Grid"]


class Grid:
    """The best of each cell; within noise the incumbent stays."""

    def __init__(self, first: Judged) -> None:
        self.cells: dict[Cell, Judged] = {first.genome.cell: first}
        self.best = first

    def add(self, new: Judged) -> tuple[bool, bool]:
        """Whether a correct newcomer was kept, and whether it is the best now."""
        old = self.cells.get(new.genome.cell)
        if old is not None and not new.low > old.high**0.5 * old.low**0.5:
            return False, False
        self.cells[new.genome.cell] = new
        is_best = new.fitness > self.best.fitness
        if is_best:
            self.best = new
        return True, is_best


def _operator(rng: random.Random) -> str:
    return "rewrite" if rng.random() < 0.6 else "patch"


def best_of_n(world: World) -> Result:
    """Every child comes from the first kernel; nothing is learnt."""
    rng = random.Random(f"best_of_n:{world.seed}")
    first = world.first().genome
    while not world.over:
        world.ask(Question(operator="rewrite", parent=first, model=rng.choice(list(MODELS))))
    return world.result()


def greedy(world: World) -> Result:
    """The best kernel is always the parent."""
    rng = random.Random(f"greedy:{world.seed}")
    grid = Grid(world.first())
    while not world.over:
        asked = Question(operator=_operator(rng), parent=grid.best.genome, model=rng.choice(list(MODELS)))
        _, judged = world.ask(asked)
        if judged.correct:
            grid.add(judged)
    return world.result()


def uniform(world: World) -> Result:
    """MAP-Elites: every occupied cell alike, two inspirations from other cells."""
    rng = random.Random(f"uniform:{world.seed}")
    grid = Grid(world.first())
    while not world.over:
        parent = rng.choice(list(grid.cells.values()))
        others = [judged.genome for judged in grid.cells.values() if judged is not parent]
        shown = tuple(rng.sample(others, min(2, len(others))))
        operator, model = _operator(rng), rng.choice(list(MODELS))
        _, judged = world.ask(Question(operator=operator, parent=parent.genome, inspirations=shown, model=model))
        if judged.correct:
            grid.add(judged)
    return world.result()


PLAIN: Mapping[str, Callable[[World], Result]] = {"best_of_n": best_of_n, "greedy": greedy, "uniform": uniform}
