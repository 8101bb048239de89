"""How a figure is printed (one JSON object a line, nothing else on standard output)."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass

__all__ = ["Figure", "report"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured figure with its bar."""

    figure: str
    value: float
    unit: str
    bar: float | None = None
    at_least: bool = True
    n: int = 1
    low: float | None = None
    high: float | None = None
    note: str = ""

    @property
    def ok(self) -> bool:
        """Whether the bar holds; a figure without a bar is only reported."""
        if self.bar is None:
            return True
        return self.value >= self.bar if self.at_least else self.value <= self.bar


def report(figures: list[Figure]) -> int:
    """Print the figures; the exit code."""
    for figure in figures:
        body = asdict(figure) | {"ok": figure.ok}
        del body["at_least"]
        sys.stdout.write(json.dumps(body) + "\n")
    sys.stdout.flush()
    return 0 if all(figure.ok for figure in figures) else 1
