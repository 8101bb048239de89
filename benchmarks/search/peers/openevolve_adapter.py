"""OpenEvolve's own database and sampling behind the peers' protocol (see ``client.py``). Runs with its interpreter.

Their defaults are kept: five islands in turn, exploration 0.2, exploitation 0.7, cells by complexity and diversity,
migration every 50 generations, two diverse inspirations and three top programs. Their operator is a diff for
everything; the simulated model's patches hardly ever change structure, so rewrites and patches are drawn as the uniform
contestant draws them, which is better for it. A failed candidate is stored with a score of 0, as their evaluator does.
"""

from __future__ import annotations

import json
import logging
import random
import sys
from typing import Any

from openevolve.config import DatabaseConfig  # type: ignore[import-not-found]  # in its own environment
from openevolve.database import Program, ProgramDatabase  # type: ignore[import-not-found]

DIVERSE = 2
TOP = 3
REWRITES = 0.6


class Peer:
    """One campaign."""

    def __init__(self, seed: int) -> None:
        random.seed(seed)
        self._operators = random.Random(f"operators:{seed}")
        config = DatabaseConfig(random_seed=seed, log_prompts=False)
        self._database = ProgramDatabase(config)
        self._iteration = 0
        self._names: dict[str, str] = {}

    def ask(self) -> dict[str, Any]:
        """Parent and inspirations of the next child: islands take turns, as in their process pool."""
        island = self._iteration % self._database.config.num_islands
        parent, shown = self._database.sample_from_island(island, num_inspirations=DIVERSE)
        top = self._database.get_top_programs(TOP, island_idx=island)
        names = list(dict.fromkeys(self._names[one.code] for one in [*shown, *top] if one.code != parent.code))
        operator = "rewrite" if self._operators.random() < REWRITES else "patch"
        return {"parent": self._names[parent.code], "inspirations": names, "operator": operator, "island": island}

    def tell(self, message: dict[str, Any]) -> dict[str, Any]:
        """A judged child."""
        # Islands get copies under new ids; equal code is the same kernel to us.
        self._names.setdefault(message["code"], message["id"])
        program = Program(
            id=message["id"],
            code=message["code"],
            language="cpp",
            parent_id=message["parent"],
            generation=message["generation"],
            iteration_found=self._iteration,
            metrics={"combined_score": message["score"] if message["correct"] else 0.0},
        )
        island = None if message["parent"] is None else message["island"]
        self._database.add(program, iteration=self._iteration, target_island=island)
        if message["parent"] is not None:
            self._database.increment_island_generation(island_idx=island)
            if self._database.should_migrate():
                self._database.migrate_programs()
        self._iteration += 1
        return {}


def main() -> None:
    """Answer one line for each line."""
    logging.disable(logging.CRITICAL)
    peer: Peer | None = None
    for line in sys.stdin:
        message = json.loads(line)
        if message["do"] == "start":
            peer, answer = Peer(message["seed"]), {}
        elif peer is None:
            answer = {"error": "start first"}
        else:
            answer = peer.ask() if message["do"] == "ask" else peer.tell(message)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
