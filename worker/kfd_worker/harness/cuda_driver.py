"""The CUDA driver through ctypes: what a run box needs of it and nothing else. Standard library only.

Lies beside ``cuda_child.py`` in the run box. Only ``libcuda`` is loaded, which comes with the driver: no run-time
library, no compiler. Every call's result is checked; a failure is a ``CudaError`` that says whether the context is
lost with it.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence

__all__ = ["LIBRARY", "STICKY", "CudaError", "Device"]

LIBRARY = "libcuda.so.1"

STICKY = frozenset({214, 219, 220, 226, 700, 702, 709, 710, 713, 714, 715, 716, 717, 718, 719, 721, 999})
"""Results after which every later call of the process fails: ECC, NVLink and containment errors, illegal address and
instruction, misalignment, assertion, launch failure and time-out, and the unknown error."""

_SCHED_SPIN, _LMEM_RESIZE_TO_MAX = 0x01, 0x10
_NON_BLOCKING = 1
_HOST_DEVICEMAP = 2
_L2_BYTES, _MAJOR, _MINOR, _PAGEABLE = 38, 75, 76, 88
_DYNAMIC_SHARED = 8
_LIMIT_PRINTF, _LIMIT_PERSISTING_L2 = 1, 6
_PRINTF_BYTES = 64 << 10
_DEFAULT_SHARED = 48 << 10
_MAX_PARAMETERS = 256

_P, _U, _S = ctypes.c_void_p, ctypes.c_uint, ctypes.c_size_t
_DP = ctypes.c_uint64
_SIGNATURES: dict[str, list[object]] = {
    "cuInit": [_U],
    "cuDriverGetVersion": [_P],
    "cuDeviceGet": [_P, ctypes.c_int],
    "cuDeviceGetName": [_P, ctypes.c_int, ctypes.c_int],
    "cuDeviceGetAttribute": [_P, ctypes.c_int, ctypes.c_int],
    "cuDevicePrimaryCtxSetFlags_v2": [ctypes.c_int, _U],
    "cuDevicePrimaryCtxRetain": [_P, ctypes.c_int],
    "cuCtxSetCurrent": [_P],
    "cuCtxSynchronize": [],
    "cuCtxSetLimit": [ctypes.c_int, _S],
    "cuCtxResetPersistingL2Cache": [],
    "cuModuleLoadData": [_P, _P],
    "cuModuleUnload": [_P],
    "cuModuleGetFunction": [_P, _P, ctypes.c_char_p],
    "cuFuncGetParamInfo": [_P, _S, _P, _P],
    "cuFuncSetAttribute": [_P, ctypes.c_int, ctypes.c_int],
    "cuLaunchKernel": [_P, _U, _U, _U, _U, _U, _U, _U, _P, _P, _P],
    "cuMemGetInfo_v2": [_P, _P],
    "cuMemAlloc_v2": [_P, _S],
    "cuMemFree_v2": [_DP],
    "cuMemcpyHtoD_v2": [_DP, _P, _S],
    "cuMemcpyDtoH_v2": [_P, _DP, _S],
    "cuMemsetD8_v2": [_DP, ctypes.c_ubyte, _S],
    "cuMemsetD32Async": [_DP, _U, _S, _P],
    "cuMemHostAlloc": [_P, _S, _U],
    "cuMemHostGetDevicePointer_v2": [_P, _P, _U],
    "cuStreamCreate": [_P, _U],
    "cuStreamSynchronize": [_P],
    "cuStreamWaitValue32_v2": [_P, _DP, ctypes.c_uint32, _U],
    "cuEventCreate": [_P, _U],
    "cuEventRecord": [_P, _P],
    "cuEventElapsedTime": [_P, _P, _P],
    "cuGetErrorName": [ctypes.c_int, _P],
    "cuGetErrorString": [ctypes.c_int, _P],
}


class CudaError(Exception):
    """A driver call that did not succeed."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code

    @property
    def sticky(self) -> bool:
        """Whether the process can do nothing more with the device."""
        return self.code in STICKY


class Device:
    """The first visible device, its primary context and one stream. Raises CudaError or OSError when made."""

    def __init__(self, library: str = LIBRARY) -> None:
        # A kernel that is loaded when it is first started may wait for the device, which waits for the shield.
        os.environ["CUDA_MODULE_LOADING"] = "EAGER"
        self._cuda = ctypes.CDLL(library)
        for name, arguments in _SIGNATURES.items():
            function = getattr(self._cuda, name)
            function.argtypes, function.restype = arguments, ctypes.c_int
        self.do("cuInit", 0)
        handle = ctypes.c_int()
        self.do("cuDeviceGet", ctypes.byref(handle), 0)
        self._handle = handle.value
        # Waiting threads spin: waking a sleeping one costs tens of microseconds of the outer clock. Local memory that
        # has once been made for a kernel stays: making it waits for the device.
        self.do("cuDevicePrimaryCtxSetFlags_v2", self._handle, _SCHED_SPIN | _LMEM_RESIZE_TO_MAX)
        context = self._made("cuDevicePrimaryCtxRetain", self._handle)
        self.do("cuCtxSetCurrent", context)
        for limit, size in ((_LIMIT_PRINTF, _PRINTF_BYTES), (_LIMIT_PERSISTING_L2, 0)):
            # Older devices have no persisting part of the cache and say so; there is nothing to take away then.
            self._cuda.cuCtxSetLimit(limit, size)
        self.l2_bytes = self.attribute(_L2_BYTES)
        self.capability = (self.attribute(_MAJOR), self.attribute(_MINOR))
        self.sees_host = bool(self.attribute(_PAGEABLE))
        self.stream = self._made("cuStreamCreate", _NON_BLOCKING)

    def do(self, name: str, *arguments: object) -> None:
        """Call the driver. Raises CudaError."""
        code = getattr(self._cuda, name)(*arguments)
        if code:
            raise CudaError(code, f"{name}: {self._text('cuGetErrorName', code)} ({code})")

    def _text(self, name: str, code: int) -> str:
        found = ctypes.c_char_p()
        getattr(self._cuda, name)(code, ctypes.byref(found))
        return (found.value or b"unknown error").decode("ascii", "replace")

    def _made(self, name: str, *arguments: object) -> int:
        handle = ctypes.c_void_p()
        self.do(name, ctypes.byref(handle), *arguments)
        return handle.value or 0

    def attribute(self, number: int) -> int:
        """A device attribute by its number."""
        value = ctypes.c_int()
        self.do("cuDeviceGetAttribute", ctypes.byref(value), number, self._handle)
        return value.value

    # Memory.

    def free_bytes(self) -> int:
        """Device memory that can still be had."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.do("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value

    def allocate(self, size: int) -> int:
        """Device memory; its address is a multiple of 256."""
        address = ctypes.c_uint64()
        self.do("cuMemAlloc_v2", ctypes.byref(address), size)
        return address.value

    def free(self, address: int, size: int) -> None:
        """Overwrite memory with zeros and give it back."""
        self.fill(address, 0, size)
        self.do("cuCtxSynchronize")
        self.do("cuMemFree_v2", address)

    def fill(self, address: int, byte: int, size: int) -> None:
        """Fill device memory with one byte."""
        if size:
            self.do("cuMemsetD8_v2", address, byte, size)

    def upload(self, address: int, host: int, size: int) -> None:
        """Copy from host memory at an address."""
        if size:
            self.do("cuMemcpyHtoD_v2", address, host, size)

    def download(self, host: int, address: int, size: int) -> None:
        """Copy to host memory at an address."""
        if size:
            self.do("cuMemcpyDtoH_v2", host, address, size)

    def pinned(self, size: int) -> tuple[int, int]:
        """Host memory that the device can read: its address for the host and for the device."""
        host = self._made("cuMemHostAlloc", size, _HOST_DEVICEMAP)
        address = ctypes.c_uint64()
        self.do("cuMemHostGetDevicePointer_v2", ctypes.byref(address), host, 0)
        return host, address.value

    # Code.

    def module(self, image: bytes) -> int:
        """Load a cubin or PTX text."""
        return self._made("cuModuleLoadData", ctypes.c_char_p(image))

    def function(self, module: int, name: str) -> int:
        """A kernel of a module by its symbol."""
        return self._made("cuModuleGetFunction", module, name.encode())

    def parameters(self, function: int) -> list[int]:
        """Bytes of each parameter of a kernel (drivers from 12.4 tell)."""
        sizes: list[int] = []
        offset, size = ctypes.c_size_t(), ctypes.c_size_t()
        # The driver tells the end of the list by refusing an index.
        while len(sizes) < _MAX_PARAMETERS and not self._cuda.cuFuncGetParamInfo(
            function, len(sizes), ctypes.byref(offset), ctypes.byref(size)
        ):
            sizes.append(size.value)
        return sizes

    def allow_shared(self, function: int, size: int) -> None:
        """Let a kernel use this much dynamic shared memory, where it is more than every kernel may."""
        if size > _DEFAULT_SHARED:
            self.do("cuFuncSetAttribute", function, _DYNAMIC_SHARED, size)

    def launch(self, function: int, grid: Sequence[int], block: Sequence[int], shared: int, pointers: object) -> None:
        """Put a kernel into the stream; ``pointers`` is an array of addresses of its arguments."""
        self.do("cuLaunchKernel", function, *grid, *block, shared, self.stream, pointers, None)

    # Time.

    def event(self) -> int:
        """An event that keeps time."""
        return self._made("cuEventCreate", 0)

    def record(self, event: int) -> None:
        """Put an event into the stream."""
        self.do("cuEventRecord", event, self.stream)

    def between_ns(self, start: int, stop: int) -> int:
        """Device time between two events that have passed, in nanoseconds, at least 1."""
        took = ctypes.c_float()
        self.do("cuEventElapsedTime", ctypes.byref(took), start, stop)
        return max(1, round(took.value * 1e6))

    def flush(self, buffer: int, size: int) -> None:
        """Write a buffer in the stream, so that nothing else is left in the L2 cache."""
        self.do("cuMemsetD32Async", buffer, 0, size // 4, self.stream)

    def settle(self) -> None:
        """Wait for everything, and let no line of the L2 cache stay because somebody asked for it."""
        self.do("cuCtxSynchronize")
        # Not there on devices without persisting lines.
        self._cuda.cuCtxResetPersistingL2Cache()

    def finish(self) -> None:
        """Wait for the stream. Raises CudaError with whatever a kernel did."""
        self.do("cuStreamSynchronize", self.stream)
