"""How long a person waits for ``kfd-client --version``."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from benchmarks.figures import Figure, report

RUNS = 15


def milliseconds(command: list[str]) -> list[float]:
    """Wall times of a command, sorted."""
    times = []
    for _ in range(RUNS):
        begun = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times.append((time.perf_counter() - begun) * 1e3)
    return sorted(times)


def main() -> int:
    """Run from the command line."""
    bare = milliseconds([sys.executable, "-c", "pass"])
    version = milliseconds([str(Path(sys.executable).parent / "kfd-client"), "--version"])
    middle = RUNS // 2
    return report(
        [
            Figure(
                figure="client.version_ms",
                value=version[middle],
                unit="ms",
                bar=200,
                at_least=False,
                n=RUNS,
                low=version[0],
                high=version[-1],
                note=f"median wall time; a bare interpreter takes {bare[middle]:.0f} ms in the same run",
            )
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
