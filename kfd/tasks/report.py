"""Collecting what is wrong with a package, so that a person mends it in one go."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from kfd.base.failure import BadInput

__all__ = ["Problems", "nearest", "shown"]

_MAX_PROBLEMS = 100


class Problems:
    """Problems found so far, in order."""

    def __init__(self) -> None:
        self.found: list[BadInput] = []

    def add(self, message: str, *, file: str, line: int = 0, mend: str) -> None:
        """Note one problem; beyond the first hundred they are no help and are dropped."""
        if len(self.found) < _MAX_PROBLEMS:
            self.found.append(BadInput(message, file=file, line=line, mend=mend))


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word that ``word`` most likely means, or empty."""
    candidates = list(known)
    found = difflib.get_close_matches(word.lower()[:64], candidates, n=1, cutoff=0.6)
    return found[0] if found else ""


def shown(value: object) -> str:
    """A stranger's value for a message: printable and short."""
    text = repr(value)
    text = text if len(text) <= 60 else f"{text[:57]}..."
    return "".join(letter if letter.isprintable() else "?" for letter in text)
