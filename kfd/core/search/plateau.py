"""Plateaus: when the search reacts and when it stops.

A plateau is ``patience`` evaluations without a best that is better by ``min_gain``. Each further ``patience`` moves one
step along the reactions; the next better best ends them. After the last reaction has had its time without success the
search may stop. It may stop at the roofline too: a kernel that moves its data once, nearly as fast as the machine
copies, has little left to gain. Pure functions of counts, so that a restart reacts alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["PlateauPolicy", "Progress", "Reaction", "reaction", "stop_reason"]


class Reaction(StrEnum):
    """What a plateau changes, mildest first."""

    WIDEN = "widen_exploration"
    """Parents are drawn uniformly."""
    SWITCH = "switch_operators"
    """Rewrites and crossovers in place of patches."""
    RESTART = "restart_island"
    """The weakest island begins again from the best elite's neighbourhood."""
    META = "meta_prompt"
    """A new prompt variant is asked for out of turn."""


_ORDER = tuple(Reaction)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlateauPolicy:
    """How long is too long."""

    patience: int = 0
    """Evaluations without a better best; 0 switches reactions and this stop off."""
    min_gain: float = 0.005
    """Gain in fitness that counts as better."""
    stop: bool = False
    """Whether to end after the last reaction's patience."""
    roofline_share: float = 0.0
    """Share of a plain copy's speed (``kfd.base.roofline``) at which the search ends; 0 switches this stop off."""

    def __post_init__(self) -> None:
        if self.patience < 0 or self.min_gain < 0 or not 0 <= self.roofline_share <= 1:
            raise ValueError("patience and min_gain are not negative, roofline_share is 0 to 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The best so far and when it came."""

    best: float = 0.0
    at: int = 0
    """Evaluations when the best came."""

    def after(self, fitness: float, evaluations: int, policy: PlateauPolicy) -> Progress:
        """Progress when an elite of this fitness is there after so many evaluations."""
        if fitness >= self.best + policy.min_gain or (self.best == 0.0 and fitness > 0):
            return Progress(best=fitness, at=evaluations)
        return self


def reaction(progress: Progress, evaluations: int, policy: PlateauPolicy) -> Reaction | None:
    """The reaction in force; each holds for ``patience`` evaluations, the last one goes round again."""
    if policy.patience == 0:
        return None
    stale = (evaluations - progress.at) // policy.patience
    return None if stale < 1 else _ORDER[(stale - 1) % len(_ORDER)]


def stop_reason(
    progress: Progress, evaluations: int, policy: PlateauPolicy, roofline: float | None = None
) -> str | None:
    """Why to stop, in words, or None. ``roofline``: share of the attainable speed that the best reaches."""
    if roofline is not None and policy.roofline_share > 0 and roofline >= policy.roofline_share:
        return f"the best reaches {roofline:.0%} of the roofline"
    if not policy.stop or policy.patience == 0:
        return None
    waited = evaluations - progress.at
    if waited < policy.patience * (len(_ORDER) + 1):
        return None
    return f"no better kernel in {waited} evaluations, after every reaction to a plateau"
