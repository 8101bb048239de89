"""Whether a repair is worth its evaluation: how often repairs come out right, against how often new kernels do.

A repair and a new kernel cost the same call and the same evaluation. Where most new kernels build and are right, a
repair only draws again from the children that failed; where hardly one does, mending what failed is the shorter way.
So repairs are asked for only while they come out right at least as often as new kernels do. Both begin with made-up
tries: new kernels with two in four right, repairs with two in five, so that a few failures of new kernels have to come
first, and then a repair is tried before it is believed. Counts over what was told: a restored search counts alike.
"""

from __future__ import annotations

from kfd.core.search.operators import Operator

__all__ = ["Odds"]

_PRIOR_TRIES = {False: 4, True: 5}
_PRIOR_RIGHT = {False: 2, True: 2}
"""Of repairs (True) and of new kernels."""


class Odds:
    """Tries and correct kernels, of repairs and of everything else that a model is asked for."""

    def __init__(self) -> None:
        self._tries = dict(_PRIOR_TRIES)
        self._right = dict(_PRIOR_RIGHT)

    def note(self, operator: Operator, *, correct: bool) -> None:
        """One answer was judged; points of a sweep and migrants are no answers."""
        if operator in (Operator.TUNE, Operator.INITIAL, Operator.MIGRATE):
            return
        is_repair = operator is Operator.REPAIR
        self._tries[is_repair] += 1
        self._right[is_repair] += correct

    @property
    def repair_pays(self) -> bool:
        """Whether repairs come out right at least as often as new kernels; integers, so that no rounding decides."""
        return self._right[True] * self._tries[False] >= self._right[False] * self._tries[True]
