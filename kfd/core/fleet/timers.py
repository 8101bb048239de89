"""Deadlines in one heap. A timer keeps at most one live entry there; putting it off costs nothing."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Generic, TypeVar

from kfd.base.instant import Instant

__all__ = ["Timer", "Timers"]

Owner = TypeVar("Owner")


@dataclass(slots=True, eq=False)
class Timer(Generic[Owner]):
    """One deadline of one owner: ``due`` is when it should fire (None: never), ``armed`` its heap entry."""

    owner: Owner
    what: str
    due: Instant | None = None
    armed: Instant | None = None


class Timers(Generic[Owner]):
    """All deadlines. A timer that is put off stays where it is in the heap and moves when it comes up."""

    def __init__(self) -> None:
        self._heap: list[tuple[Instant, int, Timer[Owner]]] = []
        self._count = 0

    def arm(self, timer: Timer[Owner], due: Instant) -> None:
        """Let ``timer`` fire at ``due``, and not before."""
        timer.due = due
        if timer.armed is None or due < timer.armed:
            timer.armed = due
            self._count += 1
            heapq.heappush(self._heap, (due, self._count, timer))

    @staticmethod
    def disarm(timer: Timer[Owner]) -> None:
        """Let ``timer`` not fire."""
        timer.due = None

    def next_wake(self) -> Instant | None:
        """No timer fires before this; a timer may turn out to have been moved later."""
        heap = self._heap
        while heap:
            at, _, timer = heap[0]
            if timer.armed == at and timer.due is not None:
                return at
            heapq.heappop(heap)
            if timer.armed == at:
                timer.armed = None
        return None

    def pop_due(self, now: Instant) -> Timer[Owner] | None:
        """A timer that is due, disarmed; None when there is none."""
        heap = self._heap
        while heap and heap[0][0] <= now:
            at, _, timer = heapq.heappop(heap)
            if timer.armed != at:
                continue
            timer.armed = None
            if timer.due is None:
                continue
            if timer.due <= now:
                timer.due = None
                return timer
            self.arm(timer, timer.due)
        return None
