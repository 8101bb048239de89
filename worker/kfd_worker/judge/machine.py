"""What a measurement's number depends on besides the kernel."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

__all__ = ["environment", "steal_ticks"]


def _read(path: str) -> str:
    with contextlib.suppress(OSError):
        return Path(path).read_text(errors="replace").strip()
    return ""


def steal_ticks() -> int:
    """Clock ticks that the hypervisor has kept from this machine since it started; 0 when unknown."""
    fields = _read("/proc/stat").split("\n")[0].split()
    return int(fields[8]) if len(fields) > 8 else 0


def environment(threads: int, steal: int) -> tuple[tuple[str, str], ...]:
    """Short facts for beside a number; ``steal`` is the ticks stolen during the measurement."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in _read("/proc/cpuinfo").split("\n")
            if line.startswith("model name")
        ),
        "unknown",
    )
    governor = _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") or "unknown"
    return (
        ("cpu", model),
        ("cores", str(len(os.sched_getaffinity(0)))),
        ("threads", str(threads)),
        ("governor", governor),
        ("load", _read("/proc/loadavg").partition(" ")[0]),
        ("steal_ticks", str(steal)),
    )
