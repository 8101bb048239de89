"""How a campaign's search stands, in lines for people."""

from __future__ import annotations

from collections.abc import Sequence

from kfd.api.v1 import control_pb2
from kfd.base.plain import plain_line

__all__ = ["count_text", "standing_lines"]


def count_text(number: int, noun: str) -> str:
    """``1 round``, ``2 rounds``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def standing_lines(search: control_pb2.Search) -> list[str]:
    """What the search has asked for, where that is more than one thing, and what it reacts to."""
    lines = []
    for kind, label in (("operator", "asked"), ("model", "models"), ("prompt", "prompts")):
        shares = [share for share in search.asked if share.kind == kind]
        if len(shares) > 1 or (shares and kind == "operator"):
            lines.append(f"{label:<8} {_shares(shares, search.recent)}")
    if search.hinted:
        lines.append(f"hints    in {count_text(search.hinted, 'question')}; the newest: {_words(search.hints)}")
    if search.points:
        points = f"{count_text(search.points, 'point')} of {count_text(search.templates, 'template')}"
        lines.append(f"sweeps   {points}, now {plain_line(search.swept, 60)}")
    if search.reacting:
        now = f"now {plain_line(search.reaction, 40)}" if search.reaction else "over now"
        lines.append(f"plateau  {now}; {count_text(search.reacting, 'question')} asked during one")
    if search.roofline > 0:
        lines.append(f"roof     the best reaches {search.roofline:.0%} of a plain copy's speed")
    return lines


def _shares(shares: Sequence[control_pb2.Share], recent: int) -> str:
    """Each name with how often it was asked, of all and of the newest questions: a shift shows in the second."""
    total = sum(share.asked for share in shares)
    parts = []
    for share in shares[:6]:
        part = f"{plain_line(share.name, 40)} {share.asked}"
        if total > recent > 0:
            part += f" ({share.recent} of the newest {recent})"
        parts.append(part)
    more = f", and {len(shares) - 6} more" if len(shares) > 6 else ""
    return ", ".join(parts) + more


def _words(hints: Sequence[str]) -> str:
    return " ".join(plain_line(hint, 200) for hint in hints)
