"""Further axes of the archive, by configuration: they split each cell of the paper's grid into niches.

Parents, gradients and hints go by the three axes of the grid; a further axis only keeps kernels apart that these do not
tell apart, so that neither displaces the other. Levels come from what a build told and from the kernel's own length.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum

from kfd.base.evidence import from_facts

__all__ = ["ExtraAxis", "extra_levels"]

_PLAIN_LENGTH = 1000
"""Characters that a kernel is compared with when the task has none of its own."""
_LENGTHS = (1.5, 3.0, 6.0)
_REGISTERS = (32, 64, 128)
_TOLD = re.compile(r"\bregisters=(\d{1,6})\b")
_MAX_FACTS = 256


class ExtraAxis(StrEnum):
    """An axis beside memory, algorithm and parallelism; levels from 0."""

    LENGTH = "length"
    """Characters over those of the task's own kernel: up to 1.5, up to 3, up to 6 times, more."""
    REGISTERS = "registers"
    """Registers of the neediest kernel as ``ptxas`` told: up to 32 (or not told), up to 64, up to 128, more."""
    VECTORS = "vectors"
    """On x86: 0 where the compiler made no vector access of memory (or this is not known), 1 where it made some."""


def extra_levels(
    axes: Sequence[ExtraAxis], *, length: int, initial_length: int, facts: Sequence[tuple[str, str]]
) -> tuple[int, ...]:
    """A kernel's level on each axis. Lengths are characters, 0 for a task without a kernel; ``facts``: of its build."""
    return tuple(_level(axis, length, initial_length, facts) for axis in axes)


def _level(axis: ExtraAxis, length: int, initial_length: int, facts: Sequence[tuple[str, str]]) -> int:
    match axis:
        case ExtraAxis.LENGTH:
            ratio = length / (initial_length or _PLAIN_LENGTH)
            return sum(ratio > bound for bound in _LENGTHS)
        case ExtraAxis.REGISTERS:
            told = [value[:400] for name, value in facts[:_MAX_FACTS] if name.startswith("ptxas.")]
            most = max((int(number) for value in told for number in _TOLD.findall(value)), default=0)
            return sum(most > bound for bound in _REGISTERS)
        case ExtraAxis.VECTORS:
            return int(from_facts(facts).scalar is False)
