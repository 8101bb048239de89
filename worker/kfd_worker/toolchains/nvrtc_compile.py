"""CUDA device code through NVRTC, in a build box without nvcc. Standard library only; trusted with nothing.

``python -I -S nvrtc_compile.py LIBRARY ARCHITECTURE SOURCE NAME FLAG...``: the cubin comes out on standard output,
messages (which call the source NAME) on standard error. Exit codes: 0, 1 when the source does not compile, 126 when the
library cannot be used.
"""

from __future__ import annotations

import ctypes
import glob
import os
import sys

__all__ = ["main"]

_UNUSABLE = 126
_INTEGERS = """#pragma once
typedef signed char int8_t; typedef short int16_t; typedef int int32_t; typedef long int64_t;
typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned int uint32_t;
typedef unsigned long uint64_t; typedef unsigned long uintptr_t; typedef long intptr_t;
namespace std { using ::int8_t; using ::int16_t; using ::int32_t; using ::int64_t;
using ::uint8_t; using ::uint16_t; using ::uint32_t; using ::uint64_t; }
"""
_EMPTY = "#pragma once\n"
_PRELUDE = "kfd_prelude.h"
_NUMBERS = """#pragma once
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
"""
# NVRTC has no C library; device code asks for these by habit, and for the numbers without asking, as with nvcc.
_HEADERS = {
    _PRELUDE: _NUMBERS,
    "cstdint": _INTEGERS,
    "stdint.h": _INTEGERS,
    "cmath": _EMPTY,
    "math.h": _EMPTY,
    "cuda_runtime.h": _EMPTY,
    "cfloat": "#pragma once\n#define FLT_MAX 3.402823466e+38F\n#define FLT_EPSILON 1.192092896e-07F\n",
}


def _bytes_of(library: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    if getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)):
        return b""
    buffer = ctypes.create_string_buffer(size.value or 1)
    if getattr(library, f"nvrtcGet{what}")(program, buffer):
        return b""
    return buffer.raw[: size.value]


def main(arguments: list[str]) -> int:
    """Compile; the exit code."""
    name, architecture, path, shown, *flags = arguments
    try:
        # It looks for its other half by name alone, and in a folder of no search path does not find it.
        for half in glob.glob(os.path.join(os.path.dirname(name), "libnvrtc-builtins.so*")):
            ctypes.CDLL(half)
        library = ctypes.CDLL(name)
        with open(path, "rb") as file:
            source = file.read()
    except OSError as error:
        sys.stderr.write(f"nvrtc fatal   : {error}\n")
        return _UNUSABLE
    program = ctypes.c_void_p()
    texts = (ctypes.c_char_p * len(_HEADERS))(*(text.encode() for text in _HEADERS.values()))
    names = (ctypes.c_char_p * len(_HEADERS))(*(header.encode() for header in _HEADERS))
    made = library.nvrtcCreateProgram(ctypes.byref(program), source, shown.encode(), len(_HEADERS), texts, names)
    if made:
        sys.stderr.write(f"nvrtc fatal   : the program cannot be made ({made})\n")
        return _UNUSABLE
    options = [f"--gpu-architecture={architecture}", "--device-int128", f"--pre-include={_PRELUDE}", *flags]
    given = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    code = library.nvrtcCompileProgram(program, len(options), given)
    sys.stderr.write(_bytes_of(library, program, "ProgramLog").rstrip(b"\0").decode("utf-8", "replace"))
    if code:
        return 1
    sys.stdout.buffer.write(_bytes_of(library, program, "CUBIN"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
