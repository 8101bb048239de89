"""The candidate's side of a run on an NVIDIA device. Runs inside the run box, on its own.

Started as ``python -I -S cuda_child.py FD [LIBCUDA]`` with ``child.py`` and the other ``cuda_*.py`` beside it. Orders
and answers are those of ``child.py``. All code here is trusted and the candidate has device code only, but a kernel can
write to any address of its context, so what is on the device is made afresh for every call: around each array lies a
red zone, inputs and poisoned outputs are copied just before the call (a kernel that looks ahead finds no later inputs,
and what it wrote early into later outputs is overwritten), scratch is poisoned, and afterwards red zones and inputs are
compared. Outputs travel back with their slack bytes, so that the judge sees those as well.

``load``: ``{"path", "modules": [[offset, size], ...], "kernels": {NAME: [module, symbol, hidden arguments]},
"options": [...]}``; without ``modules`` the file is one module, and a kernel that is not in ``kernels`` is looked up
in the first by its own name. The option ``plain`` leaves out shield and flush, for profilers that run one kernel at a
time and would wait for the shield for ever. ``map`` carries ``plan`` (concrete launches and bytes of scratch) and
``repeat``, how often a call goes through the plan (for the outer clock: many times, unshielded).

The text of a DONE answer is ``TIMES`` and then device nanoseconds of each call, the first ``MAX_TIMES`` of them.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import socket
import struct
import sys
import time
from typing import Any

try:
    from kfd_worker.harness import child, cuda_driver, cuda_memory, cuda_shield
except ImportError:  # in the box the files lie beside each other and nothing is installed
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import child  # type: ignore[import-not-found,no-redef]
    import cuda_driver  # type: ignore[import-not-found,no-redef]
    import cuda_memory  # type: ignore[import-not-found,no-redef]
    import cuda_shield  # type: ignore[import-not-found,no-redef]

__all__ = [
    "EXIT_NO_DEVICE",
    "EXIT_STICKY",
    "MAX_TIMES",
    "STATUS_DRIVER",
    "STATUS_LOST",
    "STATUS_OTHER",
    "TIMES",
    "TIMES_MAGIC",
    "CudaChild",
    "main",
]

TIMES = struct.Struct("<4sHHQQQ")
"""Magic, calls, 1 when shielded, then nanoseconds: median of a call, sum of all calls, an empty pair of events."""

TIMES_MAGIC = b"dev1"
MAX_TIMES = (256 - TIMES.size) // 8

STATUS_OTHER, STATUS_DRIVER, STATUS_LOST = 1, 2, 3
"""Why an order failed: anything; a driver call; a driver call that ended the context. ``cuda_memory`` has more."""

EXIT_STICKY = 70
"""Exit code after an error that no later call survives."""

EXIT_NO_DEVICE = 71
"""Exit code when there is no driver or no device: nothing about a candidate."""

_MOST_SHIELDED = 64
"""Commands in the stream behind the shield: a full queue would stop the host before it can release it."""
_MAX_SCRATCH = 16
_MAX_LAUNCHES = 16
_MAX_REPEAT = 1 << 20
_LEAST_FLUSH = 64 << 20


class CudaChild:
    """State of one run box with a device."""

    def __init__(self, channel: socket.socket, device: cuda_driver.Device) -> None:
        self._channel = channel
        self._device = device
        self._memory = cuda_memory.Memory(device)
        self._maps: dict[int, cuda_memory.Map] = {}
        self._modules: list[int] = []
        self._kernels: dict[str, tuple[int, list[int]]] = {}
        self._known: dict[str, tuple[int, str, list[int]]] = {}
        self._plain = False
        self._start, self._stop = device.event(), device.event()
        self._flush_bytes = max(2 * device.l2_bytes, _LEAST_FLUSH)
        self._flush = device.allocate(self._flush_bytes)
        self._shield = cuda_shield.Shield(device)
        self._floor_ns = self._shield.floor_ns(self._start, self._stop)

    def answer(self, kind: int, nonce: int = 0, status: int = 0, took_ns: int = 0, text: bytes = b"") -> None:
        """Send one answer."""
        self._channel.send(child.ANSWER.pack(child.MAGIC, kind, nonce, status, took_ns, text[:256]))

    def serve(self) -> int:
        """Follow orders until the judge hangs up; the process's exit code."""
        # Where kernels can read all of this process's memory, the judge shall know.
        host = " host-memory" if self._device.sees_host else ""
        about = "sm_{}{}{} shield={}".format(*self._device.capability, host, self._shield.kind)
        self.answer(child.READY, text=about.encode())
        while True:
            data, fds, _, _ = socket.recv_fds(self._channel, child.MAX_ORDER, 8)
            if not data:
                self._scrub()
                return 0
            try:
                if not self._follow(data, fds):
                    return EXIT_STICKY
            finally:
                for fd in fds:
                    os.close(fd)

    def _follow(self, data: bytes, fds: list[int]) -> bool:
        """One order; False when the device is lost to this process."""
        nonce = 0
        try:
            if data[:1] == b"C":
                nonce = child.CALL.unpack_from(data)[4]
                self._call(data, nonce)
            else:
                order = json.loads(data[1:])
                nonce = order["nonce"]
                self._obey(order, nonce, fds)
        except cuda_memory.Misdeed as error:
            self.answer(child.FAILED, nonce, error.status, 0, str(error).encode())
        except cuda_driver.CudaError as error:
            self.answer(child.FAILED, nonce, STATUS_LOST if error.sticky else STATUS_DRIVER, 0, str(error).encode())
            return not error.sticky
        except Exception as error:  # noqa: BLE001 - whatever it is, the judge must hear of it
            self.answer(child.FAILED, nonce, STATUS_OTHER, 0, f"{type(error).__name__}: {error}".encode())
        return True

    def _obey(self, order: dict[str, Any], nonce: int, fds: list[int]) -> None:
        if order["do"] == "load":
            self._load(order)
            self.answer(child.LOADED, nonce)
        elif order["do"] == "map":
            self._map(order, fds)
            self.answer(child.MAPPED, nonce)
        else:
            raise ValueError(f"unknown order {order['do']!r}")

    # Code.

    def _load(self, order: dict[str, Any]) -> None:
        with open(order["path"], "rb") as file:
            data = file.read()
        for module in self._modules:
            self._device.do("cuModuleUnload", module)
        self._modules.clear()
        self._kernels.clear()
        for offset, size in order.get("modules") or [[0, len(data)]]:
            self._modules.append(self._device.module(data[offset : offset + size]))
        self._known = dict(order.get("kernels") or {})
        self._plain = "plain" in (order.get("options") or ())

    def _kernel(self, name: str) -> tuple[int, list[int]]:
        """A kernel and the bytes of each of its hidden scratch arguments."""
        if name not in self._kernels:
            if not self._modules:
                raise RuntimeError("nothing is loaded")
            module, symbol, hidden = self._known.get(name, (0, name, []))
            self._kernels[name] = self._device.function(self._modules[module], symbol), hidden
        return self._kernels[name]

    def _map(self, order: dict[str, Any], fds: list[int]) -> None:
        number, plan, repeat = order["map"], order["plan"], order.get("repeat", 1)
        if number in self._maps:
            self._memory.drop(self._maps.pop(number))
        if (
            len(plan["launches"]) > _MAX_LAUNCHES
            or len(plan["scratch"]) > _MAX_SCRATCH
            or not 1 <= repeat <= _MAX_REPEAT
        ):
            raise ValueError(f"a plan has at most {_MAX_LAUNCHES} launches and {_MAX_SCRATCH} scratch buffers")
        # Kept from here on: what a failure leaves behind goes with the next order of the same number.
        made = self._maps[number] = cuda_memory.Map(repeat)
        self._memory.map(made, order["sets"], fds, plan["scratch"])
        buffers = [address for address, _ in made.scratch]
        hidden = [self._hidden(made, launch) for launch in plan["launches"]]
        for one in made.sets:
            one.launches = [
                self._launch(one, buffers, more, launch) for launch, more in zip(plan["launches"], hidden, strict=True)
            ]

    def _hidden(self, made: cuda_memory.Map, launch: dict[str, Any]) -> list[int]:
        """Addresses of what the compiler asks for behind a kernel's own arguments: bytes for each block, or null."""
        function, sizes = self._kernel(launch["kernel"])
        self._device.allow_shared(function, launch["shared"])
        blocks = launch["grid"][0] * launch["grid"][1] * launch["grid"][2]
        return [self._memory.scratch(made, size * blocks) if size else 0 for size in sizes]

    def _launch(self, one: cuda_memory.Set, buffers: list[int], hidden: list[int], launch: dict[str, Any]) -> Any:
        values: list[Any] = []
        for kind, *rest in launch["args"]:
            if kind == "arg":
                value = one.values[rest[0]]
                is_array = isinstance(value, cuda_memory.Array)
                values.append(ctypes.c_uint64(value.address + value.start) if is_array else value)
            elif kind == "scratch":
                values.append(ctypes.c_uint64(buffers[rest[0]]))
            elif kind == "scalar":
                values.append(cuda_memory.scalar(rest[0], rest[1]))
            else:
                raise ValueError(f"CUDA kernels take no argument of kind {kind!r}")
        values += [ctypes.c_uint64(address) for address in hidden]
        function, _ = self._kernel(launch["kernel"])
        given, wanted = [ctypes.sizeof(value) for value in values], self._device.parameters(function)
        if given != wanted:
            # The driver would read addresses behind the end of the list.
            name = launch["kernel"]
            text = f"{name} takes parameters of {wanted} bytes, the launch plan gives {given}"
            raise cuda_memory.Misdeed(cuda_memory.STATUS_PLAN, text)
        pointers = (ctypes.c_void_p * max(1, len(values)))(*(ctypes.addressof(value) for value in values))
        # The values stay with the pointers to them.
        return function, launch["grid"], launch["block"], launch["shared"], pointers, values

    # Calls.

    def _call(self, data: bytes, nonce: int) -> None:
        _, _, count, number, _ = child.CALL.unpack_from(data)
        if not count:
            self.answer(child.DONE, nonce)
            return
        made = self._maps[number]
        began = time.process_time_ns()
        times: list[int] = []
        shielded = True
        for index in struct.unpack_from(f"<{count}H", data, child.CALL.size):
            one = made.sets[index]
            pattern = self._memory.prepare(made, one)
            took, held = self._run(made, one)
            times.append(took)
            shielded = shielded and held
            self._memory.inspect(made, one, pattern)
        told = times[:MAX_TIMES]
        text = TIMES.pack(TIMES_MAGIC, count, shielded, sorted(times)[count // 2], sum(times), self._floor_ns)
        text += struct.pack(f"<{len(told)}Q", *told)
        self.answer(child.DONE, nonce, 0, time.process_time_ns() - began, text)

    def _run(self, made: cuda_memory.Map, one: cuda_memory.Set) -> tuple[int, bool]:
        """Device time of one call in nanoseconds, and whether it was shielded."""
        device = self._device
        device.settle()
        shielded = not self._plain and len(one.launches) * made.repeat <= _MOST_SHIELDED
        if shielded:
            self._shield.raise_()
        try:
            if not self._plain:
                device.flush(self._flush, self._flush_bytes)
            device.record(self._start)
            for _ in range(made.repeat):
                for function, grid, block, shared, pointers, _values in one.launches:
                    device.launch(function, grid, block, shared, pointers)
            device.record(self._stop)
        finally:
            # Whatever failed, the stream must not wait for ever.
            self._shield.release()
        device.finish()
        return device.between_ns(self._start, self._stop), shielded and self._shield.held

    def _scrub(self) -> None:
        """Leave no data on the device; one that is lost has nothing more to scrub."""
        with contextlib.suppress(cuda_driver.CudaError):
            for made in self._maps.values():
                self._memory.drop(made)
            self._device.free(self._flush, self._flush_bytes)


def main() -> int:
    """Serve the judge on the inherited descriptor; the exit code."""
    # A kernel's printf comes out here: nobody reads it, and it must not fill anything.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        device = cuda_driver.Device(sys.argv[2] if len(sys.argv) > 2 else cuda_driver.LIBRARY)
        served = CudaChild(socket.socket(fileno=int(sys.argv[1])), device)
    except (cuda_driver.CudaError, OSError, AttributeError) as error:
        sys.stderr.write(f"no CUDA device: {error}\n")
        return EXIT_NO_DEVICE
    # A kernel's assertions come out there, from every thread.
    os.dup2(nowhere, 2)
    return served.serve()


if __name__ == "__main__":
    sys.exit(main())
