"""Budgets: reserved before spending, settled after, never exceeded.

A reservation is what something may cost at most; it is granted only if every limit still holds with everything that is
reserved or spent. Settling replaces it by what it did cost. Money is in millionths of the currency and time in
nanoseconds: integers add up the same in any order. A model without a known price cannot be reserved for under a money
limit: its price is not zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields

__all__ = ["ZERO", "Account", "Amount", "Limits", "call_bound"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """A sum of everything that is budgeted."""

    micro_money: int = 0
    tokens: int = 0
    device_ns: int = 0

    def __post_init__(self) -> None:
        if min(self.micro_money, self.tokens, self.device_ns) < 0:
            raise ValueError("amounts are not negative")

    @property
    def values(self) -> Mapping[str, int]:
        """Each part by name."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def plus(self, other: Amount) -> Amount:
        """Both together."""
        return Amount(
            micro_money=self.micro_money + other.micro_money,
            tokens=self.tokens + other.tokens,
            device_ns=self.device_ns + other.device_ns,
        )

    def less(self, other: Amount) -> Amount:
        """What is left when a part of it is gone. Raises ValueError when it was not a part."""
        return Amount(
            micro_money=self.micro_money - other.micro_money,
            tokens=self.tokens - other.tokens,
            device_ns=self.device_ns - other.device_ns,
        )


ZERO = Amount()


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a campaign may spend; None is no limit."""

    micro_money: int | None = None
    tokens: int | None = None
    device_ns: int | None = None

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if value is not None and value < 0:
                raise ValueError(f"the budget {one.name} is not negative")

    def first_exceeded(self, amount: Amount) -> str | None:
        """Name of the first limit that the amount is above."""
        for name, value in amount.values.items():
            limit = getattr(self, name)
            if limit is not None and value > limit:
                return name
        return None


class Account:
    """One campaign's spending. ``spent`` and the open reservations are all there is to restore."""

    def __init__(self, limits: Limits, spent: Amount = ZERO, reserved: Iterable[tuple[str, Amount]] = ()) -> None:
        self._limits = limits
        self._spent = spent
        self._open: dict[str, Amount] = {}
        self._reserved = ZERO
        for key, amount in reserved:
            if key in self._open:
                raise ValueError(f"two reservations for {key}")
            self.hold(key, amount)

    @property
    def limits(self) -> Limits:
        """What may be spent."""
        return self._limits

    @property
    def spent(self) -> Amount:
        """What was settled."""
        return self._spent

    @property
    def reserved(self) -> Amount:
        """What is reserved."""
        return self._reserved

    @property
    def committed(self) -> Amount:
        """Spent and reserved together: what the limits are held against."""
        return self._spent.plus(self._reserved)

    @property
    def reservations(self) -> tuple[tuple[str, Amount], ...]:
        """Open reservations in the order of their keys."""
        return tuple(sorted(self._open.items()))

    def refusal(self, key: str, most: Amount) -> str | None:
        """Name of the limit that would be in the way if the key's reservation were ``most``; None when none is."""
        others = self.committed.less(self._open.get(key, ZERO))
        return self._limits.first_exceeded(others.plus(most))

    def reserve(self, key: str, most: Amount) -> str | None:
        """Reserve under a key. None when granted, else the name of the limit in the way (nothing is reserved then).

        Raises ValueError for a key that holds a reservation: the same work must not be asked twice.
        """
        if key in self._open:
            raise ValueError(f"{key} is reserved already")
        refused = self.refusal(key, most)
        if refused is None:
            self.hold(key, most)
        return refused

    def hold(self, key: str, most: Amount) -> None:
        """Make the key's reservation ``most``, unasked: what rows say is reserved was granted once, or has shrunk."""
        self._reserved = self._reserved.less(self._open.get(key, ZERO)).plus(most)
        self._open[key] = most

    def settle(self, key: str, cost: Amount) -> Amount:
        """Replace a reservation by its cost; what is booked. Settling again books nothing.

        A cost above its reservation is booked in full: money that is gone is gone, and the limit then refuses the
        next reservation.
        """
        if key not in self._open:
            return ZERO
        self.release(key)
        return self.book(cost)

    def book(self, cost: Amount) -> Amount:
        """Add what was really spent, in full even where more was spent than was reserved; what is booked."""
        self._spent = self._spent.plus(cost)
        return cost

    def release(self, key: str) -> None:
        """Give a reservation back unspent (the call never left)."""
        self._reserved = self._reserved.less(self._open.pop(key, ZERO))


def call_bound(input_tokens: int, max_output_tokens: int, price: tuple[int, int] | None, limits: Limits) -> Amount:
    """The most that a model call can cost.

    ``price``: micro-money per million input and output tokens; rounded up. Raises ValueError under a money limit when
    the price is unknown: name the price of the model or drop the limit.
    """
    if input_tokens < 0 or max_output_tokens < 0:
        raise ValueError("token counts are not negative")
    if price is None:
        if limits.micro_money is not None:
            raise ValueError("the model's price is unknown and money is limited: give its price or drop the limit")
        return Amount(tokens=input_tokens + max_output_tokens)
    cost = -(-(input_tokens * price[0] + max_output_tokens * price[1]) // 1_000_000)
    return Amount(micro_money=cost, tokens=input_tokens + max_output_tokens)
