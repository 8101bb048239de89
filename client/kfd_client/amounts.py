"""Amounts as people type them: money, and spans of time with their unit. Types of options for click."""

from __future__ import annotations

import re
from decimal import ROUND_DOWN, Decimal, InvalidOperation

import click

__all__ = ["money", "span"]

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_MOST_MONEY = Decimal(10**9)
_MOST_SECONDS = 10 * 366 * 86_400


def money(text: str) -> int:
    """Millionths of money in the currency of the daemon's prices, from ``5`` or ``2.50``; rounded down.

    Raises BadParameter for what is no amount above 0.
    """
    try:
        amount = Decimal(text)
    except InvalidOperation:
        raise click.BadParameter(f"{text!r} is no amount of money, such as 5 or 2.50") from None
    if not amount.is_finite() or not 0 < amount <= _MOST_MONEY:
        raise click.BadParameter(f"{text!r} is not above 0 and at most {_MOST_MONEY}")
    micro = int((amount * 1_000_000).to_integral_value(ROUND_DOWN))
    if not micro:
        raise click.BadParameter(f"{text!r} is less than a millionth")
    return micro


def span(text: str) -> int:
    """Nanoseconds from a number with its unit: ``90s``, ``30m``, ``2h`` or ``1.5d``.

    Raises BadParameter for what is no span above 0.
    """
    found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?) ?([smhd])", text)
    if found is None:
        raise click.BadParameter(f"{text!r} is no span of time: give a number and s, m, h or d, such as 90m or 2h")
    seconds = Decimal(found[1]) * _UNITS[found[2]]
    if not 0 < seconds <= _MOST_SECONDS:
        raise click.BadParameter(f"{text!r} is not above 0 and at most ten years")
    return int(seconds * 1_000_000_000)
