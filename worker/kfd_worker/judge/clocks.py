"""How a side's time in a round comes about: by the judge's clock around an order, or by the device's events in it."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence
from typing import Protocol, TypeVar

from kfd.base.instant import MILLISECOND, SECOND, Span
from kfd.tasks.spec import Case
from kfd_worker.judge.faults import Disagreement
from kfd_worker.judge.floor import per_call_ns
from kfd_worker.judge.gpu_clock import DeviceTimes, agree, read_times, round_time_ns
from kfd_worker.judge.gpu_reference import GpuReference
from kfd_worker.judge.roof import host_copy_ns, moved_bytes
from kfd_worker.judge.side import Side
from kfd_worker.judge.taskcode import LoadedTask
from kfd_worker.judge.workspace import Workspace

__all__ = ["SAMPLE_NS", "Clock", "DeviceClock", "HostClock", "repeats"]

SAMPLE_NS: Span = MILLISECOND // 2
_PATIENCE = 20
"""A timed call may take so many times what it took when it was checked, and a second more."""
_TRIES = 5
_DEVICE_CALLS = 8
"""Calls of one order on a device: each has events of its own, and the trimmed mean over some is what a round tells."""

Sample = TypeVar("Sample")


def repeats(one_call_ns: Span, most: int) -> int:
    """Calls in one sample so that it lasts ``SAMPLE_NS``, at least 1 and at most ``most``."""
    return max(1, min(most, -(-SAMPLE_NS // max(1, one_call_ns))))


class Clock(Protocol[Sample]):
    """What times the samples of a benchmark."""

    @staticmethod
    def calls(one_call_ns: Span, most: int) -> int:
        """Calls in one sample of a side whose call took so long when it was checked."""
        ...

    def reference(self, space: Workspace, indices: Sequence[int], core: int) -> Sample:
        """A sample of the reference on these sets. Raises ReferenceFault."""
        ...

    def call(self, side: Side, space: Workspace, indices: Sequence[int], known_ns: Span, core: int) -> Sample:
        """A sample of a kernel on these sets. Raises what the side raises, and Disagreement."""
        ...

    def time_ns(self, samples: Sequence[Sample]) -> Span:
        """A side's time of one call in a round, from its samples."""
        ...

    def copy_ns(self, case: Case) -> Span:
        """Shortest time in which the device copies as many bytes as a case must move (``roof``)."""
        ...

    def close(self) -> None:
        """Give back what was taken."""
        ...


def _timed(side: Side, space: Workspace, indices: Sequence[int], known_ns: Span, core: int) -> Span:
    space.arm(side.name, indices)
    patience_ns = _PATIENCE * len(indices) * known_ns + SECOND
    took = side.timed(space.number, indices, patience_ns, core, lambda: space.rebind(side))
    space.glance(side.name, indices)
    return took


class HostClock:
    """The judge's monotonic clock around an order, less what an empty order takes; the least of a round's samples."""

    def __init__(self, task: LoadedTask) -> None:
        self._task = task
        self._cores = sorted(os.sched_getaffinity(0))

    @staticmethod
    def calls(one_call_ns: Span, most: int) -> int:
        """As many as make a sample long enough."""
        return repeats(one_call_ns, most)

    def reference(self, space: Workspace, indices: Sequence[int], core: int) -> Span:
        """Time of one call of the reference."""
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, {core})
            os.sched_setaffinity(0, self._cores)
        with self._task.at_full_width():
            began = time.monotonic_ns()
            for index in indices:
                space.reference(index)
            took = time.monotonic_ns() - began
        return max(1, took // len(indices))

    def call(self, side: Side, space: Workspace, indices: Sequence[int], known_ns: Span, core: int) -> Span:
        """Time of one call of a kernel."""
        return per_call_ns(_timed(side, space, indices, known_ns, core), side.overhead_ns, len(indices))

    def time_ns(self, samples: Sequence[Span]) -> Span:
        """The least."""
        return min(samples)

    def copy_ns(self, case: Case) -> Span:
        """By all threads of the task."""
        with self._task.at_full_width():
            return host_copy_ns(moved_bytes(self._task, case), self._task.threads)

    def close(self) -> None:
        """Nothing was taken."""


class DeviceClock:
    """Events of the device around every call, taken by trusted code in the box; they must fit into the judge's time."""

    def __init__(self, task: LoadedTask, cases: Sequence[tuple[Case, int]]) -> None:
        """``cases`` are the timed cases, each with its number of sets."""
        self._task = task
        self._tf32 = task.spec.tolerance.error_class == "tf32"
        self._references = {case.name: GpuReference(task, case, sets) for case, sets in cases}

    @staticmethod
    def calls(one_call_ns: Span, most: int) -> int:
        """A fixed number: the device is idle between them, however short they are."""
        return max(1, min(most, _DEVICE_CALLS))

    def reference(self, space: Workspace, indices: Sequence[int], core: int) -> DeviceTimes:
        """Device times of the reference on the same content."""
        reference = self._references[space.case.name]
        for index in indices:
            reference.refresh(index, space.values(index))
        return reference.call(indices, tf32=self._tf32)

    def call(self, side: Side, space: Workspace, indices: Sequence[int], known_ns: Span, core: int) -> DeviceTimes:
        """Device times of a kernel. Raises Disagreement when they are none or do not fit into the order's time."""
        for _ in range(_TRIES):
            took = _timed(side, space, indices, known_ns, core)
            times = read_times(side.told)
            if times is None or times.calls != len(indices):
                raise Disagreement(f"the device's program told no times for {len(indices)} calls")
            if times.shielded:
                break
        else:
            raise Disagreement(f"launch gaps of the host could not be hidden from the device's clock in {_TRIES} tries")
        # How long copies and poison take is not known to be constant: only the upper side is held here.
        fits = agree(times.total_ns, took, took, times.calls)
        if not fits.holds:
            raise Disagreement(fits.text)
        return times

    def time_ns(self, samples: Sequence[DeviceTimes]) -> Span:
        """The trimmed mean over the calls of all samples."""
        return round_time_ns(samples)

    def copy_ns(self, case: Case) -> Span:
        """From cold caches, as kernels are timed."""
        return self._references[case.name].copy_ns(moved_bytes(self._task, case))

    def close(self) -> None:
        """Give the device's memory back."""
        for reference in self._references.values():
            reference.close()
