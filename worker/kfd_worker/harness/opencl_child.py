"""The candidate's side of a run on an OpenCL device. Runs inside the run box, on its own.

Started as ``python -I -S -B opencl_child.py FD LOADER KIND`` (``cpu`` or ``gpu``) with ``child.py``, ``confine.py`` and
``opencl_api.py`` in the same folder; orders and answers are those of ``child.py``. ``load`` carries ``path``, ``kind``
(``opencl-binary``, ``opencl-source`` or ``spirv``) and ``options``; ``map`` carries ``plan``: bytes of scratch buffers
and launches in numbers.

A device that takes host pointers (CPUs do) works in the judge's buffers in place. For any other, each call copies
inputs and poisoned outputs to the device, runs, and copies the outputs back. Kernel objects are made with all their
arguments when buffers are mapped, so that a call is nothing but starts and one wait.
"""

from __future__ import annotations

import ctypes
import os
import socket
import sys
from dataclasses import dataclass, field
from typing import Any

try:
    from kfd_worker.harness import child, confine, opencl_api
except ImportError:  # in the box the files lie beside each other and nothing is installed
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import child  # type: ignore[import-not-found,no-redef]
    import confine  # type: ignore[import-not-found,no-redef]
    import opencl_api  # type: ignore[import-not-found,no-redef]

__all__ = ["EXIT_NO_DEVICE", "OpenCLChild"]

EXIT_NO_DEVICE = 71
"""Exit code when there is no driver or no device: nothing about a candidate."""

_MAX_LAUNCHES = 16
_MAX_SCRATCH = 16
_GARBAGE = 0xA5
_EDGE = 4096
"""Bytes at both ends of a scratch buffer that become garbage again before each call: flags and counters live there."""

_SCALARS = {**child._SCALARS, "float16": ctypes.c_uint16, "bfloat16": ctypes.c_uint16}
_EXTENTS = ctypes.c_size_t * 3


@dataclass
class _Launch:
    """One prepared start."""

    kernel: int
    total: opencl_api.Extents
    group: opencl_api.Extents


@dataclass
class _Prepared:
    """One set: launches with their arguments in place, and what travels with each call on a device with own memory."""

    launches: list[_Launch]
    scratch: list[tuple[int, int]]
    """(address, bytes) of scratch buffers in host memory."""
    arrays: list[tuple[int, int, int, bool]] = field(default_factory=list)
    """(buffer, host address, bytes, written) of arrays that are copied."""


@dataclass
class _Memory:
    """What belongs to one map order and goes when it is given again."""

    kernels: list[int] = field(default_factory=list)
    buffers: list[int] = field(default_factory=list)
    scratch: list[Any] = field(default_factory=list)


class OpenCLChild(child.Child):
    """State of one run box with an OpenCL device. Raises OpenCLError without one."""

    def __init__(self, channel: socket.socket, loader: str, kind: str) -> None:
        super().__init__(channel)
        self._cl = opencl_api.OpenCL(loader)
        found = self._cl.devices(kind)
        if not found:
            raise opencl_api.OpenCLError(f"a device of kind {kind}", -1)
        self._device = found[0]
        self._context = self._cl.context(self._device)
        self._queue = self._cl.queue(self._context, self._device)
        self._program = 0
        self._in_place = bool(self._device.svm & opencl_api.SVM_SYSTEM)
        self._memory: dict[int, _Memory] = {}

    def _obey(self, order: dict[str, object], fds: list[int]) -> None:
        if order["do"] != "load":
            super()._obey(order, fds)
            return
        options = [str(one) for one in order.get("options", [])]  # type: ignore[attr-defined]
        if "copies" in options:
            # For tests: as a device does that cannot reach the host's memory.
            self._in_place = False
        with open(str(order["path"]), "rb") as file:
            data = file.read()
        if order["kind"] == "opencl-binary":
            self._program = self._cl.from_binary(self._context, self._device, data)
        elif order["kind"] == "spirv":
            self._program = self._cl.from_il(self._context, data)
        else:
            self._program = self._cl.from_source(self._context, data)
        build = " ".join(one for one in options if one.startswith("-"))
        built, log = self._cl.build(self._program, self._device, build)
        if not built:
            raise ValueError(f"the driver cannot finish the program: {log[-200:]}")
        self._function = self._run  # type: ignore[assignment]
        self.answer(child.LOADED, int(str(order["nonce"])))

    def _map(self, order: dict[str, object], fds: list[int]) -> None:
        """Map buffers as ``child.py`` does, then prepare every set's launches."""
        number = int(str(order["map"]))
        self._forget(number)
        memory = self._memory[number] = _Memory()
        plan: Any = order["plan"]
        if len(plan["launches"]) > _MAX_LAUNCHES or len(plan["scratch"]) > _MAX_SCRATCH:
            raise ValueError("more launches or scratch buffers than a plan may have")
        super()._map(order, fds)
        scratch = [self._scratch(size, memory) for size in plan["scratch"]]
        raw: Any = order["sets"]
        sets = []
        for given, values in zip(raw, self._sets[number], strict=True):
            prepared = _Prepared([], [(address, size) for address, size in scratch if self._in_place])
            handles = [self._handle(one, value, memory, prepared) for one, value in zip(given, values, strict=True)]
            for launch in plan["launches"]:
                prepared.launches.append(self._launch(launch, handles, [address for address, _ in scratch], memory))
            sets.append((prepared,))
        self._sets[number] = sets  # type: ignore[assignment]

    def _forget(self, number: int) -> None:
        memory = self._memory.pop(number, None)
        if memory is not None:
            for kernel in memory.kernels:
                self._cl.release_kernel(kernel)
            for buffer in memory.buffers:
                self._cl.release_buffer(buffer)

    def _scratch(self, size: int, memory: _Memory) -> tuple[int, int]:
        """(address or buffer, bytes) of one scratch buffer full of garbage; a page of room keeps it aligned."""
        host = (ctypes.c_ubyte * (size + child.PAGE))()
        ctypes.memset(host, _GARBAGE, len(host))
        address = (ctypes.addressof(host) + child.PAGE - 1) & -child.PAGE
        if self._in_place:
            memory.scratch.append(host)
            return address, size
        buffer = self._buffer(size, memory)
        self._cl.write(self._queue, buffer, address, size)
        self._cl.finish(self._queue)
        return buffer, size

    def _buffer(self, size: int, memory: _Memory) -> int:
        buffer = self._cl.buffer(self._context, size)
        memory.buffers.append(buffer)
        return buffer

    def _handle(self, given: list[Any], value: object, memory: _Memory, prepared: _Prepared) -> object:
        """What a kernel is given for one of the task's arguments: an address, a buffer or a number."""
        if given[0] != "array":
            return value
        address = int(value.value)  # type: ignore[attr-defined]
        if self._in_place:
            return address
        _, _, _, pages, start, written = given
        # To the end of the mapped pages: bytes beside the array travel too, so that the judge sees them.
        size = pages * child.PAGE - start
        buffer = self._buffer(size, memory)
        prepared.arrays.append((buffer, address, size, bool(written)))
        return buffer

    def _launch(self, launch: dict[str, Any], handles: list[object], scratch: list[int], memory: _Memory) -> _Launch:
        kernel = self._cl.kernel(self._program, str(launch["kernel"]))
        memory.kernels.append(kernel)
        for index, (kind, *rest) in enumerate(launch["args"]):
            if kind == "local":
                self._cl.set_local(kernel, index, rest[0])
            elif kind == "scalar":
                self._cl.set_value(kernel, index, _SCALARS[rest[0]](rest[1]))
            else:
                value = handles[rest[0]] if kind == "arg" else scratch[rest[0]]
                self._set(kernel, index, value)
        grid, block = launch["grid"], launch["block"]
        return _Launch(
            kernel=kernel,
            total=_EXTENTS(*(groups * size for groups, size in zip(grid, block, strict=True))),
            group=_EXTENTS(*block),
        )

    def _set(self, kernel: int, index: int, value: object) -> None:
        if not isinstance(value, int):
            self._cl.set_value(kernel, index, value)
        elif self._in_place:
            self._cl.set_pointer(kernel, index, value)
        else:
            self._cl.set_buffer(kernel, index, value)

    def _run(self, prepared: _Prepared) -> int:
        """One call: every launch in order, then wait; 0, or OpenCL's error without its sign."""
        try:
            self._start(prepared)
            self._cl.finish(self._queue)
        except opencl_api.OpenCLError as error:
            sys.stderr.write(f"{error}\n")
            return abs(error.code)
        return 0

    def _start(self, prepared: _Prepared) -> None:
        cl, queue = self._cl, self._queue
        for address, size in prepared.scratch:
            edge = min(size, _EDGE)
            ctypes.memset(address, _GARBAGE, edge)
            ctypes.memset(address + size - edge, _GARBAGE, edge)
        for buffer, address, size, _ in prepared.arrays:
            cl.write(queue, buffer, address, size)
        for launch in prepared.launches:
            cl.launch(queue, launch.kernel, launch.total, launch.group)
        for buffer, address, size, written in prepared.arrays:
            if written:
                cl.read(queue, buffer, address, size)


def main() -> None:
    """Serve the judge on the inherited descriptor, confined before any foreign code is loaded."""
    refused = confine.confine()
    if refused:
        sys.exit(refused)
    channel = socket.socket(fileno=int(sys.argv[1]))
    try:
        served = OpenCLChild(channel, sys.argv[2], sys.argv[3])
    except (OSError, opencl_api.OpenCLError) as error:
        sys.stderr.write(f"no OpenCL device: {error}\n")
        sys.exit(EXIT_NO_DEVICE)
    served.serve()


if __name__ == "__main__":
    main()
