"""The agent's session with the daemon, as a pure machine: register, be open, leave."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from kfd.base.instant import SECOND, Instant, Span
from kfd.base.work import LeaseRef
from kfd_worker.core.backoff import backoff
from kfd_worker.core.values import Policy

__all__ = [
    "Complain",
    "Exit",
    "Opened",
    "RegisterAnswer",
    "RegisterStatus",
    "SendLeave",
    "SendRegister",
    "SessionMachine",
    "SessionOutput",
]

WRONG_PROTOCOL_EXIT = 78
"""Exit status that the unit does not restart (EX_CONFIG)."""

_NAME_WAIT: Span = 10 * SECOND


class RegisterStatus(StrEnum):
    """What became of a registration."""

    OK = "ok"
    NAME_IN_USE = "name_in_use"
    WRONG_PROTOCOL = "wrong_protocol"
    RETRY = "retry"


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterAnswer:
    """Answer to a registration."""

    status: RegisterStatus
    text: str
    session: str
    boot: bytes
    policy: Policy
    acknowledged: tuple[LeaseRef, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SendRegister:
    """Register, with what is in the outbox."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """The session is open; its registration was sent at ``sent``."""

    answer: RegisterAnswer
    sent: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class SendLeave:
    """End the session in good order."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Complain:
    """Tell the operator."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """The agent's work is over."""

    code: int
    text: str = ""


SessionOutput: TypeAlias = SendRegister | Opened | SendLeave | Complain | Exit


class _State(StrEnum):
    CLOSED = "closed"
    REGISTERING = "registering"
    OPEN = "open"
    LEAVING = "leaving"


class SessionMachine:
    """``closed -> registering -> open -> leaving``; back to registering whenever the daemon forgot us."""

    def __init__(self) -> None:
        self._state = _State.CLOSED
        self._sent: Instant = 0
        self._again: Instant | None = None
        self._failures = 0

    @property
    def is_open(self) -> bool:
        """Whether slots may send."""
        return self._state is _State.OPEN

    def need(self, now: Instant) -> list[SessionOutput]:
        """A session is needed (at the start, or because a slot was told so)."""
        if self._state in (_State.REGISTERING, _State.LEAVING) or self._again is not None:
            return []
        return self._register(now)

    def registered(self, answer: RegisterAnswer, dice: float, now: Instant) -> list[SessionOutput]:
        """The registration was answered."""
        if self._state is not _State.REGISTERING:
            return []
        if answer.status is RegisterStatus.OK:
            self._state, self._failures = _State.OPEN, 0
            return [Opened(answer=answer, sent=self._sent)]
        self._state = _State.CLOSED
        if answer.status is RegisterStatus.WRONG_PROTOCOL:
            return [Exit(code=WRONG_PROTOCOL_EXIT, text=answer.text)]
        if answer.status is RegisterStatus.NAME_IN_USE:
            self._again = now + _NAME_WAIT
            return [Complain(text=answer.text)]
        self._failures += 1
        self._again = now + backoff(self._failures, dice)
        return []

    def register_failed(self, dice: float, now: Instant) -> list[SessionOutput]:
        """The registration was not answered."""
        if self._state is _State.REGISTERING:
            self._state = _State.CLOSED
            self._failures += 1
            self._again = now + backoff(self._failures, dice)
        return []

    def leave(self, reason: str) -> list[SessionOutput]:
        """All slots are idle and nothing more is wanted."""
        if self._state is _State.LEAVING:
            return []
        was, self._state, self._again = self._state, _State.LEAVING, None
        return [SendLeave(reason=reason)] if was is _State.OPEN else [Exit(code=0)]

    def left(self) -> list[SessionOutput]:
        """The leave was answered, or was not in time: either way we go."""
        return [Exit(code=0)] if self._state is _State.LEAVING else []

    def ticked(self, now: Instant) -> list[SessionOutput]:
        """Do what is due."""
        if self._again is None or now < self._again:
            return []
        return self._register(now)

    def next_wake(self) -> Instant | None:
        """When ``ticked`` should be called next."""
        return self._again

    def _register(self, now: Instant) -> list[SessionOutput]:
        self._state, self._sent, self._again = _State.REGISTERING, now, None
        return [SendRegister()]
