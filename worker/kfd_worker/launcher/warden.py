"""Reading the CPU time of a run's boxes while the judge waits: one thread for each run job.

The judge may see no process but its own, the launcher sees all. So the judge asks over a socket (``judge.meter``):
``N`` and the number of a box to note which process is the box's program, while no foreign code is loaded, and ``R`` and
the number to have its CPU time read. An answer is three numbers: CPU nanoseconds of the whole process (threads that
have ended included), those of its first thread, and the launcher's monotonic clock; -1 when the process is gone. ``A``
asks in the same way how many of its threads are awake: the number, 0, and the clock.

``confine`` lets the program of a box start no other process, so that this one is all there is.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from kfd_worker.judge.meter import ANSWER
from kfd_worker.sandbox.processes import descendants

__all__ = ["Warden", "awake"]


class Warden:
    """Serves one judge about the boxes whose first processes are given, in the order of the judge's sides."""

    def __init__(self, pids: Sequence[int]) -> None:
        self._pids = tuple(pids)
        self._programs: dict[int, int] = {}
        self._ours, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._thread = threading.Thread(target=self._serve, name="kfd-warden", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop serving; safe to repeat."""
        self.theirs.close()
        with contextlib.suppress(OSError):
            self._ours.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._ours.close()

    def _serve(self) -> None:
        while True:
            try:
                asked = self._ours.recv(16)
                if len(asked) != 2:
                    return
                number = asked[1]
                if asked[:1] == b"N":
                    self._programs[number] = program_of(self._pids[number])
                program = self._programs.get(number, 0)
                told = (awake(program), 0, time.monotonic_ns()) if asked[:1] == b"A" else read(program)
                self._ours.send(ANSWER.pack(*told))
            except OSError:
                return


def program_of(pid: int) -> int:
    """The innermost process of a box: what all the links of its chain have led to."""
    return (descendants(pid) or [pid])[-1]


def read(pid: int) -> tuple[int, int, int]:
    """CPU time of a process and of its first thread in nanoseconds, and the monotonic clock; -1 when it is gone."""
    try:
        # CPUCLOCK_SCHED of another process (clock_getcpuclockid(3)): exact, and ended threads are in it.
        whole = time.clock_gettime_ns((~pid << 3) | 2) if pid > 0 else -1
        first = int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        whole = first = -1
    return whole, first, time.monotonic_ns()


def awake(pid: int) -> int:
    """Threads of a process that run or wait for a processor; -1 when it is gone. On a machine with much to do a thread
    that is awake may use no CPU time for a while."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir()) if pid > 0 else []
    except OSError:
        tasks = []
    return sum(_is_runnable(task) for task in tasks) if tasks else -1


def _is_runnable(task: Path) -> bool:
    try:
        # The name before the state may hold anything, parentheses too (proc_pid_stat(5)).
        return (task / "stat").read_bytes().rpartition(b") ")[2][:1] == b"R"
    except OSError:
        return False
