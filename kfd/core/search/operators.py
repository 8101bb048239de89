"""Which operator asks for the next child, and what is due before any draw.

Due first, in this order: *repair* of a fresh failure (while repairs come out right as often as new kernels), then
*template* for a kernel near the best that was never tuned, then *simplify* for a best kernel that has grown long. Else
one of rewrite, patch and crossover by its share; crossover only when two cells are occupied. Pure rules over counts;
the draw itself belongs to the facade and the bandit.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Operator", "OperatorPolicy", "Standing", "due", "gain_of", "open_shares"]

REPAIRED = 0.05
"""Gain that a repair which became an elite counts for (its parent, a failure, is no measure)."""


class Operator(StrEnum):
    """How a child is asked for. ``initial`` is the task's own kernel, ``tune`` a point of a template's space and
    ``migrate`` an elite of another target's archive: these are asked of nobody."""

    INITIAL = "initial"
    REWRITE = "rewrite"
    PATCH = "patch"
    REPAIR = "repair"
    CROSSOVER = "crossover"
    TEMPLATE = "template"
    SIMPLIFY = "simplify"
    TUNE = "tune"
    MIGRATE = "migrate"


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorPolicy:
    """Shares and limits of the operators. Defaults: see docs/search.md."""

    rewrite: float = 0.6
    """Share of whole rewrites."""
    patch: float = 0.2
    """Share of SEARCH/REPLACE patches."""
    crossover: float = 0.0
    """Share of crossovers: the parent and the inspirations combined in one kernel; needs two occupied cells."""
    repair_depth: int = 0
    """Repairs in a row on one line of failures, while they come out right as often as new kernels do; 0 switches repair
    off."""
    template_every: int = 40
    """Evaluations between templates; 0 switches them off."""
    template_margin: float = 0.1
    """Fitness below the best within which other cells' elites are tuned too: a rewrite loses its parent's constants,
    so that a better cell looks worse until it is tuned. 0 tunes only the best."""
    simplify_every: int = 0
    """Evaluations between simplifications of a long best kernel; 0 switches them off."""
    simplify_above: float = 2.0
    """How many times the initial kernel's length a kernel is long."""

    def __post_init__(self) -> None:
        shares = (self.rewrite, self.patch, self.crossover)
        if not all(math.isfinite(share) and share >= 0 for share in shares) or not any(shares):
            raise ValueError("operator shares are not negative and one is positive")
        if (
            min(self.repair_depth, self.template_every, self.simplify_every, self.template_margin) < 0
            or self.simplify_above < 1
        ):
            raise ValueError("operator limits are not negative; simplify_above is at least 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What the due rules look at."""

    repairable: bool
    """A failure waits whose line is not too deep."""
    best: str
    """Digest of the best kernel; empty when there is none."""
    untuned: bool
    """Whether a kernel near the best was never tuned."""
    best_length_ratio: float
    """Length of the best kernel over the initial one's."""
    evaluations: int
    last_template: int
    """Evaluation count at the last template; negative when there was none."""
    last_simplify: int
    simplified: Collection[str]


def due(policy: OperatorPolicy, now: Standing) -> Operator | None:
    """The operator that must come next, or None when it is a matter of shares."""
    if now.repairable and policy.repair_depth > 0:
        return Operator.REPAIR
    if not now.best:
        return None
    if _is_time(policy.template_every, now.evaluations, now.last_template) and now.untuned:
        return Operator.TEMPLATE
    is_long = now.best_length_ratio >= policy.simplify_above
    if is_long and _is_time(policy.simplify_every, now.evaluations, now.last_simplify):
        return None if now.best in now.simplified else Operator.SIMPLIFY
    return None


def _is_time(every: int, evaluations: int, last: int) -> bool:
    return every > 0 and evaluations - max(0, last) >= every


def open_shares(
    policy: OperatorPolicy, elites: int, scale: Mapping[Operator, float] | None = None
) -> dict[Operator, float]:
    """Shares of the drawn operators that can be asked now; ``scale`` multiplies some (a plateau's reaction)."""
    shares = {Operator.REWRITE: policy.rewrite, Operator.PATCH: policy.patch}
    if elites >= 2:
        shares[Operator.CROSSOVER] = policy.crossover
    factors = scale or {}
    found = {operator: share * factors.get(operator, 1.0) for operator, share in shares.items()}
    positive = {operator: share for operator, share in found.items() if share > 0}
    # A configuration that only crosses over has to begin somehow.
    return positive or {Operator.REWRITE: 1.0}


def gain_of(operator: Operator, delta: float, *, kept: bool) -> float:
    """What a child counts for its model, operator and prompt. ``delta``: its fitness less its parent's; ``kept``:
    whether it became an elite."""
    return max(0.0, delta) if operator is not Operator.REPAIR else REPAIRED * kept
