"""Which kernels were turned into templates or simplified, and which one is next.

Learnt from outcomes alone, in their order, so that a restored search knows the same.
"""

from __future__ import annotations

from collections.abc import Iterable

from kfd.core.search.archive import Cell, Elite
from kfd.core.search.operators import Operator, Standing
from kfd.core.search.proposals import Outcome

__all__ = ["Upkeep"]


class Upkeep:
    """What templates and simplifications were asked for so far."""

    def __init__(self) -> None:
        self._templated: set[str] = set()
        self._tuned_cells: set[Cell] = set()
        self._simplified: set[str] = set()
        self._last_template = self._last_simplify = -1

    def note(self, outcome: Outcome, evaluations: int) -> None:
        """Learn from one outcome. ``evaluations``: how many there were, with this one."""
        child = outcome.elite
        match outcome.operator:
            case Operator.TEMPLATE:
                self._last_template = evaluations
                self._templated.add(outcome.parent_source)
                self._tuned_cells.add(outcome.parent_cell)
                if child is not None:
                    self._templated.add(child.source)
            case Operator.TUNE if child is not None:
                self._templated.add(child.source)
            case Operator.SIMPLIFY:
                self._last_simplify = evaluations
                self._simplified.add(outcome.parent_source)
            case _:
                pass

    def untuned(self, elites: Iterable[Elite], least: float) -> Elite | None:
        """Who should be tuned: the fittest of at least this fitness that was not, cells that never were first."""
        near = [e for e in elites if e.fitness >= least and e.source not in self._templated]
        return max(near, key=lambda e: (e.cell not in self._tuned_cells, e.fitness, -e.ordinal), default=None)

    def standing(self, best: Elite, best_length_ratio: float, *, untuned: bool, evaluations: int) -> Standing:
        """What the rules about what is due look at."""
        return Standing(
            repairable=False,
            best=best.source,
            untuned=untuned,
            best_length_ratio=best_length_ratio,
            evaluations=evaluations,
            last_template=self._last_template,
            last_simplify=self._last_simplify,
            simplified=self._simplified,
        )
