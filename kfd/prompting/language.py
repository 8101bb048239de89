"""Which language a kernel is written in, and how text in it is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath

from kfd.prompting import lexing, pylexing
from kfd.tasks.targets import TOOLCHAINS

__all__ = ["PYTHON", "C", "Language", "of_path", "of_toolchain"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """How to read a text; see ``kfd.prompting.lexing`` for what each reader promises."""

    name: str
    stream: Callable[[str], list[str]]
    code_only: Callable[[str], str]
    defines: Callable[[str, str], bool]
    open_end: Callable[[str], str]


C = Language(
    name="c",
    stream=lexing.stream,
    code_only=lexing.code_only,
    defines=lexing.defines,
    open_end=lexing.open_end,
)
"""C, C++ and what is built on them: OpenCL C, SYCL, CUDA."""

PYTHON = Language(
    name="python",
    stream=pylexing.stream,
    code_only=pylexing.code_only,
    defines=pylexing.defines,
    open_end=pylexing.open_end,
)
"""Triton kernels."""


def of_path(path: str) -> Language:
    """The language of a kernel file, by its suffix."""
    return PYTHON if PurePosixPath(path).suffix.lower() == ".py" else C


def of_toolchain(toolchain: str) -> Language:
    """The language that a toolchain compiles; C for one that is not known."""
    known = TOOLCHAINS.get(toolchain)
    return PYTHON if known is not None and ".py" in known.suffixes else C
