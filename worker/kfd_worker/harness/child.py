"""The candidate's side of a run: loads the artifact and calls it. Runs inside the run box, on its own.

Started as ``python -I -S child.py FD``: standard library only, because the box holds nothing else. It shares
its address space with the candidate, so nothing it says is evidence; it is convenience for the judge, which
judges by the raw bytes in the outputs and by its own clock. The judge imports this file for the message
layouts, which is why the parts that act are functions.

Orders come as one packet each. ``J`` and JSON for what is rare, ``C`` and a fixed layout for calls; answers
have one fixed layout. Buffers are memory files that arrive with the ``map`` order: inputs can only be mapped
read-only (sealed), and every buffer lies between two pages that no one may touch.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import socket
import struct
import sys
import time

ANSWER = struct.Struct("<4sIQiQ256s")
"""Magic, kind, nonce, status, CPU nanoseconds of all threads (a claim), text."""

CALL = struct.Struct("<cBHIQ")
"""b"C", core to start on plus one (0: any), count, map number, nonce; then count u16 set numbers."""

MAGIC = b"kfd1"
READY, LOADED, MAPPED, DONE, FAILED = range(1, 6)
MAX_ORDER = 1 << 20
PAGE = 4096
AWAKE_NS = 2_000_000
"""How long a box that was placed on a core waits for its next order without sleeping."""

_PROT_NONE, _PROT_READ, _PROT_WRITE = 0, 1, 2
_MAP_SHARED, _MAP_PRIVATE, _MAP_FIXED, _MAP_ANONYMOUS, _MAP_POPULATE = 0x01, 0x02, 0x10, 0x20, 0x8000

_SCALARS = {
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
    "int32": ctypes.c_int32,
    "int64": ctypes.c_int64,
    "uint8": ctypes.c_uint8,
    "bool": ctypes.c_bool,
}


class Child:
    """State of one run box."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._function: ctypes._FuncPointer | None = None
        self._sets: dict[int, list[tuple[object, ...]]] = {}
        self._regions: dict[int, list[tuple[int, int]]] = {}
        self._cores = os.sched_getaffinity(0)
        self._awake_until = 0
        libc = ctypes.CDLL(None, use_errno=True)
        self._mmap = libc.mmap
        self._mmap.restype = ctypes.c_void_p
        self._mmap.argtypes = [
            ctypes.c_void_p,
            ctypes.c_size_t,
            ctypes.c_int,
            ctypes.c_int,
            ctypes.c_int,
            ctypes.c_long,
        ]
        self._munmap = libc.munmap
        self._munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]

    def answer(self, kind: int, nonce: int = 0, status: int = 0, took_ns: int = 0, text: str = "") -> None:
        """Send one answer."""
        self._channel.send(ANSWER.pack(MAGIC, kind, nonce, status, took_ns, text.encode("utf-8", "replace")[:256]))

    def serve(self) -> None:
        """Follow orders until the judge hangs up."""
        self.answer(READY)
        while True:
            data, fds, _, _ = self._next()
            if not data:
                return
            if data[:1] == b"C":
                self._call(data)
                continue
            order = json.loads(data[1:])
            try:
                self._obey(order, fds)
            except Exception as error:  # noqa: BLE001 - whatever it is, the judge must hear of it
                self.answer(FAILED, order["nonce"], 1, 0, f"{type(error).__name__}: {error}")
            finally:
                for fd in fds:
                    os.close(fd)

    def _obey(self, order: dict[str, object], fds: list[int]) -> None:
        nonce = int(str(order["nonce"]))
        if order["do"] == "load":
            library = ctypes.CDLL(str(order["path"]), mode=os.RTLD_NOW | os.RTLD_LOCAL)
            self._function = library[str(order["entry"])]
            self._function.restype = ctypes.c_int
            self.answer(LOADED, nonce)
        elif order["do"] == "map":
            self._map(order, fds)
            self.answer(MAPPED, nonce)
        else:
            raise ValueError(f"unknown order {order['do']!r}")

    def _map(self, order: dict[str, object], fds: list[int]) -> None:
        number = int(str(order["map"]))
        for address, length in self._regions.pop(number, []):
            self._munmap(address, length)
        regions = self._regions[number] = []
        sets: list[tuple[object, ...]] = []
        for arguments in order["sets"]:  # type: ignore[attr-defined]
            values: list[object] = []
            for argument in arguments:
                if argument[0] == "array":
                    _, which, offset, pages, start, writable = argument
                    values.append(ctypes.c_void_p(self._place(fds[which], offset, pages, writable, regions) + start))
                else:
                    _, dtype, value = argument
                    values.append(_SCALARS[dtype](value))
            sets.append(tuple(values))
        self._sets[number] = sets

    def _place(self, fd: int, offset: int, pages: int, writable: bool, regions: list[tuple[int, int]]) -> int:
        """Map some pages of a file between two guard pages; returns the address of the first of them."""
        length = (pages + 2) * PAGE
        base = self._mmap(None, length, _PROT_NONE, _MAP_PRIVATE | _MAP_ANONYMOUS, -1, 0)
        if base in (None, ctypes.c_void_p(-1).value):
            raise MemoryError(f"no room for {length} bytes")
        regions.append((base, length))
        protection = _PROT_READ | (_PROT_WRITE if writable else 0)
        at = self._mmap(base + PAGE, pages * PAGE, protection, _MAP_SHARED | _MAP_FIXED | _MAP_POPULATE, fd, offset)
        if at != base + PAGE:
            raise MemoryError(f"cannot map {pages} pages: {os.strerror(ctypes.get_errno())}")
        return int(at)

    def _next(self) -> tuple[bytes, list[int], int, object]:
        # A process that sleeps is woken where the scheduler likes: stay awake for the call that comes at once.
        while time.monotonic_ns() < self._awake_until:
            try:
                order = socket.recv_fds(self._channel, MAX_ORDER, 8, socket.MSG_DONTWAIT)
            except BlockingIOError:
                continue
            # Once only: whoever is measured next shall have the core.
            self._awake_until = 0
            return order
        return socket.recv_fds(self._channel, MAX_ORDER, 8)

    def _move_to(self, core: int) -> None:
        """Continue on a core, free to leave it: threads that are made later must not be bound to it."""
        self._awake_until = time.monotonic_ns() + AWAKE_NS
        try:
            os.sched_setaffinity(0, {core})
            os.sched_setaffinity(0, self._cores)
        except OSError:
            # A core that is not ours, or one that has gone: anywhere is right then.
            return

    def _call(self, data: bytes) -> None:
        _, core, count, number, nonce = CALL.unpack_from(data)
        if core:
            self._move_to(core - 1)
        # An order for no call at all is how the judge learns what the way here and back costs.
        sets, function = self._sets.get(number, []), self._function
        if function is None and count:
            raise RuntimeError("nothing is loaded")
        picked = [sets[index] for index in struct.unpack_from(f"<{count}H", data, CALL.size)]
        began = time.process_time_ns()
        status = 0
        for arguments in picked:
            status = function(*arguments)  # type: ignore[misc]
            if status:
                break
        self.answer(DONE, nonce, status, time.process_time_ns() - began)


def main() -> None:
    """Serve the judge on the inherited descriptor, confined before any foreign code is loaded."""
    # Isolated mode finds nothing beside this file by itself.
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    confine = importlib.import_module("confine").confine
    refused = confine()
    if refused:
        sys.exit(refused)
    Child(socket.socket(fileno=int(sys.argv[1]))).serve()


if __name__ == "__main__":
    main()
