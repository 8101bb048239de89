"""What bounds a kernel from below in practice: moving its inputs and outputs once, as fast as this machine copies.

Not a proof like ``floor``: a kernel that keeps its inputs in a nearer cache than the copy does may be faster. It tells
people, models and the search how much is left to gain at most, to within tens of per cent.
"""

from __future__ import annotations

import time
from functools import lru_cache

import torch

from kfd.base.instant import MILLISECOND, Span
from kfd.tasks.spec import Case, Role
from kfd_worker.judge.floor import per_call_ns
from kfd_worker.judge.taskcode import LoadedTask

__all__ = ["MOST_BYTES", "host_copy_ns", "moved_bytes"]

MOST_BYTES = 256 << 20
"""Larger copies are measured at this size and scaled."""
_ENOUGH_NS: Span = 30 * MILLISECOND
_TRIES = 9
_SAMPLE_NS: Span = MILLISECOND // 4
_EMPTY_CALLS = 200


def moved_bytes(task: LoadedTask, case: Case) -> int:
    """Bytes of all inputs and outputs of a case."""
    return sum(array.nbytes for role in (Role.IN, Role.OUT) for array in task.arrays(case, role))


@lru_cache(maxsize=256)
def host_copy_ns(moved: int, threads: int) -> Span:
    """Shortest time in which ``threads`` threads read ``moved // 2`` bytes and write as many, in nanoseconds.

    Both buffers are as near as so many bytes can be. What a copy of one byte takes is PyTorch's own time and comes off.
    Takes about 30 ms the first time. ``threads`` must be PyTorch's number of threads at the call.
    """
    half = max(1, min(moved, MOST_BYTES) // 2)
    source, target = torch.ones(half, dtype=torch.uint8), torch.zeros(half, dtype=torch.uint8)
    one, other = torch.ones(1, dtype=torch.uint8), torch.zeros(1, dtype=torch.uint8)
    empty_ns = _copies(one, other, _EMPTY_CALLS) // _EMPTY_CALLS
    calls = max(1, min(1000, _SAMPLE_NS // max(1, _copies(source, target, 1))))
    best = 0
    began = time.monotonic_ns()
    for _ in range(_TRIES):
        took = per_call_ns(_copies(source, target, calls), empty_ns * calls, calls)
        best = min(best or took, took)
        if time.monotonic_ns() - began > _ENOUGH_NS:
            break
    return max(1, round(best * (max(1, moved) / (2 * half)))) if moved > MOST_BYTES else best


def _copies(source: torch.Tensor, target: torch.Tensor, calls: int) -> Span:
    began = time.monotonic_ns()
    for _ in range(calls):
        target.copy_(source)
    return time.monotonic_ns() - began
