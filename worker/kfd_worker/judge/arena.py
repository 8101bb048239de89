"""Buffers that a judge and a candidate share, laid out so that neither can be surprised.

All arrays of one kind (inputs, outputs) of one case lie in one memory file. Each array starts on a 64-byte
boundary and ends less than 64 bytes before the end of its last page, or, where asked for, starts at its first
page. The candidate's side puts pages that no one may touch around it, and what is left of the first and last
page is filled with a pattern that the judge looks at afterwards. Files are sealed against growing and shrinking
(a truncated file would kill the judge), inputs against every new writable mapping as well.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch

from kfd_worker.harness.child import PAGE

__all__ = ["DTYPES", "Arena", "ArraySpec", "Region"]

DTYPES = {
    "float32": torch.float32,
    "float64": torch.float64,
    "int32": torch.int32,
    "int64": torch.int64,
    "uint8": torch.uint8,
    "bool": torch.bool,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
}

_ALIGN = 64
_SEAL_SEAL, _SEAL_SHRINK, _SEAL_GROW, _SEAL_FUTURE_WRITE = 0x1, 0x2, 0x4, 0x10
_ADD_SEALS = 1033


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """One array argument of one case."""

    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def count(self) -> int:
        """Number of elements."""
        total = 1
        for extent in self.shape:
            total *= extent
        return total

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""
        return self.count * DTYPES[self.dtype].itemsize

    @property
    def pages(self) -> int:
        """Whole pages that hold it."""
        return -(-self.nbytes // PAGE)

    @property
    def start(self) -> int:
        """Offset of the first element in its pages: as late as the alignment allows."""
        return (self.pages * PAGE - self.nbytes) // _ALIGN * _ALIGN


@dataclass(frozen=True, slots=True)
class Region:
    """Where one array of one set lies in its file."""

    spec: ArraySpec
    offset: int
    start: int
    """Offset of its first element from there."""
    tensor: torch.Tensor
    """The elements, in their shape."""
    slack: tuple[torch.Tensor, torch.Tensor]
    """Bytes before the first and after the last element within the region's pages."""


class Arena:
    """One memory file with ``sets`` times the same arrays."""

    def __init__(
        self, name: str, arrays: Sequence[ArraySpec], sets: int, *, writable: bool, low: Collection[int] = ()
    ) -> None:
        """``low`` names the sets whose arrays start at their first page instead of ending at their last."""
        self.arrays = tuple(arrays)
        self.writable = writable
        size = max(1, sum(array.pages for array in arrays) * sets) * PAGE
        self.fd = os.memfd_create(f"kfd-{name}", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, size)
        self._map = mmap.mmap(self.fd, size, mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0))
        seals = _SEAL_SHRINK | _SEAL_GROW | (0 if writable else _SEAL_FUTURE_WRITE)
        fcntl.fcntl(self.fd, _ADD_SEALS, seals | _SEAL_SEAL)
        self.regions: list[dict[str, Region]] = []
        offset = 0
        for index in range(sets):
            made: dict[str, Region] = {}
            for array in arrays:
                made[array.name] = self._region(array, offset, 0 if index in low else array.start)
                offset += array.pages * PAGE
            self.regions.append(made)

    def _region(self, array: ArraySpec, offset: int, start: int) -> Region:
        flat = torch.frombuffer(self._map, dtype=DTYPES[array.dtype], count=array.count, offset=offset + start)
        pages = torch.frombuffer(self._map, dtype=torch.uint8, count=array.pages * PAGE, offset=offset)
        before, after = pages[:start], pages[start + array.nbytes :]
        return Region(array, offset, start, flat.view(array.shape), (before, after))

    def close(self) -> None:
        """Give the file up; tensors of it keep the memory until they go."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
        self.regions.clear()
