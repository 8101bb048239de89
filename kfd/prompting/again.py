"""What a model is told when its answer holds no usable kernel: the reason, in words that it can act on."""

from __future__ import annotations

from kfd.prompting import quoting
from kfd.prompting.rejection import Rejected, RejectReason
from kfd.prompting.tokens import most_tokens

__all__ = ["excerpt", "reply_to"]

_DETAIL, _LINES = 600, 4000

_WORDS = {
    RejectReason.TRUNCATED: "Give the code only this time: no explanation before it and none after it.",
    RejectReason.TOO_LONG: "Give the code only, and much less of it.",
    RejectReason.EDIT_UNMATCHED: "Copy the lines of each SEARCH part to the letter from the file above.",
    RejectReason.EDIT_AMBIGUOUS: "Add lines around the SEARCH part, copied to the letter, until it occurs only once.",
    RejectReason.OUTSIDE_BLOCK: "Only the text between the markers can change.",
    RejectReason.NO_OP: "Change what the code does or how it does it.",
    RejectReason.AMBIGUOUS: "Leave out quotations of older code and alternatives: give only what shall be used.",
}
_CUT = "\n[...]\n"


def reply_to(rejected: Rejected) -> str:
    """The user's turn after an answer that was rejected. What the reason quotes is fenced."""
    first, _, quoted = rejected.detail.partition("\n")
    lines = [f"That answer cannot be used: {quoting.one_line(first, _DETAIL)}"]
    if quoted.strip():
        lines += ["", quoting.fence(quoted, _LINES), ""]
    words = _WORDS.get(rejected.reason)
    lines += [words] if words else []
    lines.append("Answer again, in exactly the form that was asked for.")
    return "\n".join(lines)


def excerpt(answer: str, room: int) -> str:
    """A model's own answer as its turn of the conversation, in at most ``room`` tokens: its beginning and its end."""
    text = answer.encode("utf-8", "replace").decode("utf-8").replace("\0", "")
    if not text.strip():
        return "(empty)"
    size = len(text)
    shown = text
    while (tokens := most_tokens(shown)) > room:
        size = min(size * room // tokens, size - 1)
        if size < 16:
            return "(left out)"
        shown = text[: size * 3 // 4] + _CUT + text[len(text) - size // 4 :]
    return shown
