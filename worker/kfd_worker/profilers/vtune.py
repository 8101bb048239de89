"""VTune on Intel GPUs: ``vtune -report hotspots -group-by computing-task -format csv`` of ``gpu-hotspots``. Pure.

Columns are named ``Computing Task`` and the like, metrics with a group before a colon (``XVE Array:Active(%)``, ``EU
Array:Active(%)`` on older devices); which are there depends on the device, so each is looked for by its words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from kfd_worker.profilers.evidence import Evidence, NoProfile, bottleneck_of, number, table, text_of

__all__ = ["command", "profile"]

_MAX_BYTES = 4 << 20
_MAX_ROWS = 500
_TASK = re.compile(r"computing task", re.I)
_NO_KERNEL = re.compile(r"$|\[|ze[A-Z]|clEnqueue")
"""Time outside any task, and copies, which are tasks of the runtime."""
_WANTED: Mapping[str, re.Pattern[str]] = {
    "seconds": re.compile(r"(?:computing task:)?total time(?: by device operation type)?(?:\(s(?:ec)?\))?$", re.I),
    "active_pct": re.compile(r"(?:xve|eu) array:active", re.I),
    "stalled_pct": re.compile(r"(?:xve|eu) array:stalled", re.I),
    "idle_pct": re.compile(r"(?:xve|eu) array:idle", re.I),
    "occupancy_pct": re.compile(r"(?:xve|eu)? ?threads? occupancy|occupancy$", re.I),
    "memory_pct": re.compile(r"gpu memory bandwidth.*%|memory bandwidth utilization|l3 bound", re.I),
    "read_gb_s": re.compile(r"gpu memory bandwidth[^:]*:read", re.I),
    "write_gb_s": re.compile(r"gpu memory bandwidth[^:]*:write", re.I),
}


def command(result: str, *, vtune: str = "vtune") -> tuple[str, ...]:
    """The command that prints a collected result."""
    task = ("-report", "hotspots", "-group-by", "computing-task")
    return (vtune, *task, "-format", "csv", "-csv-delimiter", "comma", "-result-dir", result)


def profile(text: str) -> Evidence:
    """Evidence about the computing task that takes longest. Raises NoProfile."""
    lines = text[:_MAX_BYTES].split("\n")
    start = next((at for at, line in enumerate(lines) if _TASK.match(line.strip('" '))), -1)
    if start < 0:
        raise NoProfile("vtune: there is no table of computing tasks in the output")
    delimiter = max(",\t;|", key=lines[start].count)
    names, *rows = table(lines[start : start + _MAX_ROWS], delimiter) or [[]]
    columns = {key: _column(names, wanted) for key, wanted in _WANTED.items()}
    best: dict[str, float] = {}
    task = ""
    for row in rows:
        if len(row) != len(names) or _NO_KERNEL.match(row[0]):
            continue
        values = {key: number(row[at].rstrip("%")) if at >= 0 else -1.0 for key, at in columns.items()}
        if not task or values["seconds"] > best["seconds"]:
            task, best = row[0][:200], values
    if not task:
        raise NoProfile("vtune: the table has no computing task")
    return _evidence(task, best)


def _column(names: list[str], wanted: re.Pattern[str]) -> int:
    return next((at for at, name in enumerate(names) if wanted.search(name)), -1)


def _evidence(task: str, values: Mapping[str, float]) -> Evidence:
    occupancy = values["occupancy_pct"]
    name = bottleneck_of(memory_pct=values["memory_pct"], compute_pct=values["active_pct"], occupancy_pct=occupancy)
    facts = [("vtune.task", task), *((f"vtune.{key}", f"{value:g}") for key, value in values.items() if value >= 0)]
    parts = [
        text
        for value, text in (
            (values["active_pct"], f"vector engines active {values['active_pct']:.0f} %"),
            (values["stalled_pct"], f"stalled {values['stalled_pct']:.0f} %"),
            (values["idle_pct"], f"idle {values['idle_pct']:.0f} %"),
            (occupancy, f"occupancy {occupancy:.0f} %"),
            (values["memory_pct"], f"memory at {values['memory_pct']:.0f} %"),
        )
        if value >= 0
    ]
    return Evidence(facts=tuple(facts), bottleneck=name, short_text=text_of(name, [task[:80], *parts]))
