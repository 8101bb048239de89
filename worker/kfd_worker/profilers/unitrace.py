"""unitrace on Intel GPUs: times of kernels and copies from ``unitrace --device-timing``. Pure.

The summary has sections (``== L0 Backend ==``, ``== CL GPU Backend ==``) with comma-separated columns; names stand in
quotation marks. Times alone name no roof: the bottleneck is ``unknown`` unless copies take most of the device's time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from kfd_worker.profilers.evidence import Bottleneck, Evidence, NoProfile, number, table, text_of

__all__ = ["COPIES", "DeviceTime", "command", "profile", "rows"]

COPIES = "copies between host and device"
_SECTION = re.compile(r"== (?P<name>[A-Za-z0-9 ]{1,40}) Backend ==")
_COLUMNS = ("Kernel", "Calls", "Time (ns)")
_TRANSFER = re.compile(r"ze\w*Memory(?:Copy|Fill)|clEnqueue(?:Read|Write|Copy|Fill)\w*|barrier", re.I)
_MAX_BYTES = 4 << 20
_MAX_ROWS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceTime:
    """One line of the summary."""

    name: str
    calls: int
    total_ns: float
    average_ns: float

    @property
    def is_copy(self) -> bool:
        """Whether it moves or fills memory rather than runs a kernel."""
        return bool(_TRANSFER.match(self.name))


def command(program: tuple[str, ...], *, unitrace: str = "unitrace") -> tuple[str, ...]:
    """The command that times a program's kernels."""
    return (unitrace, "--device-timing", *program)


def rows(text: str) -> tuple[DeviceTime, ...]:
    """Lines of every section, at most 200. Raises NoProfile."""
    found: list[DeviceTime] = []
    columns: list[str] = []
    inside = False
    for raw in text[:_MAX_BYTES].split("\n"):
        if _SECTION.search(raw):
            inside, columns = True, []
            continue
        if not inside or len(found) >= _MAX_ROWS:
            continue
        cells = next(iter(table([raw.strip()])), [])
        if not columns:
            columns = cells if cells[:1] == [_COLUMNS[0]] else []
            continue
        if len(cells) != len(columns):
            # An empty line or a title ends the section.
            inside = False
            continue
        row = dict(zip(columns, cells, strict=True))
        total, calls = number(row.get(_COLUMNS[2], "")), number(row.get(_COLUMNS[1], ""))
        if total >= 0 and calls >= 1:
            average = number(row.get("Average (ns)", ""))
            made = DeviceTime(name=cells[0][:200], calls=int(calls), total_ns=total, average_ns=average)
            found.append(made)
    if not found:
        raise NoProfile("unitrace: there is no summary of device times in the output")
    return tuple(found)


def profile(text: str) -> Evidence:
    """Evidence about the kernel that takes longest. Raises NoProfile."""
    found = rows(text)
    kernels = [one for one in found if not one.is_copy]
    if not kernels:
        raise NoProfile("unitrace: the summary has copies and no kernel")
    one = max(kernels, key=lambda row: row.total_ns)
    whole = sum(row.total_ns for row in found) or 1.0
    copies = sum(row.total_ns for row in found if row.is_copy)
    name = COPIES if copies > whole / 2 else Bottleneck.UNKNOWN
    facts = (
        ("unitrace.kernel", one.name),
        ("unitrace.calls", str(one.calls)),
        ("unitrace.average_ns", f"{one.average_ns:.0f}"),
        ("unitrace.share_pct", f"{100 * one.total_ns / whole:.1f}"),
        ("unitrace.copies_pct", f"{100 * copies / whole:.1f}"),
    )
    parts = [
        f"{one.name[:80]} takes {one.average_ns / 1000:.1f} us a call, {100 * one.total_ns / whole:.0f} % of all",
        f"copies take {100 * copies / whole:.0f} %",
    ]
    return Evidence(facts=facts, bottleneck=name, short_text=text_of(name, parts))
