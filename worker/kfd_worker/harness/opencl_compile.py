"""Builds a device-form kernel with an OpenCL driver and checks it against its launch plan. Runs in the build box.

Started as ``python -I -S opencl_compile.py ORDER`` with ``opencl_api.py`` beside it; ORDER is JSON::

    {"loader": path, "device": "cpu", "source": path or "spirv": path, "options": text,
     "launches": [{"kernel": name in the program, "shown": name, "line": n, "arguments": [[kind, what], ...]}, ...],
     "give": "binary" or "source"}

Assembly is refused for a processor, where it could ask the system for threads beside the kernel: device code has no use
for that, and the judge's books count on it.

Messages go to standard error, in clang's form, with the source called 1 (``1:LINE:COLUMN: error: ...``). Standard
output is one line of JSON with facts and then the payload: the driver's binary, or the source or SPIR-V as it came.
With the order ``{"loader", "device", "test": true}`` a small kernel is built and really run; standard output is facts.
The exit code is 0, 1 for a source that is wrong, or 3 when there is no device to build for.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import struct
import sys
from typing import Any

try:
    from kfd_worker.harness import opencl_api
except ImportError:  # in the box the files lie beside each other and nothing is installed
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import opencl_api  # type: ignore[import-not-found,no-redef]

__all__ = ["BAD_SOURCE", "NO_DEVICE", "assembly_line", "disagreement", "has_assembly"]

BAD_SOURCE, NO_DEVICE = 1, 3

_WIDTHS = {
    "float32": ("float",),
    "float64": ("double",),
    "int32": ("int", "uint", "int32_t", "uint32_t"),
    "int64": ("long", "ulong", "int64_t", "uint64_t", "size_t", "ptrdiff_t", "intptr_t"),
    "uint8": ("uchar", "char", "uint8_t"),
    "bool": ("uchar", "char", "bool", "uint8_t"),
}
_BYTES = {"float32": 4, "float64": 8, "int32": 4, "int64": 8, "uint8": 1, "bool": 1, "float16": 2, "bfloat16": 2}
_TEST = b"kernel void test(global const int *x, global int *y, long n)\n" \
        b"{ size_t i = get_global_id(0); if (i < n) y[i] = 3 * x[i]; }\n"  # fmt: skip


def disagreement(kind: str, what: str, space: str, declared: str) -> bool:
    """Whether a launch's argument cannot be what a kernel declares.

    ``kind`` and ``what`` are the launch's (``pointer`` and an element dtype, ``local``, ``value`` and a dtype);
    ``space`` and ``declared`` the kernel's address space and C type (``private`` and ``long``).
    """
    if kind == "pointer":
        return space not in ("global", "constant")
    if kind == "local":
        return space != "local"
    if space != "private" or "*" in declared:
        return True
    # A type of the kernel's own is left to the driver, which compares sizes.
    known = {name for names in _WIDTHS.values() for name in names}
    return declared in known and declared not in _WIDTHS.get(what, ())


_ASSEMBLY = ("asm", "__asm", "__asm__")
_NO_ASSEMBLY = " ".join(f"-D{word}=kfd_takes_no_assembly" for word in _ASSEMBLY)
"""For what pastes the word together, which no look at the text finds; a macro can only be undone by naming it."""
_SPLICE = re.compile(r"(?:\\|\?\?/)[ \t]*\r?\n")
_ASSEMBLY_WORD = re.compile(r"\b(?:asm|__asm|__asm__)\b")
_NOT_CODE = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)|\"(?:[^\"\\\n]|\\.)*\"?|'(?:[^'\\\n]|\\.)*'?", re.S)
_POP_MACRO = re.compile(r"\b(?:push|pop)_macro\b")
_SPIRV_MAGIC = 0x07230203
_SPIRV_HEADER = 20
_SPIRV_ASSEMBLY = frozenset((5609, 5610, 5611))
"""OpAsmTargetINTEL, OpAsmINTEL, OpAsmCallINTEL (SPV_INTEL_inline_assembly)."""


def assembly_line(source: str) -> int:
    """The 1-based line of a source in which assembly, or what could uncover it, is written; 0 when there is none."""

    def blank(match: re.Match[str]) -> str:
        return " " + "\n" * match[0].count("\n")

    # Spliced lines are one to the compiler; a mark keeps the count of lines.
    text = _SPLICE.sub("\x00", source)
    code = _NOT_CODE.sub(blank, text)
    bare = code.replace("\x00", "")
    if not _ASSEMBLY_WORD.search(bare) and not _POP_MACRO.search(bare):
        return 0
    for number, line in enumerate(code.split("\n"), start=1):
        joined = line.replace("\x00", "")
        if _ASSEMBLY_WORD.search(joined) or _POP_MACRO.search(joined):
            return number + code[: _start_of(code, number)].count("\x00")
    return 1


def _start_of(text: str, number: int) -> int:
    """Offset at which a 1-based line starts."""
    at = 0
    for _ in range(number - 1):
        at = text.index("\n", at) + 1
    return at


def has_assembly(spirv: bytes) -> bool:
    """Whether a SPIR-V module holds assembly; one that cannot be walked counts as one that does."""
    if len(spirv) < _SPIRV_HEADER or len(spirv) % 4 or struct.unpack_from("<I", spirv)[0] != _SPIRV_MAGIC:
        return True
    at = _SPIRV_HEADER
    while at < len(spirv):
        (word,) = struct.unpack_from("<I", spirv, at)
        if word >> 16 == 0 or word & 0xFFFF in _SPIRV_ASSEMBLY:
            return True
        at += 4 * (word >> 16)
    return at != len(spirv)


def _refused(cl: opencl_api.OpenCL, kernel: int, index: int, kind: str, what: str) -> str:
    """Why the driver does not take an argument, empty when it does: SPIR-V does not say what a kernel declares."""
    try:
        if kind == "pointer":
            cl.set_pointer(kernel, index, 0)
        elif kind == "local":
            cl.set_local(kernel, index, 64)
        else:
            # Not zero: a null handle passes for a buffer.
            size = _BYTES.get(what, 8)
            cl.set_value(kernel, index, (ctypes.c_ubyte * size)(*[1] * size))
    except opencl_api.OpenCLError as error:
        return str(error)
    return ""


def _complain(line: int, text: str) -> None:
    sys.stderr.write(f"1:{max(line, 1)}:1: error: {text}\n")


def _check(cl: opencl_api.OpenCL, program: int, launches: list[dict[str, Any]]) -> bool:
    """Compare every launch with the kernel it names; complain about each difference."""
    names = cl.kernel_names(program)
    good = True
    for launch in launches:
        shown, line = launch["shown"], launch["line"]
        if launch["kernel"] not in names:
            known = ", ".join(names[:16]) or "none"
            _complain(line, f"the launch plan starts `{shown}`, which is no kernel here; there are: {known}")
            good = False
            continue
        kernel = cl.kernel(program, launch["kernel"])
        given, count = launch["arguments"], cl.argument_count(kernel)
        if len(given) != count:
            _complain(line, f"the launch gives `{shown}` {len(given)} arguments; the kernel takes {count}")
            good = False
            continue
        for index, (kind, what) in enumerate(given):
            told = cl.argument(kernel, index)
            refused = "" if told is not None else _refused(cl, kernel, index, kind, what)
            if refused:
                given_as = f"{kind} ({what or 'bytes'})"
                _complain(line, f"argument {index + 1} of `{shown}` cannot be the launch's {given_as}: {refused}")
                good = False
            if told is not None and disagreement(kind, what, told[0], told[1]):
                declared = " ".join(told)
                text = (
                    f"argument {index + 1} of `{shown}` is `{declared}`; the launch gives a {kind} ({what or 'bytes'})"
                )
                _complain(line, text)
                good = False
    return good


def _facts(cl: opencl_api.OpenCL, device: opencl_api.Device, program: int) -> dict[str, str]:
    """What the driver tells about each kernel: local and private memory, spills, the widest group."""
    asked = (
        ("local_bytes", opencl_api.GROUP_LOCAL_BYTES),
        ("private_bytes", opencl_api.GROUP_PRIVATE_BYTES),
        ("spill_bytes", opencl_api.GROUP_SPILL_BYTES),
        ("group_size", opencl_api.GROUP_SIZE),
    )
    facts: dict[str, str] = {}
    for name in cl.kernel_names(program)[:16]:
        kernel = cl.kernel(program, name)
        for what, key in asked:
            number = cl.group(kernel, device, key)
            if number is not None and number >> 63 == 0:
                facts[f"{name}.{what}"] = str(number)
    return facts


def _device_facts(device: opencl_api.Device) -> dict[str, str]:
    return {
        "platform": device.platform,
        "platform_version": device.platform_version,
        "device": device.name,
        "device_version": device.version,
        "driver": device.driver,
        "compute_units": str(device.compute_units),
        "il": device.il,
        "svm": str(device.svm),
    }


def _test(cl: opencl_api.OpenCL, device: opencl_api.Device) -> int:
    """Build and run a kernel; facts on standard output when its answer is right."""
    context = cl.context(device)
    queue = cl.queue(context, device)
    program = cl.from_source(context, _TEST)
    built, log = cl.build(program, device, "")
    if not built:
        sys.stderr.write(log)
        return BAD_SOURCE
    # Through the binary, because that is how run boxes get it.
    program = cl.from_binary(context, device, cl.binary(program))
    cl.build(program, device, "")
    kernel = cl.kernel(program, "test")
    values, results = (ctypes.c_int32 * 64)(*range(64)), (ctypes.c_int32 * 64)()
    size = ctypes.sizeof(values)
    buffers = [cl.buffer(context, size), cl.buffer(context, size)]
    cl.write(queue, buffers[0], ctypes.addressof(values), size)
    cl.set_buffer(kernel, 0, buffers[0])
    cl.set_buffer(kernel, 1, buffers[1])
    cl.set_value(kernel, 2, ctypes.c_int64(64))
    extents = ctypes.c_size_t * 3
    cl.launch(queue, kernel, extents(64, 1, 1), extents(8, 1, 1))
    cl.read(queue, buffers[1], ctypes.addressof(results), size)
    cl.finish(queue)
    if list(results) != [3 * value for value in values]:
        sys.stderr.write("the device computes wrong numbers\n")
        return BAD_SOURCE
    sys.stdout.write(json.dumps(_device_facts(device)))
    return 0


def _build(cl: opencl_api.OpenCL, device: opencl_api.Device, order: dict[str, Any]) -> int:
    context = cl.context(device)
    with open(order.get("spirv") or order["source"], "rb") as file:
        given = file.read()
    options = order["options"]
    if "spirv" in order:
        line = int(has_assembly(given))
    else:
        line = assembly_line(given.decode("utf-8", "replace")) if order["device"] == "cpu" else 0
        options = f"{options} {_NO_ASSEMBLY}" if order["device"] == "cpu" else options
    if line:
        _complain(line, "assembly is not taken: write it in the language of the kernel")
        return BAD_SOURCE
    program = cl.from_il(context, given) if "spirv" in order else cl.from_source(context, given)
    built, log = cl.build(program, device, options)
    sys.stderr.write(log + "\n")
    if not built or not _check(cl, program, order["launches"]):
        return BAD_SOURCE
    payload = cl.binary(program) if order["give"] == "binary" else given
    facts = {"kernels": " ".join(cl.kernel_names(program)[:64]), **_facts(cl, device, program)}
    sys.stdout.buffer.write(json.dumps(facts).encode() + b"\n" + payload)
    return 0


def main() -> int:
    """Follow the order; returns the exit code."""
    order = json.loads(sys.argv[1])
    try:
        cl = opencl_api.OpenCL(order["loader"])
        devices = cl.devices(order["device"])
    except (OSError, opencl_api.OpenCLError) as error:
        sys.stderr.write(f"no OpenCL: {error}\n")
        return NO_DEVICE
    if not devices:
        sys.stderr.write(f"no OpenCL device of kind {order['device']}\n")
        return NO_DEVICE
    try:
        return _test(cl, devices[0]) if order.get("test") else _build(cl, devices[0], order)
    except opencl_api.OpenCLError as error:
        _complain(1, str(error))
        return BAD_SOURCE


if __name__ == "__main__":
    sys.exit(main())
