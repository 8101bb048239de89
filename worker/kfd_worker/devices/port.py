"""What a device is to the launcher and its agent."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Device"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One thing that a run slot stands for."""

    id: str
    name: str
    facts: tuple[tuple[str, str], ...] = ()
