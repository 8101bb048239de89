"""What a build tells about the compiled form: seen by a worker, used by the search to place a kernel.

A worker reads machine code, SPIR-V or the compiler's own numbers and sends one short fact; the daemon reads it back.
Each field says what was seen, what was surely not, and what the form cannot tell (None).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace

__all__ = ["SEEN", "Evidence", "from_facts", "to_fact"]

SEEN = "seen"
"""Name of the fact that holds what was seen."""

_MAX_FACTS = 256
_MAX_TEXT = 400
_SHARED_FACT = re.compile(r"\bshared=(\d{1,9})\b")
_BARRIER_FACT = re.compile(r"\bbarriers=(\d{1,9})\b")
_PAIR = re.compile(r"\b([a-z_]{1,20})=(\d{1,6})\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a compiled form shows; None where it cannot tell."""

    wide: bool | None = None
    """Loads or stores of several elements at once, which the author has written."""
    scalar: bool | None = None
    """No access of several elements at once, although the compiler looked for some by itself."""
    shared: bool | None = None
    """Shared or local memory is used."""
    ahead: bool | None = None
    """Asynchronous copies into it, or prefetches."""
    barriers: bool | None = None
    shuffles: bool | None = None
    """Operations of a sub-group or group."""
    global_atomics: bool | None = None
    kernels: int | None = None


def to_fact(evidence: Evidence) -> tuple[str, str]:
    """The fact that tells it: ``("seen", "wide=1 shared=0 kernels=2")``; what is not known is not there."""
    known = {one.name: getattr(evidence, one.name) for one in fields(evidence)}
    return SEEN, " ".join(f"{name}={int(value)}" for name, value in known.items() if value is not None)


def from_facts(facts: Iterable[tuple[str, str]]) -> Evidence:
    """Evidence in the facts of a build (``BuildResult.facts``).

    What was read from the compiled form (``to_fact``), else static shared memory and barriers of ``ptxas`` and local
    memory of OpenCL. No static shared memory proves nothing, as a launch may add dynamic; no barrier in any kernel
    proves that there is none. Facts come from strangers: whatever is no number is passed over.
    """
    shared: list[int] = []
    barriers: list[int] = []
    seen = Evidence()
    for number, (name, value) in enumerate(facts):
        if number >= _MAX_FACTS:
            break
        if name == SEEN:
            seen = _from_text(value[:_MAX_TEXT])
        elif name.startswith("ptxas."):
            shared += [int(amount) for amount in _SHARED_FACT.findall(value[:_MAX_TEXT])]
            barriers += [int(amount) for amount in _BARRIER_FACT.findall(value[:_MAX_TEXT])]
        elif name.endswith(".local_bytes") and value.isdecimal() and value.isascii():
            shared.append(int(value[:12]))
    if seen.shared is None and any(shared):
        seen = replace(seen, shared=True)
    if seen.barriers is None and barriers:
        seen = replace(seen, barriers=any(barriers))
    return seen


def _from_text(text: str) -> Evidence:
    found = dict(_PAIR.findall(text))
    names = [one.name for one in fields(Evidence) if one.name != "kernels"]
    kernels = int(found["kernels"]) if "kernels" in found else None
    return Evidence(kernels=kernels, **{name: found[name] != "0" for name in names if name in found})
