"""A kernel with a known answer, run in a process of its own: whether a device still computes.

Telemetry can lie (reliability notes, 2.5): what counts is that a small kernel starts, ends and is right. The kernel is
PTX that the driver compiles, so no compiler is needed; its process has ``SECONDS`` and is killed afterwards.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time
from dataclasses import dataclass

from kfd.base.instant import Span
from kfd_worker.harness import cuda_child, cuda_driver

__all__ = ["COUNT", "PTX", "SECONDS", "Song", "expected", "main", "sing"]

SECONDS = 30.0
"""Longest life of the process: a context on a machine with many devices takes some."""

COUNT = 1 << 16
"""Values that the kernel computes, one a thread."""

_TURNS = 1000
_BLOCK = 256
_FACTOR, _ADD = 1664525, 1013904223
_WRONG, _NO_DEVICE = 3, cuda_child.EXIT_NO_DEVICE

PTX = f"""
.version 7.0
.target sm_52
.address_size 64
.visible .entry canary(.param .u64 out_address)
{{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out_address];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    mov.u32 %r5, %r4;
    mov.u32 %r6, 0;
AGAIN:
    mad.lo.u32 %r5, %r5, {_FACTOR}, {_ADD};
    add.u32 %r6, %r6, 1;
    setp.lt.u32 %p1, %r6, {_TURNS};
    @%p1 bra AGAIN;
    mul.wide.u32 %rd2, %r4, 4;
    add.u64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r5;
    ret;
}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Song:
    """How the canary is."""

    healthy: bool
    text: str
    """What is wrong, else the kernel's time."""
    took_ns: Span


def expected(count: int) -> list[int]:
    """What thread 0 to ``count - 1`` leave: ``turns`` steps of x -> x * factor + add, modulo 2**32, from the number."""
    factor, add = 1, 0
    for _ in range(_TURNS):
        factor, add = factor * _FACTOR % 2**32, (add * _FACTOR + _ADD) % 2**32
    return [(factor * number + add) % 2**32 for number in range(count)]


def sing(uuid: str = "", *, seconds: float = SECONDS, library: str = cuda_driver.LIBRARY) -> Song:
    """Run the canary on a device (the first visible one without a UUID); blocking, for at most ``seconds``."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    if uuid:
        env["CUDA_VISIBLE_DEVICES"] = uuid
    began = time.monotonic_ns()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "kfd_worker.devices.canary", library],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=seconds,
            check=False,
            env=env,
        )
        healthy, said = done.returncode == 0, (done.stdout if done.returncode == 0 else done.stderr)
        text = said[-300:].decode("utf-8", "replace").strip() or f"exit code {done.returncode}"
    except subprocess.TimeoutExpired:
        healthy, text = False, f"no answer within {seconds:g} s: the device hangs"
    return Song(healthy=healthy, text=text, took_ns=time.monotonic_ns() - began)


def main(arguments: list[str]) -> int:
    """Run the kernel here and look at every value; the exit code."""
    try:
        device = cuda_driver.Device(arguments[0] if arguments else cuda_driver.LIBRARY)
        function = device.function(device.module(PTX.encode()), "canary")
        buffer = device.allocate(4 * COUNT)
        device.fill(buffer, 0xFF, 4 * COUNT)
        start, stop = device.event(), device.event()
        address = ctypes.c_uint64(buffer)
        pointers = (ctypes.c_void_p * 1)(ctypes.addressof(address))
        device.settle()
        device.record(start)
        device.launch(function, (COUNT // _BLOCK, 1, 1), (_BLOCK, 1, 1), 0, pointers)
        device.record(stop)
        device.finish()
        found = (ctypes.c_uint32 * COUNT)()
        device.download(ctypes.addressof(found), buffer, 4 * COUNT)
        device.free(buffer, 4 * COUNT)
    except (cuda_driver.CudaError, OSError, AttributeError) as error:
        sys.stderr.write(f"{error}\n")
        return _NO_DEVICE
    if list(found) != expected(COUNT):
        wrong = sum(one != other for one, other in zip(found, expected(COUNT), strict=True))
        sys.stderr.write(f"{wrong} of {COUNT} values are wrong: the device does not compute\n")
        return _WRONG
    print(f"{device.between_ns(start, stop)} ns, all {COUNT} values right")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
