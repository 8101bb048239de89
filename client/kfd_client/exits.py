"""Exit codes, which are stable, and the failures that carry them."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["Exit", "Failure"]


class Exit(IntEnum):
    """What the shell sees."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    NOT_ALLOWED = 4
    UNREACHABLE = 5
    WRONG_STATE = 6
    BUDGET = 7
    RUNNING = 8
    NOTHING_BETTER = 9
    INCIDENT = 10
    INTERRUPTED = 130


class Failure(Exception):
    """A command cannot go on: what happened, what to type next, and the exit code."""

    def __init__(self, text: str, *, code: Exit, mend: str = "", file: str = "", line: int = 0) -> None:
        super().__init__(text)
        self.text = text
        self.code = code
        self.mend = mend
        self.file = file
        self.line = line
