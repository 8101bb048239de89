"""Compiles and times every point of the templates in ``kernels/``: ``python -m benchmarks.search.measure_space``.

Each point is built by g++ with its parameters as macros, loaded, compared with the first point's output, and timed:
the shortest of ``ROUNDS`` rounds, each the mean of as many calls as fill ``ROUND_NS``. Rounds go through all points in
turn, so that a disturbance of the machine does not fall on one point. The tables land in ``data/`` and are committed;
they mean something only when nothing else runs.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import ctypes
import itertools
import json
import math
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kfd.core.search.sweep import Space
from kfd.tasks.tunables import parse

__all__ = ["SPACES", "KernelSpace", "declared", "measure"]

HERE = Path(__file__).parent
ROUNDS = 9
ROUND_NS = 3_000_000
TOLERANCE = 2e-3
# What fast math is made of, without the start-up code that comes with its name: that would flush denormal numbers for
# everything in the process that loads a point.
MATH = ("-fassociative-math", "-freciprocal-math", "-ffinite-math-only", "-fno-signed-zeros", "-fno-trapping-math")
OPTIONS = ("-O2", "-march=native", "-fno-math-errno", "-fno-tree-vectorize", *MATH)
FLAGS = (*OPTIONS, "-shared", "-fPIC", "-pthread")


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSpace:
    """One template; its tunables are declared in its source. Three of them lie over memory, algorithm, parallelism."""

    name: str
    axes: tuple[str, str, str]
    floats: tuple[int, int, int]
    """Length of the two inputs and of the output."""

    @property
    def path(self) -> Path:
        """The template."""
        return HERE / "kernels" / f"{self.name}.cpp"


SPACES = (
    KernelSpace(name="matmul", axes=("TILE", "ORDER", "VEC"), floats=(192 * 192, 192 * 192, 192 * 192)),
    KernelSpace(name="softmax", axes=("BLOCK", "STEPS", "VEC"), floats=(96 * 1024, 1, 96 * 1024)),
    KernelSpace(name="stencil", axes=("TILE", "ROWS", "VEC"), floats=(514 * 514, 9, 514 * 514)),
)


def declared(source: str) -> Space:
    """The space that a kernel text declares in its ``[TUNE]`` comments."""
    tune = parse(source)
    return Space(
        names=tuple(one.name for one in tune.tunables),
        values=tuple(one.values for one in tune.tunables),
        allowed=lambda values: all(condition.holds(values) for condition in tune.conditions),
    )


@dataclass(slots=True)
class Loaded:
    """A built point: its function and the best round so far."""

    index: tuple[int, ...]
    run: ctypes._NamedFuncPointer  # ctypes gives the type of a loaded function no public name
    calls: int = 1
    best_ns: float = math.inf


def build(kernel: KernelSpace, values: Mapping[str, int], folder: Path) -> Path | None:
    """The shared object of one point; None when the compiler refuses it."""
    path = folder / ("_".join(map(str, values.values())) + ".so")
    macros = [f"-D{name}={value}" for name, value in values.items()]
    command = ["g++", *FLAGS, *macros, str(kernel.path), "-o", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        sys.stderr.write(done.stderr[:400])
        return None
    return path


def floats(count: int, seed: int) -> ctypes.Array[ctypes.c_float]:
    """Inputs in [-1, 1)."""
    rng = random.Random(seed)
    return (ctypes.c_float * count)(*(rng.uniform(-1, 1) for _ in range(count)))


def timed(point: Loaded, arguments: Sequence[ctypes.Array[ctypes.c_float]]) -> float:
    """Mean nanoseconds of one call over the point's calls a round."""
    began = time.perf_counter_ns()
    for _ in range(point.calls):
        point.run(*arguments)
    return (time.perf_counter_ns() - began) / point.calls


def same(one: Sequence[float], other: Sequence[float]) -> bool:
    """Whether two outputs agree within the tolerance."""
    return all(abs(a - b) <= TOLERANCE * (1e-3 + abs(a)) for a, b in zip(one, other, strict=True))


def load(kernel: KernelSpace, space: Space, folder: Path) -> list[Loaded]:
    """Every allowed point, built by two compilers at a time."""
    every = itertools.product(*(range(len(values)) for values in space.values))
    indices = [index for index in every if space.allows(index)]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        paths = list(pool.map(lambda index: build(kernel, space.chosen(index), folder), indices))
    return [Loaded(index, ctypes.CDLL(str(path)).run) for index, path in zip(indices, paths, strict=True) if path]


def measure(kernel: KernelSpace) -> dict[str, object]:
    """The table of one template."""
    space = declared(kernel.path.read_text())
    with tempfile.TemporaryDirectory(prefix="kfd-space-") as name:
        points = load(kernel, space, Path(name))
        left, right, out = (floats(count, seed) for seed, count in enumerate(kernel.floats))
        expected: list[float] | None = None
        good: list[Loaded] = []
        for point in points:
            ctypes.memset(out, 0, ctypes.sizeof(out))
            point.run(left, right, out)
            expected = expected or list(out)
            if same(expected, list(out)):
                point.calls = max(1, int(ROUND_NS / max(1.0, timed(point, (left, right, out)))))
                good.append(point)
        for _ in range(ROUNDS):
            for point in good:
                point.best_ns = min(point.best_ns, timed(point, (left, right, out)))
    compiler = subprocess.run(["g++", "-dumpfullversion"], capture_output=True, text=True, check=True, timeout=10)
    return {
        "kernel": kernel.name,
        "machine": f"{platform.machine()}, {' '.join(OPTIONS)}, g++ {compiler.stdout.strip()}",
        "method": f"shortest of {ROUNDS} rounds of {ROUND_NS / 1e6:.0f} ms, all points in turn",
        "parameters": dict(zip(space.names, map(list, space.values), strict=True)),
        "axes": list(kernel.axes),
        "wrong": len(points) - len(good),
        "points": [{"index": list(point.index), "ns": round(point.best_ns)} for point in good],
    }


def main() -> int:
    """Write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=[kernel.name for kernel in SPACES])
    only = parser.parse_args().only
    for kernel in SPACES:
        if only not in (None, kernel.name):
            continue
        table = measure(kernel)
        head = {key: value for key, value in table.items() if key != "points"}
        points = table["points"]
        assert isinstance(points, list)
        lines = ",\n".join("  " + json.dumps(point) for point in points)
        text = json.dumps(head, indent=1)[:-2] + f',\n "points": [\n{lines}\n ]\n}}\n'
        (HERE / "data" / f"{kernel.name}.json").write_text(text)
        times = [point["ns"] for point in points]
        sys.stderr.write(
            f"{kernel.name}: {len(times)} points, {min(times)} to {max(times)} ns, {table['wrong']} wrong\n"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
