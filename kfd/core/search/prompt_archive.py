"""The archive of prompt variants: what the evolvable regions say, who their children were, which one to use.

Regions are philosophy, strategies, pitfalls, analysis. Every ``period`` judged children a meta-prompter is asked to
change a variant by SEARCH/REPLACE inside regions that are not pinned (at most three mutations each time); its input is
true outcomes. A variant's credit is the mean of its children's gains over their parents, shrunk towards the mean of
all, not the best child ever (the release's maximum favours whoever was asked most). Rows restore everything; credits go
by the variant's id, a digest of its text, never by position.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from kfd.core.dice import Dice

__all__ = [
    "MAX_REGION",
    "Edit",
    "EditError",
    "PromptArchive",
    "PromptPolicy",
    "Region",
    "Variant",
    "mutated",
    "variant_id",
]

MAX_REGION = 8000
"""Characters of a region."""


class Region(StrEnum):
    """The parts of the prompt that evolve."""

    PHILOSOPHY = "philosophy"
    STRATEGIES = "strategies"
    PITFALLS = "pitfalls"
    ANALYSIS = "analysis"


class EditError(ValueError):
    """A mutation that cannot be applied; the text says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One SEARCH/REPLACE inside one region."""

    region: Region
    search: str
    replace: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One prompt variant with its record: the row it is stored as."""

    id: str
    regions: Mapping[Region, str]
    parent: str = ""
    """Id of the variant that it was made from; empty for the first."""
    generation: int = 0
    children: int = 0
    gain: float = 0.0
    """Sum of the children's gains in fitness over their parents; failures are 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptPolicy:
    """How the regions of the prompt evolve. Off by default; the paper has a period of 10."""

    size: int = 16
    """Variants that the archive holds; the first one is never dropped."""
    period: int = 0
    """Judged children between updates; 0 switches prompt evolution off."""
    mutations: int = 3
    """Variants changed at one update, and edits in one answer, at most 3."""
    explore: float = 0.2
    """Share of uniform draws among variants."""
    prior: float = 5.0
    """Children that the mean of all variants weighs in a variant's credit."""
    min_children: int = 3
    """Children before a variant may be a parent or be dropped."""
    pinned: tuple[Region, ...] = ()
    """Regions that stay as they are: `philosophy`, `strategies`, `pitfalls`, `analysis`."""
    model: str = ""
    """Name of the model that changes prompts; empty draws from the campaign's models by their shares."""

    def __post_init__(self) -> None:
        if not 1 <= self.size <= 256 or self.period < 0 or not 1 <= self.mutations <= 3:
            raise ValueError("a prompt archive holds 1 to 256 variants and makes 1 to 3 mutations")
        if not 0 <= self.explore <= 1 or self.prior <= 0 or self.min_children < 1:
            raise ValueError("explore is 0 to 1, prior is positive, min_children at least 1")
        if self.period and set(self.pinned) == set(Region):
            raise ValueError("every region is pinned: leave one to change, or switch the period off")


def variant_id(regions: Mapping[Region, str]) -> str:
    """Id of a text: equal texts are one variant."""
    text = "\0".join(regions.get(region, "") for region in Region)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def mutated(parent: Variant, edits: Sequence[Edit], pinned: Collection[Region]) -> Variant:
    """The variant that edits make. Raises EditError: none given, pinned region, text not found, nothing changed."""
    if not edits:
        raise EditError("no edit was given; write at least one SEARCH/REPLACE block")
    regions = dict(parent.regions)
    for edit in edits:
        if edit.region in pinned:
            raise EditError(f"{edit.region.value} is pinned by the user; change another region")
        text = regions.get(edit.region, "")
        if not edit.search and text:
            raise EditError(f"an empty SEARCH fits only an empty region; {edit.region.value} holds text")
        if text.count(edit.search) != 1 and edit.search:
            what = "was not found" if edit.search not in text else "is there more than once"
            raise EditError(f"the SEARCH text {what} in {edit.region.value}; quote a unique passage exactly")
        regions[edit.region] = edit.replace if not edit.search else text.replace(edit.search, edit.replace)
        if len(regions[edit.region]) > MAX_REGION:
            raise EditError(f"{edit.region.value} would be longer than {MAX_REGION} characters; shorten it")
    identity = variant_id(regions)
    if identity == parent.id:
        raise EditError("the edits change nothing")
    return Variant(id=identity, regions=regions, parent=parent.id, generation=parent.generation + 1)


class PromptArchive:
    """At most ``size`` variants. The first one is never dropped: there is always a plain prompt to go back to."""

    def __init__(self, policy: PromptPolicy, variants: Iterable[Variant], judged: int = 0) -> None:
        self._policy = policy
        self._variants: dict[str, Variant] = {}
        for variant in variants:
            if variant.id in self._variants:
                raise ValueError(f"two prompt variants with the id {variant.id}")
            self._variants[variant.id] = variant
        if not self._variants:
            raise ValueError("a prompt archive starts with one variant")
        self._first = next(iter(self._variants))
        self._judged = judged

    @property
    def variants(self) -> tuple[Variant, ...]:
        """Rows in the order of their making."""
        return tuple(self._variants.values())

    @property
    def children(self) -> int:
        """Children judged so far: the rest of what restores it."""
        return self._judged

    def get(self, identity: str) -> Variant | None:
        """A variant that is held; None for one that is unknown or was dropped."""
        return self._variants.get(identity)

    def credit(self, variant: Variant) -> float:
        """Mean gain of its children, shrunk towards the mean of all."""
        return self._shrunk(variant, self.mean())

    def mean(self) -> float:
        """Mean gain of the children of all variants that are held."""
        everyone = sum(one.children for one in self._variants.values())
        return sum(one.gain for one in self._variants.values()) / everyone if everyone else 0.0

    def _shrunk(self, variant: Variant, overall: float) -> float:
        prior = self._policy.prior
        return (variant.gain + prior * overall) / (variant.children + prior)

    def choose(self, dice: Dice, ordinal: int) -> Variant:
        """The variant for candidate ``ordinal``: by credit, with a bonus for the untried, or uniformly."""
        options = list(self._variants.values())
        if len(options) == 1:
            return options[0]
        if dice.roll("prompt:explore", ordinal) < self._policy.explore:
            return dice.pick(options, [1.0] * len(options), "prompt", ordinal)
        overall = self.mean()
        worth = [self._shrunk(one, overall) for one in options]
        top = max(worth)
        bonus = [1.0 / math.sqrt(1 + one.children) for one in options]
        weights = [
            (credit / top if top > 0 else 1.0) ** 3 + 0.5 * extra for credit, extra in zip(worth, bonus, strict=True)
        ]
        return dice.pick(options, weights, "prompt", ordinal)

    def judged(self, identity: str, gain: float) -> None:
        """A child of a variant was judged. A variant that was dropped meanwhile is not missed."""
        if not math.isfinite(gain):
            raise ValueError(f"gain of a child of prompt {identity} must be finite")
        self._judged += 1
        variant = self._variants.get(identity)
        if variant is not None:
            self._variants[identity] = replace(
                variant, children=variant.children + 1, gain=variant.gain + max(0.0, gain)
            )

    def is_due(self) -> bool:
        """Whether the child that was just judged completes a period: ask once after each judged child."""
        period = self._policy.period
        return period > 0 and self._judged > 0 and self._judged % period == 0

    def parents(self, dice: Dice, ordinal: int) -> tuple[Variant, ...]:
        """Variants to mutate at this update, at most ``mutations``, best credit first."""
        known = [one for one in self._variants.values() if one.children >= self._policy.min_children]
        ranked = sorted(known, key=lambda one: (-self.credit(one), dice.roll(f"mutate:{one.id}", ordinal)))
        return tuple(ranked[: self._policy.mutations])

    def add(self, variant: Variant) -> bool:
        """Take a new variant in; False when its text is there already. The weakest tried one makes room."""
        if variant.id in self._variants:
            return False
        if len(self._variants) >= self._policy.size:
            least = self._policy.min_children
            rest = [one for one in self._variants.values() if one.id != self._first]
            tried = [one for one in rest if one.children >= least] or rest
            if not tried:
                return False
            del self._variants[min(tried, key=lambda one: (self.credit(one), one.id)).id]
        self._variants[variant.id] = variant
        return True
