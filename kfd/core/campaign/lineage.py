"""Several targets of one task: one campaign and so one archive for each, with shared lineage.

Campaigns of one group offer each other their elites. An elite that was bred for another target is built and measured
for this one as a candidate of its own (operator ``migrate``, nobody is asked), and breeds here when it is any good.
What came by migration is not offered again, so that nothing goes back and forth. Pure: what is offered is passed in,
and what was taken is known from the candidates' rows.
"""

from __future__ import annotations

from collections.abc import Iterable

from kfd.base.ids import CandidateId
from kfd.core.campaign.state import Asked, Candidate
from kfd.core.search.archive import Cell, Elite
from kfd.core.search.operators import Operator

__all__ = ["SIBLING", "Lineage", "asked_as_migrant", "migrant_of"]

SIBLING = "sibling"
"""How a migrant was found, for the log."""

_ONE_IN = 4
"""At most one of so many of a campaign's places in the budget goes to migrants."""


class Lineage:
    """What one campaign has taken from the other targets of its group."""

    def __init__(self, stored: Iterable[Candidate] = ()) -> None:
        """``stored``: the migrants of the campaign, ended or not."""
        self._origins: set[CandidateId] = set()
        self._own: set[CandidateId] = set()
        for candidate in stored:
            self.note(candidate)

    def note(self, candidate: Candidate) -> None:
        """A candidate exists; one that is no migrant changes nothing."""
        if candidate.origin is not None:
            self._origins.add(candidate.origin)
            self._own.add(candidate.id)

    def next(self, offered: Iterable[Elite], used: int) -> Elite | None:
        """The fittest elite on offer that was not taken before; None when there is none, or it is not the time.

        ``used``: places of the budget that are used.
        """
        if not self.is_time(used):
            return None
        fresh = [elite for elite in offered if not self.has_taken(elite.candidate)]
        return min(fresh, key=lambda elite: (-elite.fitness, elite.candidate), default=None)

    def is_time(self, used: int) -> bool:
        """Whether migrants have fewer places than are theirs, with ``used`` places of the budget used."""
        return len(self._origins) * _ONE_IN <= used

    def has_taken(self, elite: CandidateId) -> bool:
        """Whether an elite of another campaign was tried here."""
        return elite in self._origins

    def exports(self, elites: Iterable[Elite], initial: CandidateId | None) -> list[Elite]:
        """Elites that were bred here: neither the task's own kernel ``initial``, which every target has, nor migrants.

        A campaign that begins from nothing has no kernel of its own: its candidate 0 is bred like any other.
        """
        return [elite for elite in elites if elite.candidate != initial and elite.candidate not in self._own]


def migrant_of(elite: Elite, id_: CandidateId, ordinal: int, nth: int, told: int, variant: str) -> Candidate:
    """The candidate that tries another target's elite here. ``told``: how many candidates the search knew of."""
    return Candidate(
        id=id_,
        ordinal=ordinal,
        operator=Operator.MIGRATE,
        parent=None,
        parent_source=elite.source,
        origin=elite.candidate,
        inspirations=(),
        nth=nth,
        generation=elite.generation + 1,
        repair_depth=0,
        asked=asked_as_migrant(told, variant, elite.cell),
    )


def asked_as_migrant(told: int, variant: str, cell: Cell) -> Asked:
    """How a migrant came to be asked for: the search had no part in it. ``cell``: where it lives on its own target."""
    return Asked(at=told, variant=variant, strategy=SIBLING, parent_cell=cell)
