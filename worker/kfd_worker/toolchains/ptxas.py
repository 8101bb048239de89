"""What a kernel takes of a multiprocessor: read from ``ptxas -v`` and ``cuobjdump -res-usage``. Pure and bounded."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

__all__ = ["KernelUse", "as_facts", "parse_ptxas", "parse_res_usage", "short_text"]

_MAX_KERNELS = 32
_MAX_LINES = 4000

_ENTRY = re.compile(r"ptxas info\s{0,8}: Compiling entry function '(?P<name>[^']{1,1000})' for '(?P<target>\w{1,20})'")
_STACK = re.compile(
    r"\s{1,20}(?P<stack>\d{1,9}) bytes stack frame, (?P<stores>\d{1,9}) bytes spill stores, "
    r"(?P<loads>\d{1,9}) bytes spill loads"
)
_USED = re.compile(r"ptxas info\s{0,8}: Used (?P<rest>\d{1,4} registers.*)")
_AMOUNT = re.compile(r"(?P<amount>\d{1,9}) (?:bytes )?(?P<what>registers|barriers|smem|lmem|cmem\[\d{1,2}\])")
_FUNCTION = re.compile(r"\s{0,8}Function (?P<name>[^\s:]{1,1000}):\s*$")
_RESOURCES = re.compile(
    r"\s{0,8}REG:(?P<registers>\d{1,4}) STACK:(?P<stack>\d{1,9}) SHARED:(?P<shared>\d{1,9}) LOCAL:(?P<local>\d{1,9})"
    r" CONSTANT\[0\]:(?P<constant>\d{1,9})"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelUse:
    """Resources of one kernel; -1 where nobody said."""

    name: str
    registers: int = -1
    """For each thread."""
    spill_store_bytes: int = -1
    spill_load_bytes: int = -1
    """Of each thread, as instructions in the code, not as often as they run."""
    stack_bytes: int = -1
    """Local memory of each thread: arrays that are indexed at run time, and spills."""
    shared_bytes: int = -1
    """Static shared memory of a block; ``cuobjdump`` counts 1 KiB that the system keeps on top."""
    constant_bytes: int = -1
    barriers: int = -1


def parse_ptxas(text: str) -> tuple[KernelUse, ...]:
    """Kernels of ``nvcc -Xptxas -v`` in their order; the first 32."""
    found: list[KernelUse] = []
    for raw in text.split("\n", _MAX_LINES)[:_MAX_LINES]:
        entry = _ENTRY.match(raw)
        if entry:
            if len(found) == _MAX_KERNELS:
                break
            found.append(KernelUse(name=entry["name"]))
            continue
        if not found:
            continue
        stack = _STACK.match(raw)
        if stack:
            found[-1] = replace(
                found[-1],
                stack_bytes=int(stack["stack"]),
                spill_store_bytes=int(stack["stores"]),
                spill_load_bytes=int(stack["loads"]),
            )
            continue
        used = _USED.match(raw)
        if used:
            found[-1] = _used(found[-1], used["rest"])
    return tuple(found)


def _used(one: KernelUse, text: str) -> KernelUse:
    amounts = {match["what"]: int(match["amount"]) for match in _AMOUNT.finditer(text[:400])}
    constants = [amount for what, amount in amounts.items() if what.startswith("cmem")]
    return replace(
        one,
        registers=amounts.get("registers", -1),
        barriers=amounts.get("barriers", 0),
        shared_bytes=amounts.get("smem", 0),
        constant_bytes=sum(constants) if constants else -1,
    )


def parse_res_usage(text: str) -> tuple[KernelUse, ...]:
    """Kernels of ``cuobjdump -res-usage``; the first 32. Spills and barriers are not in it."""
    found: list[KernelUse] = []
    name = ""
    for raw in text.split("\n", _MAX_LINES)[:_MAX_LINES]:
        function = _FUNCTION.match(raw)
        if function:
            name = function["name"]
            continue
        resources = _RESOURCES.match(raw)
        if resources and name and len(found) < _MAX_KERNELS:
            found.append(
                KernelUse(
                    name=name,
                    registers=int(resources["registers"]),
                    stack_bytes=int(resources["stack"]) + int(resources["local"]),
                    shared_bytes=int(resources["shared"]),
                    constant_bytes=int(resources["constant"]),
                )
            )
            name = ""
    return tuple(found)


_FACTS: Mapping[str, str] = {
    "registers": "registers",
    "spill_store_bytes": "spill_stores",
    "spill_load_bytes": "spill_loads",
    "stack_bytes": "stack",
    "shared_bytes": "shared",
    "constant_bytes": "constant",
    "barriers": "barriers",
}


def as_facts(uses: tuple[KernelUse, ...]) -> tuple[tuple[str, str], ...]:
    """One fact a kernel: ``("ptxas.softmax", "registers=32 spill_stores=0 ...")``."""
    facts = []
    for one in uses:
        known = [f"{label}={getattr(one, field)}" for field, label in _FACTS.items() if getattr(one, field) >= 0]
        facts.append((f"ptxas.{one.name[:100]}", " ".join(known)))
    return tuple(facts)


def short_text(one: KernelUse) -> str:
    """A sentence for the prompt: what is taken, and what is wrong with it."""
    parts = [f"{one.registers} registers a thread"] if one.registers >= 0 else []
    if one.shared_bytes > 0:
        parts.append(f"{one.shared_bytes} bytes of static shared memory a block")
    spilled = max(0, one.spill_store_bytes) + max(0, one.spill_load_bytes)
    if spilled:
        parts.append(f"SPILLS: {spilled} bytes of stores and loads to local memory")
    elif one.stack_bytes > 0:
        parts.append(f"{one.stack_bytes} bytes of local memory a thread (an array indexed at run time)")
    return f"{one.name}: {', '.join(parts)}" if parts else f"{one.name}: nothing known"
