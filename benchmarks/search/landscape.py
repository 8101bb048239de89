"""Simulated kernel spaces whose optimum is known. The assumptions, written before any default was tuned:

1. A kernel is a cell of the 4 x 4 x 4 grid (memory, algorithm, parallelism), a few tuning constants (*knobs*: tile,
   unroll, vector width, threads) and a set of small independent ideas (*details*). It may have a bug.
2. Log speed is the sum of what the cell, the knobs and the details give. ``smooth``: one hill over the grid, one hill
   over the knobs, the same everywhere. ``rugged``: every cell has its own offset, some steps only pay together with
   another axis (a reformulated algorithm without tiles is slower than the plain one), knobs interact in pairs and
   their best values and the worth of the details depend on the cell. ``measured``: no formula; every value is the
   time of a compiled CPU kernel from ``data/*.json``, its template parameters laid over axes and knobs.
3. A task's first kernel is plain: cell (0, 0, 0), default knobs, no detail.
4. Speeds are measured with log-normal noise; the interval that comes with a measurement is honest (95 %).
5. Not every point exists: tuning constants may exceed a resource (rugged), a table may hold points that do not build.

Seeds below 1000 are for tuning, seeds from 20 000 for reporting; a family is a pure function of its seed. Seeds from
10 000 were seen by an earlier round of tuning and are used for neither any more. The families are frozen: what is tuned
after the commit that says so changes ``kfd`` and its defaults, never this file, ``model.py`` or ``data/``.
"""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from kfd.core.search.archive import LEVELS, Cell

__all__ = ["AXES", "FAMILIES", "NOISE", "Genome", "Landscape", "landscape"]

AXES = 3
NOISE = 0.02
"""Standard deviation of a measurement's log speed."""

KNOBS = 4
KNOB_VALUES = 4
DETAILS = 6
FAMILIES = ("smooth", "rugged", "measured")
DATA = Path(__file__).parent / "data"


@dataclass(frozen=True, slots=True, kw_only=True)
class Genome:
    """A simulated kernel."""

    cell: Cell
    knobs: tuple[int, ...]
    """Index of each tuning constant's value."""
    details: int = 0
    """Bit set of small ideas that are in."""
    bug: int = 0
    """0 none, 1 does not build, 2 builds and is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Landscape:
    """One task: log speed over the first kernel for every genome, None where no kernel exists."""

    knob_sizes: tuple[int, ...]
    details: int
    initial: Genome
    log_speed: Callable[[Genome], float | None]
    optimum: float
    """Largest log speed of any genome."""


def landscape(family: str, seed: int) -> Landscape:
    """The instance of a family. Raises KeyError for an unknown family."""
    return {"smooth": _smooth, "rugged": _rugged, "measured": _measured}[family](seed)


def cells() -> list[Cell]:
    """All 64 cells in order."""
    return [(a, b, c) for a in range(LEVELS) for b in range(LEVELS) for c in range(LEVELS)]


def _origin(knobs: int) -> Genome:
    return Genome(cell=(0, 0, 0), knobs=(0,) * knobs)


def _detail_sum(weights: tuple[float, ...], details: int) -> float:
    return sum(weight for bit, weight in enumerate(weights) if details >> bit & 1)


def _smooth(seed: int) -> Landscape:
    """One hill over the grid (top at a hidden cell far from the origin), one over the knobs, details that all help."""
    rng = random.Random(f"smooth:{seed}")
    top = tuple(rng.choice((1, 2, 3, 3)) for _ in range(AXES))
    steep = [rng.uniform(0.10, 0.20) for _ in range(AXES)]
    best_knobs = [rng.randrange(KNOB_VALUES) for _ in range(KNOBS)]
    knob_steep = [rng.uniform(0.01, 0.03) for _ in range(KNOBS)]
    weights = tuple(rng.uniform(0.01, 0.06) for _ in range(DETAILS))

    def raw(genome: Genome) -> float:
        hill = -sum(s * (level - t) ** 2 for s, level, t in zip(steep, genome.cell, top, strict=True))
        knobs = -sum(s * (value - b) ** 2 for s, value, b in zip(knob_steep, genome.knobs, best_knobs, strict=True))
        return hill + knobs + _detail_sum(weights, genome.details)

    origin = _origin(KNOBS)
    zero = raw(origin)
    return Landscape(
        knob_sizes=(KNOB_VALUES,) * KNOBS,
        details=DETAILS,
        initial=origin,
        log_speed=lambda genome: raw(genome) - zero,
        optimum=sum(weights) - zero,
    )


def _rugged(seed: int) -> Landscape:
    """Offsets by cell, steps that pay only together, interacting knobs, details whose worth depends on the cell."""
    rng = random.Random(f"rugged:{seed}")
    gain = [[0.0, *itertools.accumulate(rng.uniform(0.0, 0.35) for _ in range(LEVELS - 1))] for _ in range(AXES)]
    needs = [
        (axis, rng.randrange(2, LEVELS), rng.choice([a for a in range(AXES) if a != axis])) for axis in range(AXES)
    ]
    penalty = [rng.uniform(0.2, 0.5) for _ in needs]
    offset = {cell: rng.gauss(0.0, 0.25) for cell in cells()}
    offset[0, 0, 0] = 0.0
    pairs = list(itertools.combinations(range(KNOBS), 2))
    shared = {(*pair, a, b): rng.gauss(0.0, 0.06) for pair in pairs for a in range(4) for b in range(4)}
    own = {cell: random.Random(f"rugged:{seed}:{cell}") for cell in cells()}
    knobs = {cell: {key: value + own[cell].gauss(0.0, 0.04) for key, value in shared.items()} for cell in cells()}
    weights = {cell: tuple(own[cell].gauss(0.01, 0.03) for _ in range(DETAILS)) for cell in cells()}

    def fits(values: tuple[int, ...]) -> bool:
        # The first two constants are tile edges; the largest tiles do not fit together.
        return values[0] + values[1] <= 5

    def place(cell: Cell) -> float:
        total = sum(gain[axis][level] for axis, level in enumerate(cell)) + offset[cell]
        for (axis, level, other), loss in zip(needs, penalty, strict=True):
            if cell[axis] >= level and cell[other] < 1:
                total -= loss
        return total

    def tuned(cell: Cell, values: tuple[int, ...]) -> float:
        table = knobs[cell]
        return sum(table[a, b, values[a], values[b]] for a, b in pairs)

    every = [values for values in itertools.product(range(KNOB_VALUES), repeat=KNOBS) if fits(values)]
    zero = place((0, 0, 0)) + tuned((0, 0, 0), (0,) * KNOBS)
    # The exact optimum: no cell whose bound is below the best found needs its knobs enumerated.
    bound = {
        cell: sum(max(knobs[cell][a, b, x, y] for x in range(4) for y in range(4)) for a, b in pairs)
        for cell in cells()
    }
    ideas = {cell: sum(weight for weight in weights[cell] if weight > 0) for cell in cells()}
    best = -math.inf
    for cell in sorted(cells(), key=lambda c: -(place(c) + bound[c] + ideas[c])):
        if place(cell) + bound[cell] + ideas[cell] <= best:
            break
        best = max(best, place(cell) + ideas[cell] + max(tuned(cell, values) for values in every))

    def log_speed(genome: Genome) -> float | None:
        if not fits(genome.knobs):
            return None
        cell = genome.cell
        return place(cell) + tuned(cell, genome.knobs) + _detail_sum(weights[cell], genome.details) - zero

    return Landscape(
        knob_sizes=(KNOB_VALUES,) * KNOBS,
        details=DETAILS,
        initial=_origin(KNOBS),
        log_speed=log_speed,
        optimum=best - zero,
    )


@cache
def tables() -> tuple[Mapping[str, Any], ...]:
    """The measured spaces, in the order of their names."""
    return tuple(json.loads(path.read_text()) for path in sorted(DATA.glob("*.json")))


def _measured(seed: int) -> Landscape:
    """A table of timed kernels.

    Instances differ in which table is used and in the order of the levels above the lowest (an axis of a template has
    no natural order, and a search must not be tuned to one); times are never changed.
    """
    found = tables()
    if not found:
        raise FileNotFoundError("no measured space: run python -m benchmarks.search.measure_space")
    table = found[seed % len(found)]
    rng = random.Random(f"measured:{seed}")
    names = list(table["parameters"])
    sizes = [len(table["parameters"][name]) for name in names]
    order = [[0, *rng.sample(range(1, size), size - 1)] for size in sizes]
    axes = [names.index(name) for name in table["axes"]]
    free = [index for index in range(len(names)) if index not in axes]
    times = {tuple(point["index"]): point["ns"] for point in table["points"]}
    start = times[(0,) * len(names)]

    def log_speed(genome: Genome) -> float | None:
        index = [0] * len(names)
        for axis, level in zip(axes, genome.cell, strict=True):
            if level >= sizes[axis]:
                return None
            index[axis] = order[axis][level]
        for knob, value in zip(free, genome.knobs, strict=True):
            index[knob] = order[knob][value]
        spent = times.get(tuple(index))
        return None if spent is None else math.log(start / spent)

    return Landscape(
        knob_sizes=tuple(sizes[index] for index in free),
        details=0,
        initial=_origin(len(free)),
        log_speed=log_speed,
        optimum=max(math.log(start / spent) for spent in times.values() if spent),
    )
