"""What a template declares, as the sweep sees it: tunables, conditions, and how much of the space is measured."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kfd.base.expr import ExprError, evaluate
from kfd.core.search.sweep import Space, SweepPolicy

__all__ = ["Declared", "TunePolicy", "Values"]

Values = tuple[tuple[str, int], ...]
"""A point of a space: the chosen value of each tunable, by name."""

_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TunePolicy:
    """Budget of the sweep of one template. Its points are candidates: built, run, judged and charged like any other."""

    budget: int = 24
    """Points measured of one template, its defaults included; 1 switches sweeps off."""
    exhaustive: int = 16
    """Allowed points up to which all are measured."""
    spread: int = 5
    """Points measured before the model of the sweep is believed."""

    def __post_init__(self) -> None:
        if not 1 <= self.budget <= 4096 or self.spread < 1 or self.exhaustive < 0:
            raise ValueError("a sweep's budget is 1 to 4096, spread at least 1, exhaustive not negative")

    def sweep(self) -> SweepPolicy:
        """As the sweep wants it."""
        return SweepPolicy(budget=self.budget, exhaustive=self.exhaustive, spread=self.spread)


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """Tunables of one kernel. The first value of each is its default."""

    tunables: tuple[tuple[str, tuple[int, ...]], ...]
    conditions: tuple[tuple[str, str, str], ...] = ()
    """(left, comparison, right): integer expressions over the tunables."""
    listed: tuple[tuple[int, ...], ...] = ()
    """The only points there are, when the template lists them; values in the order of the tunables."""

    def __post_init__(self) -> None:
        if not self.tunables or not all(values for _, values in self.tunables):
            raise ValueError("a declared space has at least one tunable and every tunable at least one value")
        if any(sign not in _COMPARE for _, sign, _ in self.conditions):
            raise ValueError(f"a condition compares with one of {', '.join(_COMPARE)}")

    def space(self) -> Space:
        """As the sweep wants it. Conditions are read once for each point, however often a sweep looks at it."""
        known: dict[tuple[int, ...], bool] = {}
        listed = frozenset(self.listed)

        def allowed(values: Mapping[str, int]) -> bool:
            key = tuple(values.values())
            if key not in known:
                known[key] = (not listed or key in listed) and self._allowed(values)
            return known[key]

        return Space(
            names=tuple(name for name, _ in self.tunables),
            values=tuple(values for _, values in self.tunables),
            allowed=allowed,
        )

    def _allowed(self, values: Mapping[str, int]) -> bool:
        """Whether every condition holds; one that has no value (a division by zero) does not."""
        try:
            return all(
                _COMPARE[sign](evaluate(left, values), evaluate(right, values)) for left, sign, right in self.conditions
            )
        except ExprError:
            return False
