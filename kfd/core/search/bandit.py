"""A cost-aware bandit over model x operator x prompt variant, restored by name.

An arm's worth is gain per cost: decayed sums of ``max(0, child fitness - parent fitness)`` and of what was spent (a
model call at its price plus an evaluation). A new arm starts from the mean of its three names' worth, held with the
weight of ``prior`` pulls, so that a new prompt variant of a good model is not a stranger (128 arms and a few hundred
pulls would otherwise never meet). Choice is probability matching: a share proportional to worth, and a floor.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kfd.core.dice import Dice

__all__ = ["MAX_ARMS", "Arm", "Bandit", "BanditPolicy", "Credit"]

MAX_ARMS = 1024
"""Names kept; a long campaign makes more prompt variants than are worth remembering."""


_CLEARLY = 1.1
"""Worth over the leader's that takes the lead."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Arm:
    """One way of asking, by name: names survive a restart and a changed configuration, positions do not."""

    model: str
    operator: str
    prompt: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Credit:
    """What is known of one arm: the row it is stored as."""

    arm: Arm
    pulls: int
    gain: float
    """Decayed sum of gains in fitness."""
    cost: float
    """Decayed sum of costs, in the unit of the policy's ``evaluation_cost``."""

    def __post_init__(self) -> None:
        numbers = (self.gain, self.cost)
        if self.pulls < 0 or not all(math.isfinite(number) and number >= 0 for number in numbers):
            raise ValueError(f"credit of {self.arm}: counts and sums are finite and not negative")


@dataclass(frozen=True, slots=True, kw_only=True)
class BanditPolicy:
    """How fast it learns and how much it keeps trying."""

    prior: float = 4.0
    """Pulls that the mean of an arm's names weighs."""
    floor: float = 0.15
    """Share of choices that follow the given shares whatever was learnt."""
    decay: float = 0.99
    """Weight of an arm's past at each new pull of it."""
    evaluation_cost: float = 0.01
    """Cost of building and running one candidate, in money."""

    def __post_init__(self) -> None:
        if self.prior <= 0 or not 0 < self.floor <= 1 or not 0 < self.decay <= 1 or self.evaluation_cost <= 0:
            raise ValueError("prior and evaluation_cost are positive, floor and decay in (0, 1]")


class Bandit:
    """Credits by name. Restoring it from its credits gives the same choices."""

    def __init__(self, policy: BanditPolicy, rows: Iterable[Credit] = ()) -> None:
        self._policy = policy
        self._credits: dict[Arm, Credit] = {}
        for credit in rows:
            if credit.arm in self._credits:
                raise ValueError(f"two credits for {credit.arm}")
            self._credits[credit.arm] = credit

    @property
    def credits(self) -> tuple[Credit, ...]:
        """Rows, in the order of names."""
        return tuple(self._credits[arm] for arm in sorted(self._credits))

    def pulled(self, arm: Arm, *, gain: float, price: float) -> Credit:
        """Learn what one pull brought. ``gain``: fitness over the parent (negative counts as 0); ``price``: money.

        A failure is a gain of 0 at full cost. When too many names are known the least used one is forgotten. Raises
        ValueError for numbers that are none.
        """
        if not math.isfinite(gain) or not math.isfinite(price) or price < 0:
            raise ValueError(f"{arm}: gain must be finite, price finite and not negative")
        old = self._credits.get(arm)
        if old is None and len(self._credits) >= MAX_ARMS:
            del self._credits[min(self._credits, key=lambda name: (self._credits[name].pulls, name))]
        decay = self._policy.decay
        credit = Credit(
            arm=arm,
            pulls=(old.pulls if old else 0) + 1,
            gain=(old.gain * decay if old else 0.0) + max(0.0, gain),
            cost=(old.cost * decay if old else 0.0) + price + self._policy.evaluation_cost,
        )
        self._credits[arm] = credit
        return credit

    def worth(self, arms: Sequence[Arm]) -> list[float]:
        """Gain per cost of each arm, shrunk towards the mean of its names."""
        rows = self._credits.values()
        total_gain = sum(credit.gain for credit in rows)
        total_cost = sum(credit.cost for credit in rows)
        if total_cost <= 0:
            return [1.0] * len(arms)
        overall = total_gain / total_cost
        by_name: dict[tuple[str, str], list[float]] = {}
        pulls = sum(credit.pulls for credit in rows)
        unit = total_cost / pulls
        for credit in rows:
            arm = credit.arm
            for name in (("model", arm.model), ("operator", arm.operator), ("prompt", arm.prompt)):
                sums = by_name.setdefault(name, [0.0, 0.0])
                sums[0] += credit.gain
                sums[1] += credit.cost
        weight = self._policy.prior * unit
        found = []
        for arm in arms:
            means = []
            for name in (("model", arm.model), ("operator", arm.operator), ("prompt", arm.prompt)):
                gain, cost = by_name.get(name, (0.0, 0.0))
                means.append((gain + weight * overall) / (cost + weight))
            prior = sum(means) / 3
            own = self._credits.get(arm)
            gain, cost = (own.gain, own.cost) if own else (0.0, 0.0)
            found.append((gain + weight * prior) / (cost + weight))
        return found

    def lead(self, holder: Arm | None) -> Arm | None:
        """The arm that leads: worth clearly more than ``holder``, who led before; None while nobody has led yet.

        An arm can lead once it was pulled ``prior`` times, and takes the lead with a tenth more worth, so that two that
        are alike do not pass it to and fro.
        """
        known = [credit.arm for credit in self.credits if credit.pulls >= self._policy.prior and credit.gain > 0]
        if not known:
            return holder
        worth = dict(zip(known, self.worth(known), strict=True))
        best = max(known, key=lambda arm: (worth[arm], arm))
        if holder is None or holder not in worth:
            return best
        return best if worth[best] > _CLEARLY * worth[holder] else holder

    def choose(self, arms: Sequence[Arm], shares: Sequence[float], dice: Dice, ordinal: int) -> Arm:
        """An arm for candidate ``ordinal``. ``shares``: configured weights; an arm with share 0 is never chosen.

        Raises ValueError when no arm has a positive share.
        """
        policy = self._policy
        total = sum(shares)
        if total <= 0:
            raise ValueError("no arm may be chosen: give one a positive share")
        worth = [value * share for value, share in zip(self.worth(arms), shares, strict=True)]
        height = sum(worth)
        weights = [
            policy.floor * share / total + ((1 - policy.floor) * value / height if height > 0 else share / total)
            for value, share in zip(worth, shares, strict=True)
        ]
        return dice.pick(arms, weights, "arm", ordinal)
