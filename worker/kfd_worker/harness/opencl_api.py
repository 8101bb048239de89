"""The part of OpenCL that building and launching kernels takes, through ctypes and the ICD loader.

Standard library only: it lies beside ``opencl_compile.py`` in build boxes and beside ``opencl_child.py`` in run boxes.
Names and numbers are those of the OpenCL 3.0 specification and of ``cl.h``.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["ARGUMENT_SPACES", "Device", "OpenCL", "OpenCLError"]

_HANDLE = ctypes.c_void_p
_SIZE = ctypes.c_size_t
_UINT = ctypes.c_uint32
_INT = ctypes.c_int32
_BITS = ctypes.c_uint64
_ERROR = ctypes.POINTER(_INT)

Extents: TypeAlias = "ctypes.Array[ctypes.c_size_t]"
"""Three extents, made once and not for every launch."""

_SUCCESS = 0
_TYPES = {"cpu": 1 << 1, "gpu": 1 << 2}
_MAX_TEXT = 1 << 20

PLATFORM_NAME, PLATFORM_VERSION = 0x0902, 0x0901
DEVICE_NAME, DEVICE_VERSION, DRIVER_VERSION = 0x102B, 0x102F, 0x102D
DEVICE_COMPUTE_UNITS, DEVICE_GROUP_SIZE, DEVICE_LOCAL_BYTES = 0x1002, 0x1004, 0x1023
DEVICE_SVM, DEVICE_IL = 0x1053, 0x105B
SVM_SYSTEM = 1 << 2
KERNEL_NAME, KERNEL_ARGUMENTS = 0x1190, 0x1191
ARGUMENT_ADDRESS, ARGUMENT_TYPE, ARGUMENT_NAME = 0x1196, 0x1198, 0x119A
ARGUMENT_SPACES = {0x119B: "global", 0x119C: "local", 0x119D: "constant", 0x119E: "private"}
GROUP_SIZE, GROUP_LOCAL_BYTES, GROUP_PRIVATE_BYTES = 0x11B0, 0x11B2, 0x11B4
GROUP_SPILL_BYTES = 0x4109
"""CL_KERNEL_SPILL_MEM_SIZE_INTEL: only Intel's GPU driver tells."""
PROGRAM_KERNELS, PROGRAM_BINARY_SIZES, PROGRAM_BINARIES = 0x1168, 0x1165, 0x1166
BUILD_LOG = 0x1183
MEM_READ_WRITE = 1

_CODES = {
    -1: "DEVICE_NOT_FOUND",
    -4: "MEM_OBJECT_ALLOCATION_FAILURE",
    -5: "OUT_OF_RESOURCES",
    -6: "OUT_OF_HOST_MEMORY",
    -11: "BUILD_PROGRAM_FAILURE",
    -30: "INVALID_VALUE",
    -42: "INVALID_BINARY",
    -43: "INVALID_BUILD_OPTIONS",
    -45: "INVALID_PROGRAM_EXECUTABLE",
    -46: "INVALID_KERNEL_NAME",
    -49: "INVALID_ARG_INDEX",
    -50: "INVALID_ARG_VALUE",
    -51: "INVALID_ARG_SIZE",
    -52: "INVALID_KERNEL_ARGS",
    -54: "INVALID_WORK_GROUP_SIZE",
    -55: "INVALID_WORK_ITEM_SIZE",
    -61: "INVALID_BUFFER_SIZE",
    -1001: "PLATFORM_NOT_FOUND",
}


class OpenCLError(Exception):
    """A call failed; ``code`` is OpenCL's."""

    def __init__(self, what: str, code: int) -> None:
        super().__init__(f"{what}: {_CODES.get(code, 'error')} ({code})")
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One device and the platform that offers it."""

    handle: int
    platform: str
    platform_version: str
    name: str
    version: str
    driver: str
    compute_units: int
    group_size: int
    """Most work-items of a group."""
    local_bytes: int
    svm: int
    """CL_DEVICE_SVM_CAPABILITIES; with ``SVM_SYSTEM`` any host pointer can be given to a kernel."""
    il: str
    """Intermediate languages it takes, such as ``SPIR-V_1.4``; empty: none."""


class OpenCL:
    """The loader's functions. Raises OSError when there is no loader, OpenCLError for what fails."""

    def __init__(self, loader: str) -> None:
        self._lib = ctypes.CDLL(loader)
        for name, result, *arguments in _SIGNATURES:
            function = getattr(self._lib, name)
            function.restype, function.argtypes = result, arguments

    def _done(self, what: str, code: int) -> None:
        if code != _SUCCESS:
            raise OpenCLError(what, code)

    def _call(self, name: str, *arguments: object) -> None:
        self._done(name, getattr(self._lib, name)(*arguments))

    def _make(self, name: str, *arguments: object) -> int:
        """Call a function that returns a handle and tells its error through the last argument."""
        code = _INT(0)
        handle = getattr(self._lib, name)(*arguments, ctypes.byref(code))
        self._done(name, code.value)
        return int(handle)

    def _bytes(self, name: str, *key: object) -> bytes:
        size = _SIZE(0)
        self._call(name, *key, 0, None, ctypes.byref(size))
        data = ctypes.create_string_buffer(min(size.value, _MAX_TEXT))
        if size.value:
            self._call(name, *key, len(data), data, None)
        return data.raw

    def _text(self, name: str, *key: object) -> str:
        return self._bytes(name, *key).split(b"\0")[0].decode("utf-8", "replace").strip()

    def _number(self, name: str, *key: object) -> int:
        return int.from_bytes(self._bytes(name, *key)[:8], "little")

    # Devices.

    def devices(self, kind: str) -> list[Device]:
        """All devices of a kind (``cpu``, ``gpu``), in the loader's order."""
        count = _UINT(0)
        platforms = (_HANDLE * 16)()
        code = self._lib.clGetPlatformIDs(16, platforms, ctypes.byref(count))
        if code == -1001:
            return []
        self._done("clGetPlatformIDs", code)
        found = []
        for platform in platforms[: min(count.value, 16)]:
            handles = (_HANDLE * 16)()
            code = self._lib.clGetDeviceIDs(platform, _TYPES[kind], 16, handles, ctypes.byref(count))
            if code == _SUCCESS:
                found += [self._device(platform, handle) for handle in handles[: min(count.value, 16)]]
        return found

    def _device(self, platform: int | None, handle: int | None) -> Device:
        def text(key: int) -> str:
            return self._text("clGetDeviceInfo", handle, key)

        def number(key: int) -> int:
            try:
                return self._number("clGetDeviceInfo", handle, key)
            except OpenCLError:
                # Older platforms do not know every question.
                return 0

        try:
            il = text(DEVICE_IL)
        except OpenCLError:
            il = ""
        return Device(
            handle=handle or 0,
            platform=self._text("clGetPlatformInfo", platform, PLATFORM_NAME),
            platform_version=self._text("clGetPlatformInfo", platform, PLATFORM_VERSION),
            name=text(DEVICE_NAME),
            version=text(DEVICE_VERSION),
            driver=text(DRIVER_VERSION),
            compute_units=number(DEVICE_COMPUTE_UNITS),
            group_size=number(DEVICE_GROUP_SIZE),
            local_bytes=number(DEVICE_LOCAL_BYTES),
            svm=number(DEVICE_SVM),
            il=il,
        )

    def context(self, device: Device) -> int:
        """A context of one device."""
        return self._make("clCreateContext", None, 1, (_HANDLE * 1)(device.handle), None, None)

    def queue(self, context: int, device: Device) -> int:
        """An in-order queue."""
        return self._make("clCreateCommandQueueWithProperties", context, device.handle, None)

    # Programs and kernels.

    def from_source(self, context: int, text: bytes) -> int:
        """A program of OpenCL C, not yet built."""
        strings, sizes = (ctypes.c_char_p * 1)(text), (_SIZE * 1)(len(text))
        return self._make("clCreateProgramWithSource", context, 1, strings, sizes)

    def from_binary(self, context: int, device: Device, data: bytes) -> int:
        """A program from what ``binary`` gave."""
        status = _INT(0)
        handles, sizes, binaries = (_HANDLE * 1)(device.handle), (_SIZE * 1)(len(data)), (ctypes.c_char_p * 1)(data)
        return self._make(
            "clCreateProgramWithBinary", context, 1, handles, sizes, binaries, ctypes.cast(ctypes.byref(status), _ERROR)
        )

    def from_il(self, context: int, data: bytes) -> int:
        """A program of SPIR-V."""
        return self._make("clCreateProgramWithIL", context, data, len(data))

    def build(self, program: int, device: Device, options: str) -> tuple[bool, str]:
        """Whether the program could be built, and what the compiler said. Raises OpenCLError for bad options."""
        code = self._lib.clBuildProgram(program, 1, (_HANDLE * 1)(device.handle), options.encode(), None, None)
        log = self._text("clGetProgramBuildInfo", program, device.handle, BUILD_LOG)
        if code not in (_SUCCESS, -11):
            raise OpenCLError("clBuildProgram", code)
        return code == _SUCCESS, log

    def kernel_names(self, program: int) -> list[str]:
        """Kernels of a built program."""
        return [name for name in self._text("clGetProgramInfo", program, PROGRAM_KERNELS).split(";") if name]

    def binary(self, program: int) -> bytes:
        """The built program as bytes that this driver on this machine takes back."""
        size = self._number("clGetProgramInfo", program, PROGRAM_BINARY_SIZES)
        data = ctypes.create_string_buffer(size)
        pointers = (ctypes.c_void_p * 1)(ctypes.addressof(data))
        self._call("clGetProgramInfo", program, PROGRAM_BINARIES, ctypes.sizeof(pointers), pointers, None)
        return data.raw

    def kernel(self, program: int, name: str) -> int:
        """A kernel object with arguments of its own."""
        return self._make("clCreateKernel", program, name.encode())

    def argument_count(self, kernel: int) -> int:
        """Arguments that a kernel takes."""
        return self._number("clGetKernelInfo", kernel, KERNEL_ARGUMENTS)

    def argument(self, kernel: int, index: int) -> tuple[str, str, str] | None:
        """Address space, type and name of an argument; None when the program does not say."""
        try:
            space = self._number("clGetKernelArgInfo", kernel, index, ARGUMENT_ADDRESS)
            kind, name = (
                self._text("clGetKernelArgInfo", kernel, index, key) for key in (ARGUMENT_TYPE, ARGUMENT_NAME)
            )
        except OpenCLError:
            return None
        return ARGUMENT_SPACES.get(space, ""), kind, name

    def group(self, kernel: int, device: Device, key: int) -> int | None:
        """A number that the driver tells about a kernel on a device; None when it does not."""
        try:
            return self._number("clGetKernelWorkGroupInfo", kernel, device.handle, key)
        except OpenCLError:
            return None

    # Launching.

    def set_value(self, kernel: int, index: int, value: object) -> None:
        """Give an argument by value (a ctypes number)."""
        self._call("clSetKernelArg", kernel, index, ctypes.sizeof(value), ctypes.byref(value))  # type: ignore[arg-type]

    def set_local(self, kernel: int, index: int, size: int) -> None:
        """Give an argument ``size`` bytes of local memory."""
        self._call("clSetKernelArg", kernel, index, size, None)

    def set_pointer(self, kernel: int, index: int, address: int) -> None:
        """Give an argument a host pointer, on a device with ``SVM_SYSTEM``."""
        self._call("clSetKernelArgSVMPointer", kernel, index, address)

    def set_buffer(self, kernel: int, index: int, buffer: int) -> None:
        """Give an argument a buffer of the device."""
        self._call("clSetKernelArg", kernel, index, ctypes.sizeof(_HANDLE), ctypes.byref(_HANDLE(buffer)))

    def buffer(self, context: int, size: int) -> int:
        """A buffer on the device."""
        return self._make("clCreateBuffer", context, MEM_READ_WRITE, size, None)

    def release_buffer(self, buffer: int) -> None:
        """Give a buffer back."""
        self._call("clReleaseMemObject", buffer)

    def release_kernel(self, kernel: int) -> None:
        """Give a kernel object back."""
        self._call("clReleaseKernel", kernel)

    def write(self, queue: int, buffer: int, address: int, size: int) -> None:
        """Copy host memory into a buffer, in the queue's order."""
        self._call("clEnqueueWriteBuffer", queue, buffer, 0, 0, size, address, 0, None, None)

    def read(self, queue: int, buffer: int, address: int, size: int) -> None:
        """Copy a buffer into host memory, in the queue's order."""
        self._call("clEnqueueReadBuffer", queue, buffer, 0, 0, size, address, 0, None, None)

    def launch(self, queue: int, kernel: int, total: Extents, group: Extents) -> None:
        """Start a kernel over ``total`` work-items in groups of ``group``."""
        self._call("clEnqueueNDRangeKernel", queue, kernel, 3, None, total, group, 0, None, None)

    def finish(self, queue: int) -> None:
        """Wait for everything in the queue."""
        self._call("clFinish", queue)


_INFO = (_UINT, _SIZE, _HANDLE, ctypes.POINTER(_SIZE))
_EVENTS = (_UINT, _HANDLE, _HANDLE)
_SIGNATURES: tuple[tuple[str, type, *tuple[object, ...]], ...] = (
    ("clGetPlatformIDs", _INT, _UINT, _HANDLE, ctypes.POINTER(_UINT)),
    ("clGetDeviceIDs", _INT, _HANDLE, _BITS, _UINT, _HANDLE, ctypes.POINTER(_UINT)),
    ("clGetPlatformInfo", _INT, _HANDLE, *_INFO),
    ("clGetDeviceInfo", _INT, _HANDLE, *_INFO),
    ("clCreateContext", _HANDLE, _HANDLE, _UINT, _HANDLE, _HANDLE, _HANDLE, _ERROR),
    ("clCreateCommandQueueWithProperties", _HANDLE, _HANDLE, _HANDLE, _HANDLE, _ERROR),
    ("clCreateProgramWithSource", _HANDLE, _HANDLE, _UINT, _HANDLE, _HANDLE, _ERROR),
    ("clCreateProgramWithBinary", _HANDLE, _HANDLE, _UINT, _HANDLE, _HANDLE, _HANDLE, _ERROR, _ERROR),
    ("clCreateProgramWithIL", _HANDLE, _HANDLE, ctypes.c_char_p, _SIZE, _ERROR),
    ("clBuildProgram", _INT, _HANDLE, _UINT, _HANDLE, ctypes.c_char_p, _HANDLE, _HANDLE),
    ("clGetProgramBuildInfo", _INT, _HANDLE, _HANDLE, *_INFO),
    ("clGetProgramInfo", _INT, _HANDLE, *_INFO),
    ("clCreateKernel", _HANDLE, _HANDLE, ctypes.c_char_p, _ERROR),
    ("clReleaseKernel", _INT, _HANDLE),
    ("clGetKernelInfo", _INT, _HANDLE, *_INFO),
    ("clGetKernelArgInfo", _INT, _HANDLE, _UINT, *_INFO),
    ("clGetKernelWorkGroupInfo", _INT, _HANDLE, _HANDLE, *_INFO),
    ("clSetKernelArg", _INT, _HANDLE, _UINT, _SIZE, _HANDLE),
    ("clSetKernelArgSVMPointer", _INT, _HANDLE, _UINT, _HANDLE),
    ("clCreateBuffer", _HANDLE, _HANDLE, _BITS, _SIZE, _HANDLE, _ERROR),
    ("clReleaseMemObject", _INT, _HANDLE),
    ("clEnqueueWriteBuffer", _INT, _HANDLE, _HANDLE, _UINT, _SIZE, _SIZE, _HANDLE, *_EVENTS),
    ("clEnqueueReadBuffer", _INT, _HANDLE, _HANDLE, _UINT, _SIZE, _SIZE, _HANDLE, *_EVENTS),
    ("clEnqueueNDRangeKernel", _INT, _HANDLE, _HANDLE, _UINT, _HANDLE, _HANDLE, _HANDLE, *_EVENTS),
    ("clFinish", _INT, _HANDLE),
)
