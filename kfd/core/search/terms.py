"""The terms of models: what a call may be long and what its tokens cost, as a campaign found them at its submission.

A campaign keeps them, so that its reservations, its replay and its restart are the same whatever the configuration
says later. Prices are micro-money (millionths of the currency) for a million tokens: integers add up the same in any
order. An unknown price is None, which is not zero (peer faults, F17).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kfd.core.search.budgets import Amount, Limits, call_bound

__all__ = ["Bound", "ModelTerms", "cost_of", "draft_bound", "priced", "terms_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTerms:
    """One model as a campaign may ask it. All counts are tokens."""

    name: str
    max_input_tokens: int
    """Longest prompt, the turns of a conversation included."""
    max_output_tokens: int
    """Longest answer, hidden reasoning included."""
    raised_output_tokens: int
    """Longest answer when the one before was cut off; not below ``max_output_tokens``."""
    input_price: int | None = None
    """Micro-money for a million tokens of prompts."""
    output_price: int | None = None
    """Micro-money for a million tokens of answers."""
    is_limited: bool = True
    """Whether the provider is told the longest answer; without that nothing bounds what an answer costs."""

    @property
    def price(self) -> tuple[int, int] | None:
        """Both prices, or None when they are unknown."""
        if self.input_price is None or self.output_price is None:
            return None
        return self.input_price, self.output_price


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """Tokens that something may use at most: those of prompts and those of answers, which cost differently."""

    input_tokens: int
    output_tokens: int


def terms_of(terms: Sequence[ModelTerms], model: str) -> ModelTerms | None:
    """Terms of a model by its configured name; None when none are known (recordings and people have none).

    A name that is not there lets the generator choose among all: then the shortest prompt, the longest answers and the
    highest prices hold.
    """
    for one in terms:
        if one.name == model:
            return one
    if not terms:
        return None
    inputs = [one.input_price for one in terms]
    outputs = [one.output_price for one in terms]
    return ModelTerms(
        name=model,
        max_input_tokens=min(one.max_input_tokens for one in terms),
        max_output_tokens=max(one.max_output_tokens for one in terms),
        raised_output_tokens=max(one.raised_output_tokens for one in terms),
        input_price=None if None in inputs else max(price for price in inputs if price is not None),
        output_price=None if None in outputs else max(price for price in outputs if price is not None),
    )


def draft_bound(terms: ModelTerms | None, asks_again: int) -> Bound:
    """Tokens of all calls that one draft may make: the first, and ``asks_again`` more with a raised limit."""
    if terms is None:
        return Bound(input_tokens=0, output_tokens=0)
    return Bound(
        input_tokens=(1 + asks_again) * terms.max_input_tokens,
        output_tokens=terms.max_output_tokens + asks_again * terms.raised_output_tokens,
    )


def cost_of(terms: ModelTerms | None, input_tokens: int, output_tokens: int) -> Amount:
    """What these tokens cost: money where the price is known, rounded up to a millionth."""
    return call_bound(input_tokens, output_tokens, None if terms is None else terms.price, Limits())


def priced(terms: ModelTerms | None, input_tokens: int, output_tokens: int) -> float | None:
    """The same as money for the bandit, unrounded; None where the price is unknown."""
    if terms is None or terms.price is None:
        return None
    return (input_tokens * terms.price[0] + output_tokens * terms.price[1]) / 1e12
