"""Device kernels that cheat, fail or look as if they did, each with the verdicts it may get.

A program is a text for the EVOLVE block of a task that ships. ``ok`` in ``expect`` marks an honest look-alike; nothing
else may ever be ``ok``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Program", "with_block"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One kernel and what must come of it."""

    name: str
    task: str
    block: str
    expect: frozenset[str]

    @property
    def honest(self) -> bool:
        """Whether it is a look-alike that must pass."""
        return self.expect == {"ok"}


def with_block(text: str, block: str) -> str:
    """A kernel file with another EVOLVE block."""
    found = re.search(r"(?s)(^[^\n]*\[EVOLVE_START\]\n)(.*)(^[^\n]*\[EVOLVE_END\])", text, re.M)
    if found is None:
        raise ValueError("no EVOLVE block")
    return text[: found.start(2)] + block.strip("\n") + "\n" + text[found.end(2) :]
