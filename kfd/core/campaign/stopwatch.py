"""The time that a campaign has worked: it stands still while the campaign is paused or the daemon is down."""

from __future__ import annotations

from kfd.base.instant import Instant, Span

__all__ = ["Stopwatch"]


class Stopwatch:
    """Adds up spans of one process's monotonic clock."""

    def __init__(self, worked: Span, budget: Span, now: Instant) -> None:
        self._worked = worked
        self._budget = budget
        self._since = now
        self._is_running = True

    def read(self, now: Instant) -> Span:
        """Time worked so far."""
        return self._worked + (now - self._since if self._is_running else 0)

    def set(self, now: Instant, *, running: bool) -> Span:
        """Start or stop; the time worked so far."""
        self._worked, self._since = self.read(now), now
        self._is_running = running
        return self._worked

    def left(self, now: Instant) -> Span:
        """Time left of the budget; negative when it is overdrawn."""
        return self._budget - self.read(now)
