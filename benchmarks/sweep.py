"""Points to 98 % of the optimum on measured spaces: ``python -m benchmarks.sweep [--kernel-tuner PYTHON]``.

The spaces are the tables of ``benchmarks/search/data``, in which every point was compiled and timed. A sweep asks for
points in its own order, is told their times with 2 % of noise, and is over when it has measured a point whose true
speed is 98 % of the best. Beside it: points drawn without return, and kernel_tuner's default strategy (and its genetic
algorithm) on the same tables in its simulation mode, in its own environment.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.figures import Figure, report
from benchmarks.search.landscape import NOISE, tables
from benchmarks.search.measure_space import SPACES, declared
from kfd.core.dice import Dice
from kfd.core.search.sweep import Point, Space, SweepPolicy, SweepRow, next_point
from kfd.tasks.tunables import parse

FIRST_SEED = 20_000
"""Reporting seeds, as those of ``benchmarks.search``: nothing was tuned on them."""
SHARE = 0.98
ADAPTER = Path(__file__).parent / "search" / "peers" / "kernel_tuner_adapter.py"
STRATEGIES = ("brute_force", "genetic_algorithm")


def times_of(table: Mapping[str, Any]) -> dict[Point, int]:
    """Nanoseconds by point."""
    return {tuple(point["index"]): point["ns"] for point in table["points"]}


def ours(space: Space, times: Mapping[Point, int], seed: int) -> int:
    """Distinct points that the sweep measures until it has met the bar."""
    policy = SweepPolicy(budget=len(times) + 1)
    goal, dice, noise = min(times.values()) / SHARE, Dice(seed), random.Random(f"sweep:{seed}")
    half = math.exp(1.96 * NOISE)
    rows: list[SweepRow] = []
    while (point := next_point(space, rows, policy, dice, seed)) is not None:
        spent = times.get(point)
        if spent is None:
            rows.append(SweepRow(point=point, speedup=None, reason="not built"))
            continue
        speed = 1e9 / spent * math.exp(noise.gauss(0.0, NOISE))
        rows.append(SweepRow(point=point, speedup=speed, low=speed / half, high=speed * half))
        if spent <= goal:
            break
    return len(rows)


def at_random(times: Mapping[Point, int], seed: int) -> int:
    """Points drawn without return until one meets the bar."""
    order = list(times.values())
    random.Random(f"random:{seed}").shuffle(order)
    goal = min(order) / SHARE
    return next(count for count, spent in enumerate(order, start=1) if spent <= goal)


def kernel_tuner(
    python: Path, table: Mapping[str, Any], condition: str, strategy: str, seeds: Sequence[int]
) -> list[int]:
    """Points that kernel_tuner measures, for each seed; the whole space when it stops without meeting the bar."""
    times = times_of(table)
    goal = min(times.values()) / SHARE
    question = {
        "parameters": table["parameters"],
        "condition": condition,
        "points": [[list(point), ns] for point, ns in times.items()],
        "strategy": strategy,
        "seeds": list(seeds),
    }
    done = subprocess.run(
        [str(python), str(ADAPTER)],
        input=json.dumps(question),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"the kernel_tuner adapter failed: {done.stderr[-1500:]}")
    orders: list[list[list[int]]] = json.loads(done.stdout.splitlines()[-1])
    found = []
    for order in orders:
        fresh = list(dict.fromkeys(tuple(point) for point in order))
        hits = itertools.count(1)
        count = next((n for n, point in zip(hits, fresh, strict=False) if times[point] <= goal), len(times))
        found.append(count)
    return found


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=100, help="runs on each space, at least 2")
    parser.add_argument("--kernel-tuner", type=Path, help="interpreter of an environment that has kernel_tuner")
    options = parser.parse_args()
    seeds = range(FIRST_SEED, FIRST_SEED + max(2, options.seeds))
    shares: dict[str, list[float]] = {}
    notes: list[str] = []
    by_name = {table["kernel"]: table for table in tables()}
    for kernel in SPACES:
        table, source = by_name[kernel.name], kernel.path.read_text()
        space, condition = declared(source), " and ".join(map(str, parse(source).conditions))
        times = times_of(table)
        mine = [ours(space, times, seed) / len(times) for seed in seeds]
        rand = [at_random(times, seed) / len(times) for seed in seeds]
        shares.setdefault("ours", []).extend(mine)
        shares.setdefault("random", []).extend(rand)
        notes.append(f"{kernel.name} {median(mine):.3f} of {len(times)} (random {median(rand):.3f})")
        for strategy in STRATEGIES if options.kernel_tuner else ():
            counts = kernel_tuner(options.kernel_tuner, table, condition, strategy, seeds)
            shares.setdefault(strategy, []).extend(count / len(times) for count in counts)
    if not options.kernel_tuner:
        sys.stderr.write("no figure against kernel_tuner: give --kernel-tuner PYTHON\n")
    count = len(shares["ours"])
    figures = [
        Figure(
            figure="sweep.points_to_98pct",
            value=round(median(shares["ours"]), 4),
            unit="share",
            bar=max(0.10, median(shares["random"]) / 3),
            at_least=False,
            n=count,
            note="; ".join(notes),
        )
    ]
    figures += [
        Figure(figure=f"sweep.{name}.points_to_98pct", value=round(median(found), 4), unit="share", n=len(found))
        for name, found in shares.items()
        if name != "ours"
    ]
    return report(figures)


if __name__ == "__main__":
    sys.exit(main())
