"""Buffers of a run on an NVIDIA device: laid out, filled before each call, looked at after it. Standard library only.

Lies beside ``cuda_child.py`` in the run box. A set is one stretch of device memory: red zone, array, red zone, array,
..., red zone; each array has the pages of the judge's file, so that slack bytes travel with it.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Sequence
from typing import Any

try:
    from kfd_worker.harness import child, cuda_driver
except ImportError:  # in the box the files lie beside each other and nothing is installed
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import child  # type: ignore[import-not-found,no-redef]
    import cuda_driver  # type: ignore[import-not-found,no-redef]

__all__ = [
    "RED_ZONE",
    "STATUS_INPUT",
    "STATUS_MEMORY",
    "STATUS_PLAN",
    "STATUS_RED_ZONE",
    "Array",
    "Map",
    "Memory",
    "Misdeed",
    "Set",
    "scalar",
]

RED_ZONE = 64 << 10
"""Bytes of pattern before, between and after the arrays of a set, and behind each scratch buffer."""

STATUS_RED_ZONE, STATUS_INPUT, STATUS_PLAN, STATUS_MEMORY = range(4, 8)
"""Why an order failed: bytes beside an array were written; an input was written; the launch plan does not fit the
kernel; the device has too little memory."""

_STAGING = 16 << 20
_PROT_READ, _PROT_WRITE, _MAP_SHARED, _MAP_POPULATE = 1, 2, 1, 0x8000
_SCALARS: dict[str, Any] = {
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
    "int32": ctypes.c_int32,
    "int64": ctypes.c_int64,
    "uint8": ctypes.c_uint8,
    "bool": ctypes.c_bool,
}


def scalar(dtype: str, value: float) -> Any:
    """A kernel argument by value. Raises KeyError for an unknown dtype."""
    if dtype == "float16":
        return ctypes.c_uint16(struct.unpack("<H", struct.pack("<e", value))[0])
    if dtype == "bfloat16":
        (bits,) = struct.unpack("<I", struct.pack("<f", value))
        # To the nearest, ties to even; a NaN keeps its quiet bit.
        return ctypes.c_uint16(bits >> 16 if value != value else (bits + 0x7FFF + (bits >> 16 & 1)) >> 16)
    return _SCALARS[dtype](value)


class Misdeed(Exception):
    """What cannot or must not be, with a status."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Array:
    """One array of one set: where it lies on the host and on the device, in whole pages."""

    __slots__ = ("address", "host", "pages", "start", "writable")

    def __init__(self, host: int, pages: int, start: int, writable: bool) -> None:
        self.host, self.pages, self.start, self.writable = host, pages, start, writable
        self.address = 0

    @property
    def size(self) -> int:
        """Bytes of its pages."""
        return self.pages * child.PAGE


class Set:
    """The arrays and argument values of one set."""

    def __init__(self, values: list[Any]) -> None:
        self.values = values
        self.arrays = [value for value in values if isinstance(value, Array)]
        self.address = 0
        self.size = RED_ZONE + sum(array.size + RED_ZONE for array in self.arrays)
        self.launches: list[Any] = []

    def place(self, address: int) -> None:
        """Give every array its address."""
        self.address = address
        at = address + RED_ZONE
        for array in self.arrays:
            array.address = at
            at += array.size + RED_ZONE

    def zones(self) -> list[tuple[int, str]]:
        """Address of each red zone and what it lies beside."""
        behind = ((one.address + one.size, f"behind array {number}") for number, one in enumerate(self.arrays))
        return [(self.address, "before the first array"), *behind]


class Map:
    """One case on the device."""

    def __init__(self, repeat: int) -> None:
        self.repeat = repeat
        self.sets: list[Set] = []
        self.block = self.block_size = 0
        self.scratch: list[tuple[int, int]] = []
        """Address and bytes of each scratch buffer."""
        self.files: list[tuple[int, int]] = []


class Memory:
    """The device's memory as calls need it."""

    def __init__(self, device: cuda_driver.Device) -> None:
        self._device = device
        self._staging, _ = device.pinned(_STAGING)
        libc = ctypes.CDLL(None, use_errno=True)
        self._mmap, self._munmap, self._memcmp = libc.mmap, libc.munmap, libc.memcmp
        self._mmap.restype = ctypes.c_void_p
        integer = ctypes.c_int
        self._mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, integer, integer, integer, ctypes.c_long]
        self._munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        self._memcmp.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]

    def map(
        self, made: Map, sets: Sequence[Sequence[Sequence[Any]]], fds: Sequence[int], scratch: Sequence[int]
    ) -> None:
        """Map the judge's files (inputs, then outputs) and make room on the device for all sets.

        Raises Misdeed and MemoryError; what was made until then is in ``made``, for ``drop``.
        """
        bases = [self._file(made, fd, writable) for fd, writable in zip(fds, (False, True), strict=False)]
        made.sets = [Set([_value(argument, bases) for argument in arguments]) for arguments in sets]
        size = sum(one.size for one in made.sets)
        wanted, free = size + sum(scratch), self._device.free_bytes()
        if wanted > free // 10 * 9:
            raise Misdeed(STATUS_MEMORY, f"{wanted} bytes of device memory are needed, {free} are free")
        made.block = self._device.allocate(max(1, size))
        made.block_size = size
        # Nothing that lay there before can be read.
        self._device.fill(made.block, os.urandom(1)[0], size)
        at = made.block
        for one in made.sets:
            one.place(at)
            at += one.size
        for count in scratch:
            self.scratch(made, count)

    def scratch(self, made: Map, size: int) -> int:
        """One scratch buffer with a red zone behind it; its address."""
        address = self._device.allocate(size + RED_ZONE)
        made.scratch.append((address, size))
        return address

    def _file(self, made: Map, fd: int, writable: bool) -> int:
        size = os.fstat(fd).st_size
        protection = _PROT_READ | (_PROT_WRITE if writable else 0)
        base = self._mmap(None, size, protection, _MAP_SHARED | _MAP_POPULATE, fd, 0)
        if base in (None, ctypes.c_void_p(-1).value):
            raise MemoryError(f"cannot map {size} bytes: {os.strerror(ctypes.get_errno())}")
        made.files.append((base, size))
        return int(base)

    def drop(self, made: Map) -> None:
        """Overwrite and give back."""
        for base, size in made.files:
            self._munmap(base, size)
        made.files.clear()
        if made.block:
            self._device.free(made.block, made.block_size)
        for address, size in made.scratch:
            self._device.free(address, size + RED_ZONE)

    def prepare(self, made: Map, one: Set) -> int:
        """Everything on the device that a call can see, made afresh; the byte in the red zones."""
        pattern, garbage = os.urandom(2)
        self._device.fill(one.address, pattern, one.size)
        for array in one.arrays:
            self._device.upload(array.address, array.host, array.size)
        for address, size in made.scratch:
            self._device.fill(address, garbage, size)
            self._device.fill(address + size, pattern, RED_ZONE)
        return pattern

    def inspect(self, made: Map, one: Set, pattern: int) -> None:
        """Fetch outputs. Raises Misdeed when anything else was written."""
        clean = bytes([pattern]) * RED_ZONE
        behind = (
            (address + size, f"behind scratch buffer {number}") for number, (address, size) in enumerate(made.scratch)
        )
        for address, where in (*one.zones(), *behind):
            self._device.download(self._staging, address, RED_ZONE)
            seen = ctypes.string_at(self._staging, RED_ZONE)
            if seen != clean:
                first = next(at for at in range(RED_ZONE) if seen[at] != pattern)
                raise Misdeed(STATUS_RED_ZONE, f"memory {where} was written, {first} bytes into the gap")
        for number, array in enumerate(one.arrays):
            if array.writable:
                self._device.download(array.host, array.address, array.size)
                continue
            for at in range(0, array.size, _STAGING):
                part = min(_STAGING, array.size - at)
                self._device.download(self._staging, array.address + at, part)
                if self._memcmp(self._staging, array.host + at, part):
                    raise Misdeed(STATUS_INPUT, f"array {number}, an input, was written")


def _value(argument: Sequence[Any], bases: Sequence[int]) -> Any:
    if argument[0] == "array":
        _, which, offset, pages, start, writable = argument
        return Array(bases[which] + offset, pages, start, bool(writable))
    return scalar(argument[1], argument[2])
