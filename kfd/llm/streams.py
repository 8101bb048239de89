"""Reading what a provider sent: pieces of a stream or a whole completion, of which nothing may be
believed."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["MAX_TEXT", "Collected"]

MAX_TEXT = (1 << 20) + 1
"""Characters kept: one more than any answer may have, so that the parser sees that it was too long."""

_FINISH_CAP = 64


@dataclass(slots=True)
class Collected:
    """What one attempt has given so far."""

    pieces: list[str] = field(default_factory=list)
    length: int = 0
    finish_reason: str = ""
    began: bool = False
    """Whether anything came: the provider has read the prompt."""
    input_tokens: int | None = None
    output_tokens: int | None = None

    @property
    def text(self) -> str:
        """All pieces."""
        return "".join(self.pieces)

    @property
    def full(self) -> bool:
        """Whether no more text is wanted."""
        return self.length >= MAX_TEXT

    def take(self, chunk: object) -> None:
        """Add a chunk or a whole completion. Members may be missing or of any type: the client does not
        check."""
        self.began = True
        usage = getattr(chunk, "usage", None)
        self.input_tokens = _count(getattr(usage, "prompt_tokens", None), self.input_tokens)
        self.output_tokens = _count(getattr(usage, "completion_tokens", None), self.output_tokens)
        choices = getattr(chunk, "choices", None)
        if not isinstance(choices, list) or not choices:
            return
        choice = choices[0]
        said = getattr(choice, "delta", None) or getattr(choice, "message", None)
        for name in ("content", "refusal"):
            piece = getattr(said, name, None)
            if isinstance(piece, str) and piece and not self.full:
                piece = piece[: MAX_TEXT - self.length]
                self.pieces.append(piece)
                self.length += len(piece)
                if name == "refusal":
                    self.finish_reason = "refusal"
        reason = getattr(choice, "finish_reason", None)
        if isinstance(reason, str) and reason and not self.finish_reason:
            self.finish_reason = reason[:_FINISH_CAP]


def _count(value: object, before: int | None) -> int | None:
    good = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 40
    return value if good and isinstance(value, int) else before
