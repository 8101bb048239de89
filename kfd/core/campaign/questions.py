"""The questions of a campaign: which were asked, which are being asked, which need not be asked again."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kfd.base.failure import Bug
from kfd.base.ids import CandidateId
from kfd.base.instant import Instant
from kfd.core.campaign.state import Candidate
from kfd.core.fleet.model import NEVER

__all__ = ["Questions"]


MAX_BROKEN = 10
"""Faults of ours after which a question is given up: one that always breaks us would keep its campaign open."""


class Questions:
    """Counts what is charged to the budget of candidates, and knows when an open question is due."""

    def __init__(
        self, budget: int, answered: Mapping[tuple[str, str], int], closed: Collection[tuple[str, str]] = ()
    ) -> None:
        self._budget = budget
        self._answered = dict(answered)
        self._used = sum(answered.values())
        self._asking: set[CandidateId] = set()
        self._retry_at: dict[CandidateId, Instant] = {}
        self._broken: dict[CandidateId, int] = {}
        self.closed = set(closed)
        """(parent digest, operator) pairs that the generator has no more answers for."""

    @property
    def is_spent(self) -> bool:
        """Whether the budget allows no further question."""
        return self._used >= self._budget

    @property
    def used(self) -> int:
        """Places of the budget that are used."""
        return self._used

    def charge(self, key: tuple[str, str]) -> int:
        """A new question about (parent digest, operator): how often it was answered before."""
        nth = self._answered.get(key, 0)
        self._answered[key] = nth + 1
        self._used += 1
        return nth

    def miss(self, candidate: Candidate) -> None:
        """There is no answer: not charged, and not asked again."""
        key = (candidate.parent_source, candidate.operator.value)
        self.closed.add(key)
        self._answered[key] -= 1
        self._used -= 1

    def begin(self, candidate: CandidateId) -> None:
        """A question is put to the generator."""
        self._asking.add(candidate)
        self._retry_at.pop(candidate, None)

    def later(self, candidate: CandidateId, at: Instant) -> None:
        """A question could not be put: again at ``at``."""
        self._asking.discard(candidate)
        self._retry_at[candidate] = at

    def broke(self, candidate: CandidateId) -> bool:
        """A question could not be put by a fault of ours; whether it is worth putting it again."""
        self._broken[candidate] = self._broken.get(candidate, 0) + 1
        return self._broken[candidate] < MAX_BROKEN

    def end(self, candidate: CandidateId) -> None:
        """A question needs no answer any more."""
        self._asking.discard(candidate)
        self._retry_at.pop(candidate, None)
        self._broken.pop(candidate, None)

    def hurry(self, now: Instant) -> None:
        """Everything that waits to be asked again is due now."""
        self._retry_at = dict.fromkeys(self._retry_at, now)

    def is_due(self, candidate: CandidateId, now: Instant) -> bool:
        """Whether an open question should be put now: nobody works on it and its time has come."""
        return candidate not in self._asking and self._retry_at.get(candidate, now) <= now

    def next_due(self) -> Instant:
        """When the next question is due that waits to be asked again."""
        return min(self._retry_at.values(), default=NEVER)

    def check(self, open_candidates: Mapping[CandidateId, Candidate]) -> None:
        """Raise Bug when the counts contradict themselves."""
        if self._used > self._budget:
            raise Bug(f"{self._used} questions were charged to a budget of {self._budget}")
        if not self._asking | set(self._retry_at) <= set(open_candidates):
            raise Bug("a question is open whose candidate is not")
