"""Sweeps of a campaign: each point of a template's space is a candidate of its own, with the values in its source.

So a point is built, run, judged, charged to the budget and kept like any other candidate; whoever seems better is
confirmed side by side before it displaces anything, so that a sweep never lowers the kept best. What is left here is
which point comes next: a pure function of the points asked for so far and what is known of them
(``kfd.core.search.sweep``). One template is swept at a time, a few points at once; other candidates go on beside it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from kfd.base.ids import CandidateId
from kfd.core.campaign.state import Asked, Candidate
from kfd.core.dice import Dice
from kfd.core.search.fitness import LEAST_CORRECT
from kfd.core.search.operators import Operator
from kfd.core.search.sweep import Point, Space, SweepRow, next_point
from kfd.core.search.tuning import TunePolicy, Values

__all__ = ["SWEEP", "Tuning", "is_swept", "point_of", "points_at_once"]

SWEEP = "sweep"
"""How the parent of a point was found, for the log."""


def is_swept(candidate: Candidate) -> bool:
    """Whether a candidate is a template that is to be swept: correct, and with tunables declared."""
    told = candidate.told
    return (
        candidate.operator is Operator.TEMPLATE
        and candidate.space is not None
        and told is not None
        and told.fitness >= LEAST_CORRECT
    )


def point_of(template: Candidate, values: Values, id_: CandidateId, ordinal: int, nth: int, told: int) -> Candidate:
    """The candidate that is one point of a template's space. ``told``: how many candidates the search knew of."""
    return Candidate(
        id=id_,
        ordinal=ordinal,
        operator=Operator.TUNE,
        parent=template.id,
        parent_source=template.source,
        inspirations=(),
        nth=nth,
        generation=template.generation + 1,
        repair_depth=0,
        values=values,
        asked=Asked(
            at=told,
            variant=template.asked.variant,
            strategy=SWEEP,
            island=template.asked.island,
            parent_cell=template.cell or (0, 0, 0),
            parent_fitness=template.told.fitness if template.told is not None else 0.0,
        ),
    )


def points_at_once(in_flight: int) -> int:
    """How many points may be in flight: a few, so that each knows what others brought, but most of the slots, so that
    a sweep is over before the next template is due."""
    return max(4, in_flight * 3 // 4)


@dataclass(slots=True)
class _Sweep:
    """One template with what was measured of its space, by the ordinals of the points."""

    template: Candidate
    space: Space
    rows: dict[int, SweepRow] = field(default_factory=dict)


class Tuning:
    """The templates of one campaign that wait for their sweep, and the one that is swept."""

    def __init__(
        self, policy: TunePolicy, dice: Dice, baseline: str, limit: int | None, stored: Iterable[Candidate] = ()
    ) -> None:
        """``limit``: points in flight at once, None without one; ``stored``: the templates and points of the campaign,
        ended or not, in any order."""
        self._policy = policy.sweep()
        self._dice = dice
        self._baseline = baseline
        self._limit = limit
        self._queue: list[_Sweep] = []
        self._open: set[CandidateId] = set()
        self._decided: tuple[Candidate, Values] | None = None
        self._is_decided = False
        candidates = list(stored)
        for template in sorted((one for one in candidates if is_swept(one)), key=_nth):
            self.note(template)
        for point in candidates:
            if point.operator is Operator.TUNE:
                self.note(point)

    def note(self, candidate: Candidate) -> None:
        """A candidate changed: a template that was judged begins to wait, a point is open or has ended."""
        if candidate.operator is Operator.TUNE:
            self._is_decided = False
            self._point(candidate)
        elif not candidate.is_open and is_swept(candidate) and candidate.space is not None:
            sweep = _Sweep(candidate, candidate.space.space())
            sweep.rows[candidate.ordinal] = self._row(sweep.space, candidate)
            self._queue.append(sweep)
            self._is_decided = False

    def _point(self, candidate: Candidate) -> None:
        if candidate.is_open:
            self._open.add(candidate.id)
        else:
            self._open.discard(candidate.id)
        for sweep in self._queue:
            if sweep.template.id == candidate.parent:
                sweep.rows[candidate.ordinal] = self._row(sweep.space, candidate)

    def _row(self, space: Space, candidate: Candidate) -> SweepRow:
        """A point's measurement; a point without one, or without one yet, is invalid and not asked again."""
        chosen = dict(candidate.values)
        point: Point = tuple(
            values.index(chosen.get(name, values[0])) for name, values in zip(space.names, space.values, strict=True)
        )
        told, speed = candidate.told, candidate.speedup(self._baseline)
        if told is None or told.fitness < LEAST_CORRECT or speed is None:
            return SweepRow(point=point, speedup=None, reason=candidate.outcome)
        return SweepRow(point=point, speedup=speed.value, low=speed.low, high=speed.high)

    def next(self) -> tuple[Candidate, Values] | None:
        """The template to sweep and the values of its next point; None while enough are open or nothing is left."""
        if not self._is_decided:
            self._decided, self._is_decided = self._decide(), True
        return self._decided

    def _decide(self) -> tuple[Candidate, Values] | None:
        while self._queue and (self._limit is None or len(self._open) < self._limit):
            sweep = self._queue[0]
            # In the order of asking, so that the order of answers decides nothing.
            rows = [sweep.rows[ordinal] for ordinal in sorted(sweep.rows)]
            point = next_point(sweep.space, rows, self._policy, self._dice, sweep.template.ordinal)
            if point is not None:
                return sweep.template, tuple(sweep.space.chosen(point).items())
            del self._queue[0]
        return None


def _nth(candidate: Candidate) -> int:
    return candidate.told.nth if candidate.told is not None else 0
