"""A time below which no kernel can be: its outputs must at least have been written.

The rate is measured on this machine with the fastest thing there is (filling memory that is in the nearest
cache) and then taken ten times as high, so that only a broken clock or work that was not done in the call can lie
below. Only outputs count: an honest kernel need not read all of its inputs (a gather), but every output has been
poisoned before the call and is compared after it.
"""

from __future__ import annotations

import time

import torch

from kfd.base.instant import SECOND, Span

__all__ = ["GENEROSITY", "GPU_BYTES_PER_S", "SAMPLES", "floor_ns", "per_call_ns", "write_rate"]

GENEROSITY = 10
SAMPLES = 3
"""Samples of each side in a round, the least of which counts."""
_SIZES = (16 << 10, 128 << 10, 1 << 20)
_REPEATS = 40
_CALLS = 8


GPU_BYTES_PER_S = 2e13
"""More than any device's memory or second-level cache takes: a floor that only a clock that is wrong goes below."""


def write_rate(threads: int) -> float:
    """Bytes per second that ``threads`` cores can fill at most; measured in a few milliseconds."""
    best = 0.0
    for size in _SIZES:
        buffer = torch.zeros(size, dtype=torch.uint8)
        for _ in range(_REPEATS):
            began = time.monotonic_ns()
            for _ in range(_CALLS):
                buffer.fill_(1)
            took = max(1, time.monotonic_ns() - began)
            best = max(best, _CALLS * size * SECOND / took)
    return best * max(1, threads)


def floor_ns(output_bytes: int, bytes_per_s: float) -> Span:
    """Least time that writing so many bytes can take, in nanoseconds, rounded down."""
    return int(output_bytes * SECOND / (bytes_per_s * GENEROSITY))


def per_call_ns(took_ns: Span, overhead_ns: Span, calls: int) -> Span:
    """Time of one of ``calls`` calls in an order that took so long; at least 1.

    The cost of the order itself comes off, but never more than half of what the clock showed: for a kernel that
    is short against its order the number is then too big, which costs a candidate a little and cannot flatter it.
    """
    return max(1, max(took_ns - overhead_ns, (took_ns + 1) // 2) // calls)
