"""kernel_tuner on a measured table, in its simulation mode; runs with the interpreter of its own environment.

Standard input: ``{"parameters", "condition", "points": [[index, ns], ...], "strategy", "seeds"}``. Standard output,
last line: for each seed the points (as indices) in the order in which the strategy evaluated them.
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

import kernel_tuner  # type: ignore[import-not-found]  # in its own environment
import numpy as np  # type: ignore[import-not-found]


def order(question: dict[str, Any], cache: Path, seed: int) -> list[list[int]]:
    """The points of one run."""
    random.seed(seed)
    np.random.seed(seed)  # their code draws from the global state
    names = list(question["parameters"])
    positions = {name: {value: i for i, value in enumerate(values)} for name, values in question["parameters"].items()}

    def index_of(values: dict[str, Any]) -> list[int]:
        return [positions[name][values[name]] for name in names]

    found, _ = kernel_tuner.tune_kernel(
        "run",
        "void run() {}",
        (1,),
        [],
        question["parameters"],
        restrictions=[question["condition"]],
        strategy=None if question["strategy"] == "brute_force" else question["strategy"],
        strategy_options=None if question["strategy"] == "brute_force" else {"max_fevals": len(question["points"])},
        cache=str(cache),
        simulation_mode=True,
        lang="C",
        quiet=True,
    )
    return [index_of(values) for values in found]


def main() -> None:
    """Answer one question."""
    question = json.load(sys.stdin)
    names = list(question["parameters"])
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / "cache.json"
        entries = {}
        for index, spent in question["points"]:
            values = {name: question["parameters"][name][i] for name, i in zip(names, index, strict=True)}
            entry = {"time": spent, "times": [spent], "compile_time": 0, "verification_time": 0, "benchmark_time": 0}
            entry |= {"strategy_time": 0, "framework_time": 0, "timestamp": "2026-01-01 00:00:00"}
            entries[",".join(str(value) for value in values.values())] = values | entry
        head = {
            "device_name": "Simulation",
            "kernel_name": "run",
            "problem_size": [1],
            "tune_params_keys": names,
            "tune_params": question["parameters"],
            "objective": "time",
        }
        cache.write_text(json.dumps(head | {"cache": entries}))
        with contextlib.redirect_stdout(io.StringIO()):
            orders = [order(question, cache, seed) for seed in question["seeds"]]
    sys.stdout.write(json.dumps(orders) + "\n")


if __name__ == "__main__":
    main()
