"""How many tokens a text is at most, without anybody's tokenizer.

Today's models read bytes in pieces of a vocabulary of 100 000 and more, learnt from text and code. Each byte begins at
most one token, so a text is never more tokens than bytes. ``most_tokens`` is closer: it allows a token two letters or
eight blanks, and one byte of anything else (digits, signs, letters of other scripts). Code and English take about
0.44 of that: measured with the vocabularies cl100k_base and o200k_base over 1 035 files of this repository (kernels,
sources, compiled forms, documents), of which none took more than 0.82 (x86 assembly). What takes more is a text of
nothing but random letters: up to 1.3 times.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

__all__ = ["MAX_PROMPT_TOKENS", "MESSAGE_TOKENS", "conversation_tokens", "fits", "most_tokens", "prompt_room"]

MESSAGE_TOKENS = 16
"""Tokens that a server's template adds to one message: its role and its ends."""

MAX_PROMPT_TOKENS = 150_000
"""Longest prompt whatever a model's window is: that of 200 000 characters of code."""

_PIECE = re.compile(rb"[A-Za-z]{1,2}|[ \t\r\n]{1,8}|[^A-Za-z \t\r\n]")


def most_tokens(text: str) -> int:
    """Tokens of a text, at most. Linear; lone surrogates count as the bytes that they would be."""
    return len(_PIECE.findall(text.encode("utf-8", "surrogatepass")))


def conversation_tokens(messages: Iterable[str]) -> int:
    """Tokens of a prompt of these messages, at most."""
    return sum(most_tokens(message) + MESSAGE_TOKENS for message in messages)


def fits(messages: Sequence[str], limit: int) -> bool:
    """Whether a prompt of these messages has at most ``limit`` tokens. Short ones are not even counted."""
    size = sum(len(message.encode("utf-8", "surrogatepass")) + MESSAGE_TOKENS for message in messages)
    return size <= limit or conversation_tokens(messages) <= limit


def prompt_room(context_tokens: int | None, max_output_tokens: int) -> int:
    """Tokens of the longest prompt for a model whose window holds ``context_tokens`` (None when that is unknown)."""
    if context_tokens is None:
        return MAX_PROMPT_TOKENS
    return min(context_tokens - max_output_tokens, MAX_PROMPT_TOKENS)
