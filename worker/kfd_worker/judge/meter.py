"""How much a box works while nobody has asked it to: read between its orders, from outside.

What a candidate computes between its timed calls either prepares an answer that is then not timed, or keeps the
machine busy while its baselines are. Both are told by the CPU time of its process, which the launcher reads for the
judge (``launcher.warden``): right after an answer, before the box is placed, and before the next order. An honest
kernel's threads sleep in between; what the first thread spends on answering and waiting is known from the empty
orders that were measured before foreign code was loaded.
"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass

from kfd.base.instant import MICROSECOND, MILLISECOND, Span

__all__ = ["ANSWER", "RUNTIME_NS", "Ledger", "Meter", "Reading"]

ANSWER = struct.Struct("<qqq")
"""CPU nanoseconds of the process and of its first thread, monotonic nanoseconds; -1: it is gone."""

_SHARE = 100
"""One part in so many of the time in calls may be spent beside them: coarse clocks, threads that go to sleep late."""
_EACH_NS: Span = 10 * MICROSECOND
"""Threads that are just going to sleep when a call has returned."""
_ONCE_NS: Span = 2 * MILLISECOND
RUNTIME_NS: Span = 8 * MILLISECOND
"""What threads of a device's runtime may spend more in a whole run: honest ones were seen to take 3 ms, one thread that
spins in a run of twelve rounds 21 ms or more."""


@dataclass(frozen=True, slots=True)
class Reading:
    """CPU time at one moment."""

    process_ns: Span
    first_ns: Span
    at_ns: Span


class Meter:
    """The judge's end of the warden's socket."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._channel.settimeout(10.0)

    def note(self, number: int) -> Reading:
        """Let the warden find the program of a box; no foreign code may be loaded yet. Raises OSError."""
        return self._ask(b"N", number)

    def read(self, number: int) -> Reading:
        """CPU time of a box's program now. Raises OSError when the launcher does not answer."""
        return self._ask(b"R", number)

    def awake(self, number: int) -> int:
        """Threads of a box's program that run or wait for a processor now; -1 when it is gone. Raises OSError."""
        return self._ask(b"A", number).process_ns

    def close(self) -> None:
        """Hang up."""
        self._channel.close()

    def _ask(self, what: bytes, number: int) -> Reading:
        self._channel.send(what + bytes([number]))
        answer = self._channel.recv(ANSWER.size + 1)
        if len(answer) != ANSWER.size:
            raise OSError("the launcher does not tell CPU times")
        return Reading(*ANSWER.unpack(answer))


@dataclass(slots=True)
class Ledger:
    """What a box has spent between its orders so far. Pure."""

    usual_ns: Span = 0
    """What answering one empty order and waiting for the next costs the first thread."""
    gaps: int = 0
    helpers_ns: Span = 0
    """By all threads but the first."""
    first_ns: Span = 0
    """By the first thread."""

    def rested(self, after: Reading, before: Reading) -> None:
        """The box waited for an order between these two readings."""
        if min(after.process_ns, before.process_ns) < 0:
            return
        whole = before.process_ns - after.process_ns
        # The first thread's own time is read apart, and is a little old while it runs.
        first = min(whole, max(0, before.first_ns - after.first_ns))
        self.gaps += 1
        self.first_ns += first
        self.helpers_ns += whole - first

    def placed(self, before: Reading, ready: Reading) -> None:
        """The first thread moved to its core and stayed awake between these two readings: it had one core at most."""
        if min(before.process_ns, ready.process_ns) < 0:
            return
        self.helpers_ns += max(0, (ready.process_ns - before.process_ns) - (ready.at_ns - before.at_ns))

    def excess(self, busy_ns: Span, more_ns: Span = 0) -> str:
        """What is too much beside ``busy_ns`` of timed calls, for people; empty when nothing is. ``more_ns`` is thought
        honest on top of what is for any box."""
        share = busy_ns // _SHARE + _ONCE_NS + more_ns
        helpers_may = share + self.gaps * _EACH_NS
        first_may = share + self.gaps * (_EACH_NS + self.usual_ns)
        for who, spent, may in (
            ("its threads", self.helpers_ns, helpers_may),
            ("its first thread", self.first_ns, first_may),
        ):
            if spent > may:
                return (
                    f"{who} worked {spent / MILLISECOND:.0f} ms between {busy_ns / MILLISECOND:.0f} ms of timed calls, "
                    f"where {may / MILLISECOND:.0f} ms are thought honest"
                )
        return ""
