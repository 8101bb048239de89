"""Where answers come from: the port that every generator implements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from kfd.base.ids import CampaignId, CandidateId
from kfd.base.instant import Span
from kfd.core.search.terms import Bound

__all__ = ["Answer", "Ask", "FollowUp", "Generator", "Miss", "ProviderFault", "Usage"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowUp:
    """Two more turns of a conversation."""

    answer: str
    """What the model said, perhaps shortened."""
    reply: str
    """What it is told then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One question to a generator."""

    campaign: CampaignId
    candidate: CandidateId
    operator: str
    parent: str
    """Hex SHA-256 of the parent's kernel text; ``nothing`` when there is no parent."""
    nth: int
    """How often this campaign asked for this operator on this parent before."""
    system: str
    user: str
    model: str
    """Configured model to ask; empty lets the generator choose by weight."""
    choice: float
    """A number in [0, 1) drawn by the campaign's dice: picks among weighted models, so that asks are
    replayable."""
    follow_up: tuple[FollowUp, ...] = ()
    """Turns after ``user``; the answer wanted is the one to the last reply."""
    max_output_tokens: int | None = None
    """Longest answer; None: as the model is configured."""
    most_tokens: Bound | None = None
    """What all attempts together may use: what the campaign has reserved. None: no bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one logical call, all attempts together; None where tokens mean nothing (recordings, people)."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    attempts: int = 1
    wait_ns: Span = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a model said."""

    text: str
    finish_reason: str
    """stop, length, content_filter, or another word of the provider's."""
    model: str
    usage: Usage = Usage()


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """There is no answer to this question and there will be none (no recording): an event, not an error."""

    text: str


class ProviderFault(Exception):
    """The provider failed after all allowed attempts. ``usage`` is what they used; it is spent.

    ``kind``: rate_limit, overload, money, credentials, bad_request, stall, connection, too_long, other.
    ``retry_after_ns`` is when the campaign may ask again; None means that it makes no sense until a person
    acts.
    """

    def __init__(self, kind: str, text: str, *, retry_after_ns: Span | None, usage: Usage = Usage()) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text
        self.retry_after_ns = retry_after_ns
        self.usage = usage


class Generator(Protocol):
    """Laws: ``answer`` ends within the generator's deadline for one logical call, whatever the provider does;
    cancelling it leaves nothing running; it never retries behind the caller's back beyond that deadline. An attempt
    that could use more than is left of ``most_tokens`` is not begun: the call ends as a fault that may be asked again
    later. What a provider does not count is counted from above, attempts that broke included. A generator that holds
    no conversations (recordings, people) is given no follow-up."""

    name: str

    async def answer(self, ask: Ask) -> Answer | Miss:
        """Answer one question. Raises ProviderFault."""
        ...

    async def close(self) -> None:
        """Release connections; no call is in flight."""
        ...
