"""Money as whole millionths of a currency: sums are the same in any order. Which currency it is says nobody here."""

from __future__ import annotations

__all__ = ["money_text"]


def money_text(micro_money: int) -> str:
    """Millionths for people: ``1.25``, ``5.00``, ``0.000125``; exact, with two digits or as many as it needs."""
    whole, part = divmod(micro_money, 1_000_000)
    digits = f"{part:06d}".rstrip("0")
    return f"{whole}.{digits:0<2}"
