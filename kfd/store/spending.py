"""What campaigns have spent: one row for each key, to which every cost is added in the transaction that settles it."""

from __future__ import annotations

from kfd.core.commands import SaveSpending
from kfd.core.search.budgets import Amount
from kfd.store.rows import Row

__all__ = ["ADD", "SPENT", "amount_from_row", "spending_row"]

ADD = (
    "INSERT INTO spending (campaign, key, micro_money, tokens, device_ns) VALUES (?, ?, ?, ?, ?) "
    "ON CONFLICT (campaign, key) DO UPDATE SET micro_money = micro_money + excluded.micro_money, "
    "tokens = tokens + excluded.tokens, device_ns = device_ns + excluded.device_ns"
)
"""Adds one cost. A batch that was rolled back added nothing, so writing it again adds it once."""

SPENT = (
    "SELECT coalesce(sum(micro_money), 0), coalesce(sum(tokens), 0), coalesce(sum(device_ns), 0) FROM spending "
    "WHERE campaign = ?"
)
"""The one row of one campaign."""


def spending_row(command: SaveSpending) -> Row:
    """Row in the order of ``ADD``."""
    cost = command.cost
    return (command.campaign, command.key, cost.micro_money, cost.tokens, cost.device_ns)


def amount_from_row(row: Row) -> Amount:
    """A sum from the row of ``SPENT``."""
    return Amount(micro_money=row[0], tokens=row[1], device_ns=row[2])
