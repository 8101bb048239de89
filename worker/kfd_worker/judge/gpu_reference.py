"""The reference on an NVIDIA device: its outputs in double precision, its time by the same protocol as a candidate's.

A candidate's call is a flushed cache, two events and a shield that hides the host's launch gaps
(``harness/cuda_child.py``); the reference gets the same, through PyTorch's stream. Its shield is a sleeping kernel,
because PyTorch does not let a stream wait for a number; whether it held is asked after the last command, and a sample
whose shield was too short is taken again with a longer one. TF32 is a matter of the error class: the caller says.
"""

from __future__ import annotations

import contextlib
import ctypes
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from kfd.base.instant import MICROSECOND, Span
from kfd.base.measure import median
from kfd.tasks.spec import Case
from kfd_worker.judge.faults import ReferenceFault
from kfd_worker.judge.gpu_clock import DeviceTimes
from kfd_worker.judge.roof import MOST_BYTES
from kfd_worker.judge.taskcode import LoadedTask, Values

__all__ = ["GpuReference", "next_shield_ns"]

_LEAST_FLUSH = 64 << 20
_FIRST_SHIELD_NS: Span = 100 * MICROSECOND
_MOST_SHIELD_NS: Span = 50_000 * MICROSECOND
_TRIES = 10
_EMPTY_PAIRS = 9
_COPIES = 5
_CUDA: Any = torch.cuda
"""PyTorch has no types for its events."""


def next_shield_ns(shield_ns: Span, enqueue_ns: Span, held: bool) -> Span:
    """Length of the next shield; kept while it holds and is not four times too long."""
    wanted = enqueue_ns + enqueue_ns // 2 + 10 * MICROSECOND
    if held and shield_ns <= 4 * wanted:
        return shield_ns
    return min(_MOST_SHIELD_NS, wanted if held else max(wanted, 2 * shield_ns))


class GpuReference:
    """One task's reference with sets of inputs on the device. Raises ReferenceFault when there is no device."""

    def __init__(self, task: LoadedTask, case: Case, sets: int) -> None:
        if not torch.cuda.is_available():
            raise ReferenceFault("the reference of a GPU task needs a device; PyTorch sees none")
        self._task = task
        self._case = case
        self._values: list[Values] = [{} for _ in range(sets)]
        facts = torch.cuda.get_device_properties(0)
        flush = max(_LEAST_FLUSH, 2 * int(getattr(facts, "L2_cache_size", 0)))
        self._flush = torch.empty(flush // 4, dtype=torch.int32, device="cuda")
        self._driver = ctypes.CDLL("libcuda.so.1")
        self._cycles_per_ns = self._rate()
        self._shield_ns = _FIRST_SHIELD_NS
        self.floor_ns = self._empty_pair()
        """What two events with nothing between them read, in nanoseconds."""

    def close(self) -> None:
        """Give the device's memory back, overwritten."""
        for values in self._values:
            for value in values.values():
                if isinstance(value, torch.Tensor):
                    value.zero_()
            values.clear()
        self._flush.zero_()
        torch.cuda.synchronize()
        torch.cuda.empty_cache()

    def refresh(self, index: int, values: Values) -> None:
        """Put the inputs of a set on the device."""
        self._values[index] = {
            name: value.to("cuda") if isinstance(value, torch.Tensor) else value for name, value in values.items()
        }
        torch.cuda.synchronize()

    def reference(self, index: int) -> list[torch.Tensor]:
        """Outputs of the reference as the user wrote it, on the host; TF32 off."""
        with _tf32(False):
            return [tensor.cpu() for tensor in self._task.reference(self._case, self._values[index])]

    def oracle(self, index: int) -> list[torch.Tensor]:
        """Outputs in double precision, on the host."""
        return [tensor.cpu() for tensor in self._task.oracle(self._case, self._values[index])]

    def call(self, indices: Sequence[int], *, tf32: bool) -> DeviceTimes:
        """Device times of the reference on some sets. Raises ReferenceFault."""
        with _tf32(tf32), torch.no_grad():
            each = tuple(self._sample(index) for index in indices)
        return DeviceTimes(
            calls=len(each),
            shielded=True,
            median_ns=round(median([float(one) for one in each])),
            total_ns=sum(each),
            floor_ns=self.floor_ns,
            each_ns=each,
        )

    def copy_ns(self, moved: int) -> Span:
        """Shortest time in which the device reads ``moved // 2`` bytes and writes as many. Raises ReferenceFault."""
        half = max(1, min(moved, MOST_BYTES) // 2)
        source = torch.ones(half, dtype=torch.uint8, device="cuda")
        target = torch.empty_like(source)
        best = min(self._shielded(lambda: target.copy_(source)) for _ in range(_COPIES))
        return max(1, round((best - min(self.floor_ns, best // 2)) * max(1.0, moved / (2 * half))))

    def _sample(self, index: int) -> Span:
        return self._shielded(lambda: self._task.compute(self._case, self._values[index]))

    def _shielded(self, work: Callable[[], object]) -> Span:
        """Time of what is enqueued by ``work``, behind a flushed cache and a shield. Raises ReferenceFault."""
        for _ in range(_TRIES):
            start, stop, shield = (_CUDA.Event(enable_timing=True) for _ in range(3))
            torch.cuda.synchronize()
            self._driver.cuCtxResetPersistingL2Cache()
            began = time.monotonic_ns()
            _CUDA._sleep(max(1, int(self._shield_ns * self._cycles_per_ns)))
            shield.record()
            self._flush.zero_()
            start.record()
            made = work()
            stop.record()
            held = not shield.query()
            took = time.monotonic_ns() - began
            torch.cuda.synchronize()
            del made
            self._shield_ns = next_shield_ns(self._shield_ns, took, held)
            if held:
                return max(1, round(float(start.elapsed_time(stop)) * 1e6))
        raise ReferenceFault(
            f"the reference of case {self._case.name} cannot be enqueued behind a shield: it waits itself"
        )

    def _rate(self) -> float:
        """Cycles of the sleeping kernel's clock for each nanosecond."""
        start, stop = (_CUDA.Event(enable_timing=True) for _ in range(2))
        cycles = 20_000_000
        _CUDA._sleep(cycles)
        start.record()
        _CUDA._sleep(cycles)
        stop.record()
        torch.cuda.synchronize()
        return cycles / max(1.0, float(start.elapsed_time(stop)) * 1e6)

    def _empty_pair(self) -> Span:
        found = []
        for _ in range(_EMPTY_PAIRS):
            start, stop = (_CUDA.Event(enable_timing=True) for _ in range(2))
            _CUDA._sleep(int(200 * MICROSECOND * self._cycles_per_ns))
            start.record()
            stop.record()
            torch.cuda.synchronize()
            found.append(float(start.elapsed_time(stop)) * 1e6)
        return max(0, round(median(found)))


@contextlib.contextmanager
def _tf32(allowed: bool) -> Iterator[None]:
    """Whether float32 products and convolutions may use TF32 meanwhile."""
    products, convolutions = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    torch.set_float32_matmul_precision("high" if allowed else "highest")
    torch.backends.cudnn.allow_tf32 = allowed
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(products)
        torch.backends.cudnn.allow_tf32 = convolutions
