"""What one logical call has used so far, attempts that broke included, and whether another attempt may be begun.

A provider's own count is believed. What it does not count is counted from above, by the bound of ``prompting.tokens``:
the prompt as soon as it was sent and not refused, and the text that came. An answer that its limit cut off, and one of
a model that thinks unseen, count as the whole limit: what is not shown is not free. What a provider went on generating
after a broken connection nobody here can know; the connection is closed, which ends it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kfd.base.instant import Instant, Span
from kfd.llm.port import Ask, Usage
from kfd.llm.streams import Collected
from kfd.prompting.answers import is_cut_off
from kfd.prompting.tokens import conversation_tokens, most_tokens

__all__ = ["Meter"]


@dataclass(slots=True, kw_only=True)
class Meter:
    """Counts one logical call. ``begin`` each attempt, then ``ended`` or ``broke`` it."""

    ask: Ask
    until: Instant
    """When the call's deadline comes."""
    limit: int
    """Longest answer in tokens."""
    thinks_unseen: bool
    """Whether answers hold more than their text shows."""
    attempts: int = 0
    waited: Span = 0
    input_tokens: int = 0
    output_tokens: int = 0
    _open: Collected | None = None
    _prompt: int | None = field(default=None, repr=False)

    def begin(self) -> Collected:
        """An attempt begins; where it puts what it gets."""
        self._open = Collected()
        return self._open

    def ended(self) -> None:
        """The attempt has brought an answer."""
        got = self._take()
        if got is None:
            return
        whole = self.thinks_unseen or is_cut_off(got.finish_reason)
        self._add(got, self.limit if whole else most_tokens(got.text))

    def broke(self, *, sent: bool) -> None:
        """The attempt, if one is open, has brought none. ``sent``: whether the provider may have begun to work."""
        got = self._take()
        if got is not None and (sent or got.began):
            self._add(got, self.limit if got.began and self.thinks_unseen else most_tokens(got.text))

    def may_begin(self) -> bool:
        """Whether one more attempt, whatever comes of it, stays within the tokens that were reserved."""
        most = self.ask.most_tokens
        if most is None or not (self.input_tokens or self.output_tokens):
            return True
        fits_input = self.input_tokens + self._prompt_tokens() <= most.input_tokens
        return fits_input and self.output_tokens + self.limit <= most.output_tokens

    def usage(self) -> Usage:
        """All attempts together."""
        return Usage(
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            attempts=max(self.attempts, 1),
            wait_ns=self.waited,
        )

    def _take(self) -> Collected | None:
        got, self._open = self._open, None
        return got

    def _add(self, got: Collected, output_tokens: int) -> None:
        self.input_tokens += self._prompt_tokens() if got.input_tokens is None else got.input_tokens
        self.output_tokens += output_tokens if got.output_tokens is None else got.output_tokens

    def _prompt_tokens(self) -> int:
        """Counted once, and only where it is needed."""
        if self._prompt is None:
            turns = [text for turn in self.ask.follow_up for text in (turn.answer, turn.reply)]
            self._prompt = conversation_tokens((self.ask.system, self.ask.user, *turns))
        return self._prompt
