"""What a box is: values only.

A box is a process tree that sees nothing but what is named here and that ends as a whole. Its first
process is the init of a PID namespace, so "the box has ended" and "nothing of it lives" are the same fact.
"""

from __future__ import annotations

import signal as signals
from dataclasses import dataclass
from enum import StrEnum

from kfd.base.instant import SECOND, Span

__all__ = ["SCRATCH", "Backend", "Box", "BoxError", "BoxLimits", "Ended", "Limit", "Mount", "signal_name"]

SCRATCH = "/scratch"
"""Where a box with scratch space finds it; also its HOME and TMPDIR."""


class BoxError(Exception):
    """A box could not be set up: our fault or the machine's, never the candidate's."""


class Backend(StrEnum):
    """How boxes are made on this machine, best first."""

    BWRAP = "bwrap"
    UNSHARE = "unshare"
    PLAIN = "plain"


class Limit(StrEnum):
    """Why a box was ended from outside."""

    NONE = ""
    WALL = "wall"
    MEMORY = "memory"
    OUTPUT = "output"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """One file or folder of the host, bound read-only. A source that does not exist is an error."""

    source: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxLimits:
    """Bounds that the kernel or the runner enforces on the whole box."""

    wall_ns: Span = 60 * SECOND
    memory_bytes: int = 2 << 30
    processes: int = 64
    log_bytes: int = 64 << 10
    """Bytes of the log that are kept (head and tail); the rest is read and dropped."""
    flood_bytes: int = 256 << 20
    """A box that writes more than this to its log is ended."""
    stdout_bytes: int = 0
    """0: standard output joins the log. Otherwise it is kept apart, raw, and exceeding this ends the box."""
    file_bytes: int = 256 << 20
    open_files: int = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """One box to be started."""

    name: str
    argv: tuple[str, ...]
    mounts: tuple[Mount, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    """The whole environment: nothing is inherited."""
    scratch_bytes: int = 0
    """Size of the one writable place (a tmpfs at ``SCRATCH``); 0: there is none."""
    fds: tuple[int, ...] = ()
    """Descriptors that the first program inherits under the same numbers."""
    uid: int = 65534
    """Host user of the box when the launcher is root; otherwise the launcher's own."""
    cpus: tuple[int, ...] = ()
    """Cores the box may use; empty: those of the launcher."""
    nodes: tuple[str, ...] = ()
    """Device files that the box may use, beside the harmless ones. A driver reserves address space beyond measure, so
    that such a box is held by its control group or the watch alone."""
    limits: BoxLimits = BoxLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a box ended. When this exists, no process of the box does."""

    code: int
    """Exit code of the first program; 128 + n when signal n ended it."""
    started: bool
    """Whether the first program was reached; False is a fault of the box, never of the program."""
    limit: Limit
    log: bytes
    log_dropped: int
    stdout: bytes
    wall_ns: Span
    cpu_ns: Span
    peak_bytes: int
    """Highest memory use known; 0 when the machine does not tell."""

    @property
    def signal(self) -> int:
        """Signal that ended the first program, 0 when none did."""
        return self.code - 128 if 128 < self.code < 128 + 65 else 0

    def describe(self) -> str:
        """The end in words: ``was ended by signal SIGSEGV``, ``exited with code 3``."""
        if self.signal:
            why = " (it asked the kernel for what a kernel never needs)" if self.signal == signals.SIGSYS else ""
            return f"was ended by signal {signal_name(self.signal)}{why}"
        return f"exited with code {self.code}"


def signal_name(number: int) -> str:
    """``SIGSEGV`` for 11; ``signal 40`` for one without a name."""
    try:
        return signals.Signals(number).name
    except ValueError:
        return f"signal {number}"
