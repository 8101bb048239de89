"""Who meets whom, on which seeds, and the figures that come of it."""

from __future__ import annotations

import functools
import multiprocessing.pool
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks.figures import Figure
from benchmarks.search.contestants import PLAIN
from benchmarks.search.figures import difference_of_shares, ratio_of_medians
from benchmarks.search.harsh import HARSH
from benchmarks.search.landscape import FAMILIES
from benchmarks.search.ours import MECHANISMS, ours, switched, whole
from benchmarks.search.peers.client import PeerProcess, peer_run
from benchmarks.search.world import BUDGET, Result, World

__all__ = ["FIRST_SEED", "SEEDS", "family_figures"]

FIRST_SEED = 20_000
"""Reporting instances; those below 1000 are for tuning."""

SEEDS = {"smooth": 800, "rugged": 800, "measured": 1200, HARSH: 300}
"""Paired instances for what is on by default, which has to be proved: enough to tell a tenth. All else gets half."""

PEER_SEEDS = {"smooth": 30, "rugged": 12, "measured": 90}
"""Instances on which peers are run: they are slow, and the measured spaces, where runs differ most, are quick."""

BARS = {"uniform": {"rugged": 0.7, "measured": 0.7}, "best_of_n": dict.fromkeys(FAMILIES, 0.5)}


def run(contestant: str, family: str, seed: int) -> Result:
    """One run by name: ``ours``, a plain contestant, or a mechanism switched over."""
    world = World(family, seed)
    if contestant in PLAIN:
        return PLAIN[contestant](world)
    return ours(world, whole() if contestant == "ours" else switched(contestant))


def runs(pool: multiprocessing.pool.Pool, contestant: str, family: str, seeds: Sequence[int]) -> list[Result]:
    """All seeds of one contestant."""
    return pool.map(functools.partial(run, contestant, family), seeds, chunksize=10)


def peer_runs(name: str, python: Path, family: str, seeds: Sequence[int]) -> list[Result]:
    """All seeds of a peer, one process for all."""
    peer = PeerProcess(name, python)
    try:
        return [peer_run(peer, World(family, seed)) for seed in seeds]
    finally:
        peer.close()


def figure(name: str, family: str, one: list[Result], other: list[Result], bar: float | None, note: str = "") -> Figure:
    """A comparison in evaluations; ``one`` is the numerator."""
    pairs = min(len(one), len(other))
    one, other = one[:pairs], other[:pairs]
    ratio = ratio_of_medians([run.evaluations for run in one], [run.evaluations for run in other])
    money = ratio_of_medians([run.money for run in one], [run.money for run in other])
    medians = f"{median(run.evaluations for run in one):.0f} against {median(run.evaluations for run in other):.0f}"
    arrived = f"{sum(run.arrived for run in one) / pairs:.0%} and {sum(run.arrived for run in other) / pairs:.0%}"
    _, low, high = difference_of_shares([run.arrived for run in one], [run.arrived for run in other])
    text = f"{medians} evaluations, {arrived} arrived within {BUDGET[family]}"
    text += f" ({100 * low:+.1f} to {100 * high:+.1f} points)"
    text += f"; money x{money.value:.2f} ({money.low:.2f} to {money.high:.2f})"
    return Figure(
        figure=f"search.{family}.{name}",
        value=round(ratio.value, 4),
        unit="x",
        bar=bar,
        at_least=False,
        n=ratio.n,
        low=round(ratio.low, 4),
        high=round(ratio.high, 4),
        note=f"{text}; {note}" if note else text,
    )


def family_figures(
    pool: multiprocessing.pool.Pool, family: str, seeds: Sequence[int], peers: dict[str, Path]
) -> list[Figure]:
    """All figures of one family; of the harsh one only what it is there for: whether repairs pay."""
    if family == HARSH:
        return mechanism_figures(pool, family, seeds, seeds, runs(pool, "ours", family, seeds), ("repair",))
    few = seeds[: max(2, len(seeds) // 2)]
    others = {
        name: pool.apply_async(peer_runs, (name, python, family, seeds[: PEER_SEEDS[family]]))
        for name, python in peers.items()
    }
    mine = runs(pool, "ours", family, seeds)
    found = []
    for name in PLAIN:
        theirs = runs(pool, name, family, few)
        found.append(figure(f"vs_{name}", family, mine, theirs, BARS.get(name, {}).get(family)))
    for name, waiting in others.items():
        found.append(figure(f"vs_{name}", family, mine, waiting.get(), 1.0))
    return found + mechanism_figures(pool, family, seeds, few, mine, tuple(MECHANISMS))


def mechanism_figures(
    pool: multiprocessing.pool.Pool,
    family: str,
    seeds: Sequence[int],
    few: Sequence[int],
    mine: list[Result],
    names: Sequence[str],
) -> list[Figure]:
    """What switching each mechanism over costs. ``few``: seeds for those that are off; ``mine``: the defaults."""
    found = []
    for name in names:
        other = runs(pool, name, family, seeds if MECHANISMS[name] else few)
        found.append(figure(f"{'without' if MECHANISMS[name] else 'with'}_{name}", family, other, mine, None))
    return found
