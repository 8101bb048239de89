"""A task that hardly ever compiles: the question that the frozen families do not ask, and that repairs are made for.

The landscape is ``rugged``; the models are those of ``model.py``, but each fails more often by half of all answers (so
that about seven new kernels in ten fail), and mends a shown failure as often as before. Written before the rule of
``kfd/core/search/odds.py`` was tried on it. It is in no comparison with others and has no bar.
"""

from __future__ import annotations

from dataclasses import replace

from benchmarks.search.landscape import Genome
from benchmarks.search.model import SimulatedModel, SimulatedPrompt, Talent

__all__ = ["HARSH", "HARSHER", "HarshModel"]

HARSH = "harsh"
"""Its name among the families."""

HARSHER = 0.5
"""What is added to the chance of a failure."""


class HarshModel(SimulatedModel):
    """The simulated model on a task that it does not know how to write for."""

    def _with_luck(self, child: Genome, parent: Genome, talent: Talent, prompt: SimulatedPrompt) -> Genome:
        return super()._with_luck(child, parent, replace(talent, fail=talent.fail + HARSHER), prompt)
