"""The launch shield: no gap between two launches of the host is ever measured. Standard library only.

Lies beside ``cuda_child.py`` in the run box.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time

try:
    from kfd_worker.harness.cuda_driver import CudaError, Device
except ImportError:  # in the box the files lie beside each other and nothing is installed
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    from cuda_driver import CudaError, Device  # type: ignore[import-not-found,no-redef]

__all__ = ["Shield"]

_WAIT_GEQ = 0
_HELD_LIMIT_NS = 200_000_000
_LOOK_S = 0.02

_SHIELD_PTX = f"""
.version 7.0
.target sm_52
.address_size 64
.visible .entry kfd_shield(.param .u64 flag_address, .param .u32 wanted)
{{
    .reg .pred %p<3>;
    .reg .b32 %r<3>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [flag_address];
    ld.param.u32 %r1, [wanted];
    mov.u64 %rd2, %globaltimer;
AGAIN:
    ld.volatile.global.u32 %r2, [%rd1];
    setp.ge.u32 %p1, %r2, %r1;
    @%p1 bra DONE;
    mov.u64 %rd3, %globaltimer;
    sub.u64 %rd4, %rd3, %rd2;
    setp.lt.u64 %p2, %rd4, {_HELD_LIMIT_NS};
    @%p2 bra AGAIN;
DONE:
    ret;
}}
"""


class Shield:
    """Holds the stream back until everything of a sample has been put into it.

    Without it the gap between two launches of the host is measured as time of the device: a 9 us kernel reads as 11
    with a tail to 60 (evaluation notes, 4.3). The stream waits for a number in pinned memory that the host writes when
    the last command is in the queue: no host delay to guess, no kernel that takes part of the device. Where
    the driver refuses such a wait, a kernel of one thread spins on the same number.

    Some commands wait for the device before they return (the first kernel with a large stack does), and would wait for
    the shield for ever: a thread looks now and then and lets go after 200 ms. Such a sample is not ``held``.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        host, self._address = device.pinned(64)
        self._flag = ctypes.c_uint32.from_address(host)
        self._flag.value = 0
        self._turn = 0
        self._function = 0
        self._since = 0
        self.held = True
        """Whether the last shield was let go by the host, when everything was in the queue."""
        try:
            self.raise_()
            self.release()
            device.finish()
        except CudaError as error:
            if error.sticky:
                raise
            self._function = device.function(device.module(_SHIELD_PTX.encode()), "kfd_shield")
        threading.Thread(target=self._watch, daemon=True).start()

    @property
    def kind(self) -> str:
        """How the stream is held: ``wait`` or ``spin``."""
        return "spin" if self._function else "wait"

    def raise_(self) -> None:
        """Hold back what comes after this in the stream."""
        self._turn += 1
        self.held = True
        self._since = time.monotonic_ns()
        if not self._function:
            self._device.do("cuStreamWaitValue32_v2", self._device.stream, self._address, self._turn, _WAIT_GEQ)
            return
        values = (ctypes.c_uint64(self._address), ctypes.c_uint32(self._turn))
        pointers = (ctypes.c_void_p * 2)(*(ctypes.addressof(value) for value in values))
        self._device.launch(self._function, (1, 1, 1), (1, 1, 1), 0, pointers)

    def release(self) -> None:
        """Let the stream go on."""
        self._since = 0
        self._flag.value = self._turn

    def _watch(self) -> None:
        while True:
            time.sleep(_LOOK_S)
            since = self._since
            if since and time.monotonic_ns() - since > _HELD_LIMIT_NS:
                self.held = False
                self._flag.value = self._turn

    def floor_ns(self, start: int, stop: int, count: int = 9) -> int:
        """What two events with nothing between them read, in nanoseconds: the median of some tries."""
        found = []
        for _ in range(count):
            self.raise_()
            self._device.record(start)
            self._device.record(stop)
            self.release()
            self._device.finish()
            found.append(self._device.between_ns(start, stop))
        return sorted(found)[count // 2]
