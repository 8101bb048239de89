"""Whose fault, and what now.

Verdicts, incidents and refusals are data (``kfd.base.work``); only these are raised:

    KfdError
     +- CallerError           the caller asked for something that cannot be had; tells what to do
     |   +- NotFound
     |   +- WrongState
     |   +- NotAllowed
     |   +- BadInput          carries file, line and mend
     |   +- Exhausted         a limit or a full disk: try later
     +- Bug                   ours: an illegal transition, a broken invariant, an undecodable row

A class's docstring is its message unless one is given.
"""

from __future__ import annotations

__all__ = ["BadInput", "Bug", "CallerError", "Exhausted", "KfdError", "NotAllowed", "NotFound", "WrongState"]


class KfdError(Exception):
    """Something went wrong in kfd."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or type(self).__doc__)


class CallerError(KfdError):
    """The request cannot be carried out."""

    reason = "CALLER_ERROR"

    def __init__(self, message: str | None = None, *, mend: str = "") -> None:
        super().__init__(message)
        self.mend = mend
        """What the caller should do next, as an imperative sentence; may be empty."""


class NotFound(CallerError):
    """No such thing."""

    reason = "NOT_FOUND"


class WrongState(CallerError):
    """The thing is in a state that does not allow this."""

    reason = "WRONG_STATE"


class NotAllowed(CallerError):
    """This caller may not do that."""

    reason = "NOT_ALLOWED"


class Exhausted(CallerError):
    """A limit is reached or space has run out."""

    reason = "EXHAUSTED"


class BadInput(CallerError):
    """The input is malformed."""

    reason = "BAD_INPUT"

    def __init__(self, message: str | None = None, *, file: str = "", line: int = 0, mend: str = "") -> None:
        super().__init__(message, mend=mend)
        self.file = file
        self.line = line
        """1-based line in ``file``; 0 when no line applies."""

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}: " if self.file and self.line else f"{self.file}: " if self.file else ""
        return f"{where}{super().__str__()}"


class Bug(KfdError):
    """An invariant of kfd does not hold; please report it."""
