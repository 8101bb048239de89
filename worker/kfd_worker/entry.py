"""The console script ``kfd-worker``: says which packages are missing where the extra was not installed."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line, or name what to install."""
    try:
        from kfd_worker.cli import main as run
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] in ("kfd", "kfd_worker"):
            raise
        sys.stderr.write(f"kfd-worker: the agent's packages are missing ({error.name})\n")
        sys.stderr.write("  next: pip install 'kfd[worker]'\n")
        sys.exit(2)
    run()
