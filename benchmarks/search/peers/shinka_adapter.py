"""ShinkaEvolve's own database and sampling behind the peers' protocol (see ``client.py``). Runs with its interpreter.

Their defaults are kept: two islands, weighted parents, one archive and one top inspiration, fix mode when nothing is
correct, patch types diff, full and cross at 0.6, 0.3 and 0.1 (cross needs an inspiration). Scores of failures are 0.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import random
import sys
from typing import Any

import numpy as np  # type: ignore[import-not-found]
from shinka.database.dbase import DatabaseConfig, Program, ProgramDatabase  # type: ignore[import-not-found]
from shinka.defaults import default_patch_type_probs, default_patch_types  # type: ignore[import-not-found]

OPERATORS = {"diff": "patch", "full": "rewrite", "cross": "crossover"}


class Peer:
    """One campaign."""

    def __init__(self, seed: int) -> None:
        random.seed(seed)
        np.random.seed(seed)  # their code draws from the global state
        self._database = ProgramDatabase(DatabaseConfig(db_path=None), embedding_model="")
        self._generation = 0
        self._names: dict[str, str] = {}

    def ask(self) -> dict[str, Any]:
        """Parent, inspirations and patch type of the next child."""
        self._generation += 1
        parent, archive, top, fix = self._database.sample_with_fix_mode(target_generation=self._generation)
        names = list(dict.fromkeys(self._names[one.code] for one in [*archive, *top] if one.code != parent.code))
        kinds, shares = default_patch_types(), default_patch_type_probs()
        kind = random.choices(kinds, shares)[0]
        drawn = "patch" if kind == "cross" and not names else OPERATORS[kind]
        operator = "repair" if fix else drawn
        return {"parent": self._names[parent.code], "inspirations": names, "operator": operator, "island": 0}

    def tell(self, message: dict[str, Any]) -> dict[str, Any]:
        """A judged child."""
        # Islands get copies under new ids; equal code is the same kernel to us.
        self._names.setdefault(message["code"], message["id"])
        program = Program(
            id=message["id"],
            code=message["code"],
            language="cpp",
            parent_id=message["parent"],
            generation=self._generation,
            combined_score=message["score"] if message["correct"] else 0.0,
            correct=message["correct"],
        )
        self._database.add(program)
        self._database.check_scheduled_operations()
        return {}


def main() -> None:
    """Answer one line for each line; whatever their code prints goes nowhere."""
    logging.disable(logging.CRITICAL)
    os.environ.setdefault("TERM", "dumb")
    peer: Peer | None = None
    for line in sys.stdin:
        message = json.loads(line)
        answer: dict[str, Any] = {}
        with contextlib.redirect_stdout(io.StringIO()):
            if message["do"] == "start":
                peer = Peer(message["seed"])
            elif peer is None:
                answer = {"error": "start first"}
            else:
                answer = peer.ask() if message["do"] == "ask" else peer.tell(message)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
