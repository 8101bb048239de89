"""``perf stat`` on the CPU: instructions for each cycle, misses, and where a kernel's pipeline waits. Pure.

``perf stat -x ';'`` prints ``value;unit;event;time running;share running;...`` to standard error; an event that the
machine cannot count says ``<not supported>`` or ``<not counted>`` and is left out. Often (virtual machines, hardened
systems) there is none at all: then there is no profile.
"""

from __future__ import annotations

from collections.abc import Mapping

from kfd_worker.profilers.evidence import Bottleneck, Evidence, NoProfile, number, text_of

__all__ = ["EVENTS", "command", "profile"]

EVENTS = ("cycles", "instructions", "cache-references", "cache-misses", "branches", "branch-misses")
_MAX_LINES = 200
_BUSY_IPC = 2.0
_WAITING_IPC = 0.8
_MISS_SHARE = 0.2
_LINE_BYTES = 64


def command(program: tuple[str, ...], *, perf: str = "perf") -> tuple[str, ...]:
    """The command that counts a program's events in user mode, which needs the least rights."""
    return (perf, "stat", "-x", ";", "-e", ",".join(f"{event}:u" for event in EVENTS), "--", *program)


def profile(text: str) -> Evidence:
    """Evidence from the counters. Raises NoProfile when cycles and instructions were not counted."""
    counts = _counts(text)
    cycles, instructions = counts.get("cycles", 0.0), counts.get("instructions", 0.0)
    if cycles <= 0 or instructions <= 0:
        raise NoProfile("perf: this machine counts no cycles and instructions")
    ipc = instructions / cycles
    misses = counts.get("cache-misses", -1.0)
    share = _share(misses, counts.get("cache-references", -1.0))
    wrong = _share(counts.get("branch-misses", -1.0), counts.get("branches", -1.0))
    name = _bottleneck(ipc, share)
    facts = [("perf.ipc", f"{ipc:.2f}"), ("perf.instructions", f"{instructions:.0f}"), ("perf.cycles", f"{cycles:.0f}")]
    parts = [f"{ipc:.2f} instructions a cycle"]
    if share >= 0:
        facts += [("perf.cache_miss_share", f"{share:.3f}"), ("perf.missed_bytes", f"{misses * _LINE_BYTES:.0f}")]
        parts.append(f"{100 * share:.0f} % of last-level cache accesses miss")
    if wrong >= 0:
        facts.append(("perf.branch_miss_share", f"{wrong:.4f}"))
        parts.append(f"{100 * wrong:.1f} % of branches mispredicted")
    return Evidence(facts=tuple(facts), bottleneck=name, short_text=text_of(name, parts))


def _counts(text: str) -> Mapping[str, float]:
    found: dict[str, float] = {}
    for line in text.split("\n", _MAX_LINES)[:_MAX_LINES]:
        cells = line.split(";")
        if len(cells) < 3 or cells[0].startswith("<"):
            continue
        event, value = cells[2].strip().partition(":")[0], number(cells[0])
        if event in EVENTS and value >= 0:
            found[event] = value
    return found


def _share(part: float, whole: float) -> float:
    return part / whole if part >= 0 and whole > 0 else -1.0


def _bottleneck(ipc: float, miss_share: float) -> str:
    if ipc >= _BUSY_IPC:
        return Bottleneck.COMPUTE
    if ipc < _WAITING_IPC:
        return Bottleneck.MEMORY if miss_share >= _MISS_SHARE else Bottleneck.LATENCY
    return Bottleneck.MEMORY if miss_share >= 2 * _MISS_SHARE else Bottleneck.UNKNOWN
