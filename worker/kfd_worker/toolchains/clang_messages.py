"""Reading what clang says inside OpenCL drivers and SYCL's run-time compiler. Pure and bounded.

The form of a message is g++'s; what differs is the file: a driver calls the source 1 (or 2, ...), the run-time
compiler ``rtc_0.cpp``, and headers stand with the path they have in the box.
"""

from __future__ import annotations

import re

from kfd.base.work import Diagnostic
from kfd_worker.toolchains.gcc_messages import parse_messages

__all__ = ["errors_of", "parse_clang"]

_SOURCE = re.compile(r"^[ \t]*(?:[0-9]{1,3}|<source>|<stdin>|rtc_[0-9]{1,6}\.cpp)(?=:[0-9]+:[0-9]+: )", re.M)
_HEADER = re.compile(r"^[ \t]*/\S*/include/(?=\S+:[0-9]+:[0-9]+: )", re.M)


def parse_clang(text: str, *, box_path: str, kernel_path: str) -> tuple[Diagnostic, ...]:
    """Messages with the kernel file under its own name, errors kept before notes when there are too many."""
    # A function as the replacement: the path may hold what re.sub takes for a reference.
    text = _HEADER.sub("", _SOURCE.sub(lambda _: kernel_path, text))
    return parse_messages(text, box_path=box_path, kernel_path=kernel_path)


def errors_of(messages: tuple[Diagnostic, ...] | list[Diagnostic]) -> str:
    """The first error as ``file:line: text``, empty when there is none."""
    first = next((one for one in messages if "error" in one.severity), None)
    if first is None:
        return ""
    where = f"{first.file}:{first.line}: " if first.line else ""
    return f"{where}{first.text}"
