"""What limits a kernel, in one sentence, from the evidence of its build and its measurement. Pure.

A model that is told one thing that the numbers show goes for it; a list of everything is advice about nothing. The
first rule that fits is named. What the numbers do not show is not said.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import median

from kfd.base.evidence import from_facts
from kfd.base.roofline import roofline_share
from kfd.base.work import RunResult

__all__ = ["bottleneck", "device_facts", "fact_lines"]

_NEAR_ROOF = 0.6
"""Share of a plain copy's speed from which memory traffic is what limits."""
_FAR_CASE = 0.6
"""A case whose speedup is below this share of the mean is what limits."""
_SPILLS = re.compile(r"\bspill_(?:stores|loads)=(\d{1,9})\b")
_TOLD = re.compile(r"ptxas\.|triton\.|.+\.(?:local_bytes|private_bytes|spill_bytes|vector_width)$")
_DEVICE = {
    "device": "device",
    "device.cores": "cores",
    "threads": "threads for the kernel",
    "device.vectors": "vector instructions",
    "device.caches": "caches",
    "device.architecture": "architecture",
    "device.memory_bytes": "bytes of memory",
    "device.compute_units": "compute units",
    "device.max_sm_mhz": "highest clock in MHz",
    "device.driver": "driver",
}
"""Facts of a result's environment that help to write a kernel, and how they are said."""

Facts = Sequence[tuple[str, str]]


def fact_lines(facts: Facts) -> tuple[str, ...]:
    """What the compiler told of each kernel, a line each: registers, spills, memory, vector width."""
    return tuple(f"{name}: {value}" for name, value in facts if value and _TOLD.match(name))


def device_facts(environment: Facts) -> tuple[tuple[str, str], ...]:
    """The machine, from a result's environment; in a fixed order."""
    known = dict(environment)
    return tuple((words, known[name]) for name, words in _DEVICE.items() if known.get(name))


def bottleneck(facts: Facts, result: RunResult | None) -> str:
    """What limits the kernel; empty when nothing is known.

    ``facts`` are those of its build. In this order: spilled registers, a case far behind the others, memory traffic
    near what a plain copy reaches, scalar code where vector code was possible, and else how far it is from the copy.
    """
    spilled = _spilled(facts)
    if spilled:
        return f"registers: {spilled} bytes are spilled to memory; hold fewer values at once"
    if result is None:
        return ""
    for speed in result.speedups[:1]:
        if len(result.roofs) > 1 and speed.worst_value < _FAR_CASE * speed.value:
            return (
                f"the case {speed.worst_case}: it gains {speed.worst_value:.2f}x where the mean is {speed.value:.2f}x; "
                "the mean rises most by helping it"
            )
    share = roofline_share(result)
    if share is None:
        return ""
    traffic = f"{_traffic(result)}, {share:.0%} of a plain copy's speed"
    if share >= _NEAR_ROOF:
        return f"memory traffic: {traffic}; only less traffic helps much"
    if from_facts(facts).scalar:
        return f"scalar code: the compiler made no vector access of memory; {traffic}"
    return f"not memory traffic alone: {traffic}; look for arithmetic, dependences, repeated reads and idle lanes"


def _spilled(facts: Facts) -> int:
    total = 0
    for name, value in facts:
        if name.startswith("ptxas."):
            total += sum(int(amount) for amount in _SPILLS.findall(value[:400]))
        elif name.endswith(".spill_bytes") and value.isascii() and value.isdecimal():
            total += int(value[:9])
    return total


def _traffic(result: RunResult) -> str:
    """Rate at which the largest timed case moves its inputs and outputs, each counted once."""
    times = {one.case: one.candidate_ns for one in result.comparisons if one.candidate_ns}
    largest = max((roof for roof in result.roofs if roof.case in times), key=lambda roof: roof.moved_bytes)
    took = median(times[largest.case])
    return f"case {largest.case} moves its {largest.moved_bytes / 1e6:.3g} MB at {largest.moved_bytes / took:.3g} GB/s"
