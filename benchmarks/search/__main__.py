"""``python -m benchmarks.search [--seeds N] [--only FAMILY] [--openevolve PYTHON] [--shinka PYTHON]``.

Prints one figure a line. All contestants meet on the same instances (seeds from 20 000) with the same simulated model.
The figure is evaluations to 90 % of the optimum's speed, as a ratio of medians with a paired bootstrap interval.
``without_MECHANISM`` is the cost of switching off a mechanism that is on by default, ``with_MECHANISM`` of switching on
one that is off; above 1 means that it gets slower. ``harsh`` is a task that hardly ever compiles, and only about
repairs. Peers run in their own virtual environments; without the path of an interpreter that has them, their figures
are left out and standard error says so.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from pathlib import Path

from benchmarks.figures import report
from benchmarks.search.harsh import HARSH
from benchmarks.search.landscape import FAMILIES
from benchmarks.search.peers.client import PEERS
from benchmarks.search.tournament import FIRST_SEED, SEEDS, family_figures

PROCESSES = 2


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, help="paired instances of a family, at least 2; default: as published")
    parser.add_argument("--only", choices=(*FAMILIES, HARSH), help="one family")
    for name in PEERS:
        parser.add_argument(f"--{name}", type=Path, help=f"interpreter of an environment that has {name}")
    options = parser.parse_args()
    peers = {name: path for name in PEERS if (path := getattr(options, name)) is not None}
    for name in PEERS.keys() - peers.keys():
        sys.stderr.write(f"no figure against {name}: give --{name} PYTHON\n")
    codes = [0]
    began = time.monotonic()
    with multiprocessing.get_context("spawn").Pool(PROCESSES) as pool:
        for family in (*FAMILIES, HARSH):
            if options.only in (None, family):
                count = SEEDS[family] if options.seeds is None else max(2, options.seeds)
                seeds = range(FIRST_SEED, FIRST_SEED + count)
                codes.append(report(family_figures(pool, family, seeds, peers)))
                sys.stderr.write(f"{family}: {time.monotonic() - began:.0f} s\n")
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
