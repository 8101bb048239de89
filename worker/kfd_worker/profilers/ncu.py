"""Nsight Compute: few counters of a candidate's own kernels, their bottleneck, their place under measured roofs. Pure.

``ncu --csv --page raw`` prints a line of names, a line of units and a line for each launch. What runs beside the
candidate (``cuda_child`` in its ``plain`` mode launches nothing but the plan's kernels) is told apart by name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kfd_worker.profilers.evidence import Evidence, NoProfile, bottleneck_of, number, table, text_of

__all__ = ["METRICS", "Launch", "command", "launches", "profile", "under_roofs"]

_DURATION = "gpu__time_duration.sum"
_DRAM = "dram__throughput.avg.pct_of_peak_sustained_elapsed"
_SM = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
_OCCUPANCY = "sm__warps_active.avg.pct_of_peak_sustained_active"
_L2_HIT = "lts__t_sector_hit_rate.pct"
_DRAM_BYTES = "dram__bytes.sum"
_REGISTERS = "launch__registers_per_thread"
_STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
_STALLS: Mapping[str, str] = {
    "long_scoreboard": "waiting for global or local memory",
    "short_scoreboard": "waiting for shared memory or special functions",
    "barrier": "waiting at barriers",
    "math_pipe_throttle": "arithmetic units busy",
    "lg_throttle": "too many memory instructions queued",
    "mio_throttle": "shared memory and special function queue full",
    "wait": "fixed latency of the instruction before",
    "not_selected": "enough warps are ready",
}

METRICS: tuple[str, ...] = (
    _DURATION,
    _DRAM,
    _SM,
    _OCCUPANCY,
    _L2_HIT,
    _DRAM_BYTES,
    _REGISTERS,
    *(_STALL.format(name) for name in _STALLS),
)
"""What is asked for: few, because each group of counters is another run of the kernel."""

_MAX_BYTES = 4 << 20
_MAX_LAUNCHES = 64
_SCALE = {
    "nsecond": 1.0, "ns": 1.0, "usecond": 1e3, "us": 1e3, "msecond": 1e6, "ms": 1e6, "second": 1e9, "s": 1e9,
    "byte": 1.0, "kbyte": 1e3, "mbyte": 1e6, "gbyte": 1e9,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """Counters of one launch; -1 where there is none."""

    kernel: str
    duration_ns: float
    dram_pct: float
    sm_pct: float
    occupancy_pct: float
    l2_hit_pct: float
    dram_bytes: float
    registers: float
    stalls: tuple[tuple[str, float], ...]
    """Reasons with the warps that wait for them at each issue, the greatest first."""


def command(program: Sequence[str], *, kernels: Sequence[str], ncu: str = "ncu", count: int = 16) -> tuple[str, ...]:
    """The command that profiles the first ``count`` launches of some kernels of a program and of its children.

    Clocks are left alone: they are the machine's.
    """
    return (
        ncu,
        "--csv",
        "--page",
        "raw",
        "--target-processes",
        "all",
        "--clock-control",
        "none",
        "--kernel-name",
        f"regex:^({'|'.join(re.escape(name) for name in kernels)})$",
        "--launch-count",
        str(count),
        "--metrics",
        ",".join(METRICS),
        *program,
    )


def launches(text: str) -> tuple[Launch, ...]:
    """Launches in ``ncu --csv --page raw`` output, at most 64. Raises NoProfile with what ncu says instead."""
    lines = text[:_MAX_BYTES].split("\n")
    start = next((at for at, line in enumerate(lines) if line.startswith('"ID"')), -1)
    if start < 0:
        said = next((line for line in lines if line.startswith("==ERROR==")), "no table in the output")
        raise NoProfile(f"ncu: {said.removeprefix('==ERROR==').strip()[:200]}")
    rows = [*table(lines[start:]), []]
    names, units, rest = rows[0], rows[1], rows[2:]
    found = []
    for row in rest[:_MAX_LAUNCHES]:
        if len(row) == len(names):
            found.append(_launch(dict(zip(names, row, strict=True)), dict(zip(names, units, strict=False))))
    if not found:
        raise NoProfile("ncu: the table has no launch")
    return tuple(found)


def _launch(row: Mapping[str, str], units: Mapping[str, str]) -> Launch:
    def value(name: str) -> float:
        found = number(row.get(name, ""))
        return found if found < 0 else found * _SCALE.get(units.get(name, "").strip().lower(), 1.0)

    stalls = {name: value(_STALL.format(name)) for name in _STALLS}
    return Launch(
        kernel=row.get("Kernel Name", "").partition("(")[0][:200],
        duration_ns=value(_DURATION),
        dram_pct=value(_DRAM),
        sm_pct=value(_SM),
        occupancy_pct=value(_OCCUPANCY),
        l2_hit_pct=value(_L2_HIT),
        dram_bytes=value(_DRAM_BYTES),
        registers=value(_REGISTERS),
        stalls=tuple(sorted(((n, v) for n, v in stalls.items() if v > 0), key=lambda pair: -pair[1])),
    )


def profile(text: str) -> Evidence:
    """Evidence about the launch that takes longest. Raises NoProfile."""
    found = launches(text)
    one = max(found, key=lambda launch: launch.duration_ns)
    whole = sum(max(0.0, launch.duration_ns) for launch in found)
    name = bottleneck_of(memory_pct=one.dram_pct, compute_pct=one.sm_pct, occupancy_pct=one.occupancy_pct)
    facts = [
        ("ncu.kernel", one.kernel),
        ("ncu.duration_ns", f"{one.duration_ns:.0f}"),
        ("ncu.share_of_launches_pct", f"{100 * one.duration_ns / whole:.0f}" if whole else "-1"),
        ("ncu.dram_pct", f"{one.dram_pct:.1f}"),
        ("ncu.sm_pct", f"{one.sm_pct:.1f}"),
        ("ncu.occupancy_pct", f"{one.occupancy_pct:.1f}"),
        ("ncu.l2_hit_pct", f"{one.l2_hit_pct:.1f}"),
        ("ncu.dram_bytes", f"{one.dram_bytes:.0f}"),
        ("ncu.registers", f"{one.registers:.0f}"),
    ]
    parts = [
        text
        for value, text in (
            (one.dram_pct, f"memory at {one.dram_pct:.0f} % of its peak"),
            (one.sm_pct, f"multiprocessors at {one.sm_pct:.0f} %"),
            (one.occupancy_pct, f"{one.occupancy_pct:.0f} % of the possible warps active"),
            (one.l2_hit_pct, f"L2 hits {one.l2_hit_pct:.0f} %"),
        )
        if value >= 0
    ]
    if one.stalls:
        reason, warps = one.stalls[0]
        facts.append(("ncu.stall", f"{reason} {warps:.2f}"))
        parts.append(f"warps mostly stalled by {reason} ({_STALLS[reason]})")
    return Evidence(facts=tuple(facts), bottleneck=name, short_text=text_of(name, parts))


def under_roofs(one: Launch, *, flops: float, bytes_per_s: float, flops_per_s: float) -> tuple[tuple[str, str], ...]:
    """Where a launch stands under roofs that were measured on the device: a share of each, and the nearer one.

    ``flops`` is what the task needs, not what ran. Empty when a number is not known.
    """
    if min(one.duration_ns, one.dram_bytes, flops, bytes_per_s, flops_per_s) <= 0:
        return ()
    seconds = one.duration_ns / 1e9
    memory, compute = one.dram_bytes / seconds / bytes_per_s, flops / seconds / flops_per_s
    return (
        ("roof.memory_share", f"{memory:.3f}"),
        ("roof.arithmetic_share", f"{compute:.3f}"),
        ("roof.flops_per_byte", f"{flops / one.dram_bytes:.2f}"),
        ("roof.nearer", "memory" if memory >= compute else "arithmetic"),
    )
