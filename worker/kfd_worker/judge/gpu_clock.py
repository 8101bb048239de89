"""Device times of a run: read from a child's answer, held against the outer clock, made into per-round times. Pure.

The child is trusted code and the candidate has no host code, so device time is no claim of the candidate's. It is still
held against the judge's own clock (evaluation notes, 4.2): a wrong event, a lost shield or a driver that answers early
must never become a speed-up.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from kfd.base.instant import MICROSECOND, Span
from kfd.base.measure import median
from kfd.base.work import IncidentCode, VerdictCode
from kfd_worker.harness import cuda_child, cuda_memory

__all__ = [
    "CLOCK_APART",
    "Agreement",
    "DeviceTimes",
    "agree",
    "fault_code",
    "read_times",
    "round_time_ns",
    "same_clocks",
    "slope_agrees",
]

CLOCK_APART = 0.03
"""Clocks of two samples that are to be compared may differ by so much of the larger (evaluation notes, 4.3)."""

_LEAST_SHARE = 0.8
_TRIM = 0.2
_TICK_NS: Span = MICROSECOND
"""Events of some devices tick once in a microsecond or two; a sum of them is no more exact than that for each."""

_MEANING: dict[int, VerdictCode | IncidentCode] = {
    cuda_child.STATUS_DRIVER: VerdictCode.RUNTIME_ERROR,
    cuda_child.STATUS_LOST: VerdictCode.RUNTIME_ERROR,
    cuda_memory.STATUS_RED_ZONE: VerdictCode.INCORRECT,
    cuda_memory.STATUS_INPUT: VerdictCode.INCORRECT,
    cuda_memory.STATUS_PLAN: VerdictCode.LOAD_ERROR,
    cuda_memory.STATUS_MEMORY: IncidentCode.DEVICE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceTimes:
    """What one call order took on the device, in nanoseconds."""

    calls: int
    shielded: bool
    """Whether no launch gap of the host is in it."""
    median_ns: Span
    total_ns: Span
    floor_ns: Span
    """What an empty pair of events reads: the part of each call that is no work."""
    each_ns: tuple[Span, ...]
    """The first calls one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Whether two clocks tell the same; ``text`` says why not."""

    text: str = ""

    @property
    def holds(self) -> bool:
        """Whether they do."""
        return not self.text


def read_times(text: bytes) -> DeviceTimes | None:
    """Times in the text of a DONE answer; None when there are none or they contradict themselves."""
    if len(text) < cuda_child.TIMES.size or text[:4] != cuda_child.TIMES_MAGIC:
        return None
    _, calls, shielded, middle, total, floor = cuda_child.TIMES.unpack_from(text)
    told = min(calls, cuda_child.MAX_TIMES)
    if not calls or len(text) < cuda_child.TIMES.size + 8 * told:
        return None
    each = struct.unpack_from(f"<{told}Q", text, cuda_child.TIMES.size)
    if min(each) < 1 or not min(each) <= total or sum(each) > total or middle > total:
        return None
    return DeviceTimes(
        calls=calls, shielded=bool(shielded), median_ns=middle, total_ns=total, floor_ns=floor, each_ns=each
    )


def fault_code(status: int) -> VerdictCode | IncidentCode:
    """What a failed ``map`` or call order says: about the candidate, the device, or (any other status) about us."""
    return _MEANING.get(status, IncidentCode.INTERNAL)


def agree(device_ns: Span, outer_ns: Span, overhead_ns: Span, calls: int) -> Agreement:
    """Whether the device's sum over an order fits into the judge's time around it.

    ``overhead_ns`` is what the same order takes with an empty plan: copies, poison, flush and the way there and back.
    The device cannot have worked longer than the order took, nor for less than ``0.8`` of what is left without the
    overhead, when that is more than the ticks of ``calls`` events and a tenth of the overhead, which varies.
    """
    if device_ns <= 0 or outer_ns <= 0 or calls <= 0:
        return Agreement(text=f"times must be positive: device {device_ns} ns, outer {outer_ns} ns, {calls} calls")
    if device_ns > outer_ns + calls * _TICK_NS:
        return Agreement(text=f"the device tells {device_ns} ns within an order that took {outer_ns} ns")
    left = outer_ns - overhead_ns
    if left > overhead_ns // 10 + calls * _TICK_NS and device_ns < _LEAST_SHARE * left - overhead_ns / 10:
        return Agreement(text=f"the device tells {device_ns} ns, and {left} ns of the order are not accounted for")
    return Agreement()


def slope_agrees(device_ns: tuple[Span, Span], outer_ns: tuple[Span, Span], apart: float = 0.1) -> Agreement:
    """Whether more repeats of the same call add as much to the device's clock as to the judge's.

    Each pair is (few repeats, many repeats) of one set; what does not grow with the repeats drops out, so that the
    difference is exact for long enough runs (50 ms or more; evaluation notes, 4.2).
    """
    inner, outer = device_ns[1] - device_ns[0], outer_ns[1] - outer_ns[0]
    if inner <= 0 or outer <= 0:
        return Agreement(text=f"more repeats added {inner} ns of device time and {outer} ns by our clock")
    if not 1 - apart <= inner / outer <= 1 + apart:
        return Agreement(text=f"more repeats added {inner} ns of device time and {outer} ns by our clock")
    return Agreement()


def round_time_ns(samples: Sequence[DeviceTimes]) -> Span:
    """A side's time of one call in one round: the trimmed mean over all calls of its samples, in nanoseconds.

    A fifth is left out at either end (evaluation notes, 4.3): events tick, so that medians of short kernels are
    quantised, and one outlier breaks a plain mean. Raises ValueError when there is no sample or one is unshielded.
    """
    if not samples or not all(one.shielded for one in samples):
        raise ValueError("a round needs samples, and all of them shielded")
    each = sorted(time for one in samples for time in one.each_ns)
    cut = int(len(each) * _TRIM)
    kept = each[cut : len(each) - cut]
    return max(1, round(sum(kept) / len(kept))) if kept else max(1, round(median([float(time) for time in each])))


def same_clocks(one_mhz: Sequence[float], other_mhz: Sequence[float]) -> Agreement:
    """Whether two sides of a round ran at the same speed of the processor; what was not read proves nothing."""
    known = [value for value in (*one_mhz, *other_mhz) if value > 0]
    if not one_mhz or not other_mhz or len(known) != len(one_mhz) + len(other_mhz):
        return Agreement()
    left, right = median(one_mhz), median(other_mhz)
    if abs(left - right) > CLOCK_APART * max(left, right):
        return Agreement(text=f"one side ran at {left:.0f} MHz and the other at {right:.0f} MHz")
    return Agreement()
