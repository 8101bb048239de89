"""How long slots that the daemon has set aside rest before the agent offers them again, as a pure machine."""

from __future__ import annotations

from kfd.base.instant import MINUTE, Instant, Span

__all__ = ["Rest"]

_RESTS: tuple[Span, ...] = (MINUTE, 5 * MINUTE, 30 * MINUTE, 60 * MINUTE)
"""Most faults pass; a machine that stays broken costs three incidents an hour in the end."""
_FORGIVEN: Span = 2 * _RESTS[-1]
"""Slots that were trusted for so long begin with the shortest rest again: faults of last month say nothing of today."""


class Rest:
    """``working -> resting -> working``; each rest is longer than the last unless the slots worked long in between.

    An agent has one: it offers all of its slots with one registration, which makes the daemon trust each afresh.
    """

    def __init__(self) -> None:
        self._count = 0
        self._until: Instant | None = None
        self._ended: Instant | None = None

    def set_aside(self, now: Instant) -> Span | None:
        """The daemon says that a slot is set aside. The rest that begins with it; None when one is under way."""
        if self._until is not None:
            return None
        if self._ended is not None and now - self._ended >= _FORGIVEN:
            self._count = 0
        rest = _RESTS[min(self._count, len(_RESTS) - 1)]
        self._count += 1
        self._until = now + rest
        return rest

    def over(self, now: Instant) -> bool:
        """Whether a rest has ended with this moment; said once for each rest."""
        if self._until is None or now < self._until:
            return False
        self._until, self._ended = None, now
        return True

    def next_wake(self) -> Instant | None:
        """When ``over`` should be asked next."""
        return self._until
