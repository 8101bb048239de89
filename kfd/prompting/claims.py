"""What a model claims about its own kernel: the algorithm's level, in one line of its prose.

The last and weakest evidence (DESIGN, section 7): it counts only on the algorithm axis, and only where the source shows
nothing. Levels are the paper's: direct, fused, reformulated, less work.
"""

from __future__ import annotations

import re

from kfd.core.search.archive import Cell
from kfd.prompting.fences import prose

__all__ = ["WORDS", "claimed_algorithm", "with_claim"]

WORDS = ("direct", "fused", "reformulated", "reduced")
"""By level, as the prompt asks for them."""

_LINE = re.compile(rf"^[ \t>*_#-]{{0,8}}algorithm[ \t*_]{{0,4}}:[ \t*_`]{{0,6}}({'|'.join(WORDS)})\b", re.I | re.M)
_MAX_TEXT = 1 << 20


def claimed_algorithm(answer: str) -> int | None:
    """The level that an answer claims in its prose, the last one when there are several; None without a claim."""
    if len(answer) > _MAX_TEXT:
        return None
    found = _LINE.findall(prose(answer.replace("\r\n", "\n")))
    return WORDS.index(found[-1].lower()) if found else None


def with_claim(cell: Cell, claim: int | None) -> Cell:
    """The source's cell with the claim in it, where the source shows no algorithm but the direct one."""
    memory, algorithm, parallelism = cell
    return (memory, claim, parallelism) if claim is not None and algorithm == 0 else cell
