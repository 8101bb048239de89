"""One draft's conversation: a model whose answer holds no usable kernel is told why, and asked again.

A campaign says how often (``asks_again``; recordings and people never are), and its reservation holds for the whole
conversation: a question that could use more than is left of it, or that does not fit the model's window, is not put.
The answer that counts is the last one that came; what all of them used adds up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from kfd.core.campaign.state import CampaignSpec
from kfd.core.search.terms import Bound, ModelTerms, draft_bound, terms_of
from kfd.llm.port import Answer, Ask, FollowUp, Generator, Miss, ProviderFault, Usage
from kfd.prompting import again, answers
from kfd.prompting.rejection import Rejected, RejectReason
from kfd.prompting.tokens import MESSAGE_TOKENS, conversation_tokens

__all__ = ["Heard", "Tally", "bound_of", "converse", "transcript"]

MAX_EXCERPT_TOKENS = 16_000
"""Of its own answer that a model is shown again, at most."""

MIN_EXCERPT_TOKENS = 64
"""Room below which it is not worth asking again."""

_ASKED_AGAIN = "\n\n===== asked again =====\n\n"
_ANSWERED = "\n\n===== answer =====\n\n"

Judge = Callable[[Answer], Awaitable[answers.Drafted | Rejected]]


@dataclass(slots=True)
class Tally:
    """Tokens that a draft has used so far, whatever becomes of it."""

    input_tokens: int = 0
    output_tokens: int = 0

    def add(self, usage: Usage) -> None:
        """One more call."""
        self.input_tokens += usage.input_tokens or 0
        self.output_tokens += usage.output_tokens or 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What came of a conversation."""

    answer: Answer
    """The last answer."""
    parsed: answers.Drafted | Rejected
    """What it is worth."""
    text: str
    """All that the model said, and was told in between."""


async def converse(generator: Generator, first: Ask, spec: CampaignSpec, tally: Tally, judge: Judge) -> Heard | Miss:
    """Ask, and ask again with the reason while answers are rejected and the campaign allows it.

    ``tally`` holds what was used, also when this raises. A fault of the provider in a later turn leaves the rejected
    answer as what came of it. Raises ProviderFault for the first turn.
    """
    terms = terms_of(spec.terms, first.model)
    most = bound_of(spec, first.model, spec.asks_again)
    limit = terms.max_output_tokens if terms is not None and first.model else None
    ask = replace(first, max_output_tokens=limit, most_tokens=most)
    reply = await _answer(generator, ask, tally)
    if isinstance(reply, Miss):
        return reply
    parsed = await judge(reply)
    said = [reply.text]
    for _ in range(spec.asks_again):
        if not isinstance(parsed, Rejected) or answers.is_withheld(reply.finish_reason):
            break
        left = None if most is None else _left(most, tally)
        further = await asyncio.to_thread(_again, ask, parsed, reply, terms, left)
        if further is None:
            break
        ask = further
        try:
            later = await _answer(generator, ask, tally)
        except ProviderFault:
            break
        if isinstance(later, Miss):
            break
        reply, parsed = later, await judge(later)
        said += [ask.follow_up[-1].reply, reply.text]
    return Heard(answer=reply, parsed=parsed, text=transcript(said))


async def _answer(generator: Generator, ask: Ask, tally: Tally) -> Answer | Miss:
    try:
        reply = await generator.answer(ask)
    except ProviderFault as fault:
        tally.add(fault.usage)
        raise
    if isinstance(reply, Answer):
        tally.add(reply.usage)
    return reply


def transcript(said: list[str]) -> str:
    """Answers and what was said between them, in turn. Of several, none is kept longer than an answer may be."""
    text = said[0] if len(said) == 1 else _cut(said[0])
    for number, part in enumerate(said[1:]):
        text += (_ANSWERED if number % 2 else _ASKED_AGAIN) + _cut(part)
    return text


def _cut(text: str) -> str:
    is_long = len(text.encode("utf-8", "surrogatepass")) > answers.MAX_ANSWER_BYTES
    return text[: answers.MAX_ANSWER_BYTES // 4] if is_long else text


def bound_of(spec: CampaignSpec, model: str, asks_again: int) -> Bound | None:
    """Tokens that a call, and ``asks_again`` more, may use at most; None when the campaign budgets none of it."""
    is_bounded = spec.budget_micro_money is not None or spec.budget_tokens is not None
    return draft_bound(terms_of(spec.terms, model), asks_again) if is_bounded else None


def _again(ask: Ask, rejected: Rejected, answer: Answer, terms: ModelTerms | None, left: Bound | None) -> Ask | None:
    """The next question of the conversation; None when window or reservation (``left`` of it) have no room for it."""
    reply = again.reply_to(rejected)
    room = MAX_EXCERPT_TOKENS
    limit = ask.max_output_tokens
    if terms is not None:
        longest = terms.max_output_tokens
        if rejected.reason is RejectReason.TRUNCATED and limit is not None:
            limit = longest = terms.raised_output_tokens
        prompt = terms.max_input_tokens + terms.max_output_tokens - longest
        if left is not None:
            prompt = min(prompt, left.input_tokens)
            if longest > left.output_tokens:
                return None
        room = min(room, prompt - _tokens(ask) - conversation_tokens((reply,)) - MESSAGE_TOKENS)
    if room < MIN_EXCERPT_TOKENS:
        return None
    turn = FollowUp(answer=again.excerpt(answer.text, room), reply=reply)
    return replace(ask, follow_up=(*ask.follow_up, turn), max_output_tokens=limit, most_tokens=left)


def _tokens(ask: Ask) -> int:
    turns = [text for turn in ask.follow_up for text in (turn.answer, turn.reply)]
    return conversation_tokens((ask.system, ask.user, *turns))


def _left(most: Bound, tally: Tally) -> Bound:
    return Bound(
        input_tokens=max(0, most.input_tokens - tally.input_tokens),
        output_tokens=max(0, most.output_tokens - tally.output_tokens),
    )
