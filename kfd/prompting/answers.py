"""From what a model said to a kernel, strictly: an answer that is not clearly a kernel is no candidate.

Prose never becomes a program, a cut-off answer is never taken whole, the first fence never wins because it
is first, and text outside the EVOLVE blocks never changes (peer faults, F01 to F12). ``parse`` never raises
and takes linear time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from kfd.prompting import edits, language
from kfd.prompting.features import normal_form
from kfd.prompting.fences import Fenced, fenced
from kfd.prompting.rejection import Rejected, RejectReason
from kfd.tasks.markers import MARKER, find, markers_in
from kfd.tasks.report import Problems
from kfd.tasks.spec import KernelFile

__all__ = [
    "MAX_ANSWER_BYTES",
    "Drafted",
    "RejectReason",
    "Rejected",
    "after_thinking",
    "is_cut_off",
    "is_withheld",
    "parse",
    "unusable",
]

MAX_ANSWER_BYTES = 1 << 20

_CUT = frozenset(("length", "max_tokens", "max_output_tokens", "model_length", "incomplete"))
_BLOCKED = frozenset(("content_filter", "refusal", "safety", "prohibited_content", "recitation", "blocklist"))
_NOT_TEXT = re.compile("[\x00-\x08\x0e-\x1f\x7f\ud800-\udfff]")
_THINKING = ("<think>", "<thinking>", "<reasoning>")
_EDIT_SIGN = re.compile(r"^[ \t]*(?:<{7} |>{7} |={7}$|@@ -\d+(?:,\d+)? \+\d+)[^\n]{0,80}", re.M)
_REFUSAL = re.compile(
    r"\b(?:I(?:'|’)?m (?:sorry|unable|afraid)|I am (?:sorry|unable|afraid)"
    r"|I (?:can ?not|can(?:'|’)t|won(?:'|’)t|will not)"
    r"|as an AI|unable to (?:help|assist|comply)|(?:can ?not|can(?:'|’)t) (?:help|assist|comply))\b",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Drafted:
    """A kernel to build: the parent's file with other block contents."""

    kernel: KernelFile


def parse(text: str, finish_reason: str, operator: str, kernel: KernelFile, entry: str) -> Drafted | Rejected:
    """Read an answer to ``operator`` (rewrite, repair, patch; others are read as rewrites) about ``kernel``.

    ``kernel`` is the file that the model was shown; ``entry`` the function that must exist afterwards.
    """
    early = unusable(text, finish_reason)
    if early is not None:
        return early
    plain = text.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff")
    answered = after_thinking(plain)
    if answered is None:
        return Rejected(RejectReason.TRUNCATED, "the model never finished thinking")
    plain = answered
    contents = _patched(plain, kernel) if operator == "patch" else _rewritten(plain, kernel, entry)
    return contents if isinstance(contents, Rejected) else _drafted(contents, kernel, entry)


def is_cut_off(finish_reason: str) -> bool:
    """Whether the answer ended because it was as long as it may be."""
    return str(finish_reason).lower() in _CUT


def is_withheld(finish_reason: str) -> bool:
    """Whether the provider, not the model, kept the answer back: asking the same again brings the same."""
    return str(finish_reason).lower() in _BLOCKED


def unusable(text: object, finish_reason: str) -> Rejected | None:
    """Why an answer cannot be read at all, whatever was asked: no text, too long, cut off, withheld, empty."""
    if not isinstance(text, str):
        return Rejected(RejectReason.NOT_TEXT, "the answer is not text")
    if len(text) > MAX_ANSWER_BYTES or len(text.encode("utf-8", "surrogatepass")) > MAX_ANSWER_BYTES:
        return Rejected(RejectReason.TOO_LONG, f"the answer is longer than {MAX_ANSWER_BYTES} bytes")
    reason = str(finish_reason).lower()
    if is_cut_off(reason):
        return Rejected(RejectReason.TRUNCATED, "the model's token limit cut the answer off")
    if is_withheld(reason):
        return Rejected(RejectReason.REFUSED, f"the provider withheld the answer ({reason})")
    bad = _NOT_TEXT.search(text)
    if bad:
        return Rejected(RejectReason.NOT_TEXT, f"the answer holds the character U+{ord(bad.group()):04X}")
    if not text.strip():
        return Rejected(RejectReason.NO_CODE, "the answer is empty")
    return None


def after_thinking(text: str) -> str | None:
    """What follows a reasoning model's thoughts, which hold drafts that are not the answer; None without an end."""
    if not text.lstrip().startswith(_THINKING):
        return text
    ends = [text.rfind(f"</{name[1:]}") + len(name) + 1 for name in _THINKING if f"</{name[1:]}" in text]
    return text[max(ends) :] if ends else None


def _no_code(text: str, wanted: str) -> Rejected:
    if _REFUSAL.search(text[:600]):
        return Rejected(RejectReason.REFUSED, "the model declined to answer")
    return Rejected(RejectReason.NO_CODE, f"the answer has no {wanted}")


# ---- rewrite and repair ---------------------------------------------------------------------------------


def _rewritten(text: str, kernel: KernelFile, entry: str) -> tuple[str, ...] | Rejected:
    found, unclosed = fenced(text)
    if unclosed:
        return Rejected(RejectReason.TRUNCATED, "a code fence is never closed: the answer was cut off")
    found = [block for block in found if block.text.strip()]
    if not found:
        return _no_code(text, "fenced code block")
    # A quotation of the file as it is answers nothing when something else is there too.
    found = [block for block in found if _normal(block.text) != _normal(kernel.text)] or found[:1]
    complete = [block for block in found if MARKER.search(block.text)]
    if complete:
        return _from_complete(complete, kernel)
    if len(kernel.blocks) > 1:
        if len(found) != len(kernel.blocks):
            return Rejected(
                RejectReason.AMBIGUOUS,
                f"{len(found)} code blocks for {len(kernel.blocks)} EVOLVE blocks: give one each, in order",
            )
        return tuple(block.text for block in found)
    chosen = _chosen(found, kernel, entry)
    return chosen if isinstance(chosen, Rejected) else (_without_surroundings(chosen, kernel),)


def _chosen(found: list[Fenced], kernel: KernelFile, entry: str) -> str | Rejected:
    """The one block that is the new code: the only one, else the only new one that holds the entry point."""
    texts = list(dict.fromkeys(block.text for block in found))
    if len(texts) == 1:
        return texts[0]
    defines = language.of_path(kernel.path).defines
    inside = defines("".join(kernel.contents()), entry) or kernel.is_empty
    if inside or any(defines(text, entry) for text in texts):
        texts = [text for text in texts if defines(text, entry)]
    if not texts:
        return Rejected(RejectReason.MISSING_ENTRY, f"none of the code blocks defines {entry}")
    current = _normal("".join(kernel.contents())), _normal(kernel.text)
    fresh = [text for text in texts if _normal(text) not in current] or texts[:1]
    if len(fresh) == 1:
        return fresh[0]
    return Rejected(RejectReason.AMBIGUOUS, f"{len(fresh)} different code blocks could be it: give exactly one")


def _from_complete(complete: list[Fenced], kernel: KernelFile) -> tuple[str, ...] | Rejected:
    """Contents of an answer that gives the file with its markers."""
    fixed = [_normal(part) for part in _outside(kernel)]
    results: list[tuple[str, ...]] = []
    refused: Rejected | None = None
    for block in complete:
        problems = Problems()
        marked = find(block.text, kernel.path, PurePosixPath(kernel.path).suffix.lower(), problems)
        blocks = [mark.block for mark in marked if mark.kind == "EVOLVE"]
        if problems.found or len(blocks) != len(kernel.blocks):
            why = str(problems.found[0]) if problems.found else f"{len(blocks)} EVOLVE blocks"
            refused = Rejected(RejectReason.MARKERS, f"the answer's markers do not match the file's: {why}")
            continue
        whole = KernelFile(path=kernel.path, text=block.text, blocks=tuple(blocks))
        given = [_normal(part) for part in _outside(whole)]
        bare = all(not _normal(MARKER.sub("", part)).strip("/*# ") for part in _marker_free(_outside(whole)))
        if given != fixed and not bare:
            refused = Rejected(
                RejectReason.OUTSIDE_BLOCK, "the answer changes text outside the EVOLVE block, which is fixed"
            )
            continue
        if whole.contents() not in results:
            results.append(whole.contents())
    current = tuple(_normal(content) for content in kernel.contents())
    fresh = [result for result in results if tuple(map(_normal, result)) != current] or results[:1]
    if len(fresh) == 1:
        return fresh[0]
    if fresh:
        return Rejected(RejectReason.AMBIGUOUS, f"{len(fresh)} different files could be it: give exactly one")
    return refused or Rejected(RejectReason.MARKERS, "the answer's markers do not match the file's")


def _outside(kernel: KernelFile) -> list[str]:
    """Text before, between and after the blocks, marker lines included."""
    pieces: list[str] = []
    at = 0
    for block in kernel.blocks:
        pieces.append(kernel.text[at : block.start])
        at = block.end
    return [*pieces, kernel.text[at:]]


def _marker_free(parts: list[str]) -> list[str]:
    return ["\n".join(line for line in part.splitlines() if not MARKER.search(line)) for part in parts]


def _normal(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.splitlines() if line.strip())


def _without_surroundings(text: str, kernel: KernelFile) -> str:
    """Code without a repetition of the fixed text before and after the only block (markers left away)."""
    before, after = (
        [line.rstrip() for line in part.splitlines() if line.strip()] for part in _marker_free(_outside(kernel))
    )
    lines = text.splitlines()
    telling = [at for at, line in enumerate(lines) if line.strip()]
    shown = [lines[at].rstrip() for at in telling]
    if not before or shown[: len(before)] != before:
        return text
    last = len(lines)
    if after and len(shown) > len(before) + len(after) and shown[-len(after) :] == after:
        last = telling[-len(after)]
    return "".join(f"{line}\n" for line in lines[telling[len(before) - 1] + 1 : last]).lstrip("\n")


# ---- patch ----------------------------------------------------------------------------------------------


def _patched(text: str, kernel: KernelFile) -> tuple[str, ...] | Rejected:
    wanted = edits.read_edits(text)
    if isinstance(wanted, Rejected):
        return wanted
    if not wanted:
        found, unclosed = fenced(text)
        if unclosed and not found:
            return Rejected(RejectReason.TRUNCATED, "a code fence is never closed: the answer was cut off")
        return _no_code(text, "SEARCH/REPLACE block")
    blocks = [content.replace("\r\n", "\n").split("\n") for content in kernel.contents()]
    outside = "\n".join(_outside(kernel)).splitlines()
    # The last line feed of a block ends its last line; without it there would be an empty line to match.
    blocks = [lines[:-1] if lines and not lines[-1] else lines for lines in blocks]
    result = edits.apply(wanted, blocks, outside)
    if isinstance(result, Rejected):
        return result
    return tuple("".join(f"{line}\n" for line in lines) for lines in result)


# ---- both -----------------------------------------------------------------------------------------------


def _drafted(contents: tuple[str, ...], kernel: KernelFile, entry: str) -> Drafted | Rejected:
    """The child, after the checks that every answer must pass."""
    reads = language.of_path(kernel.path)
    for content in contents:
        if markers_in(content):
            return Rejected(RejectReason.MARKERS, "the new code holds a marker; leave markers out")
        sign = _EDIT_SIGN.search(content)
        if sign is not None:
            return Rejected(RejectReason.AMBIGUOUS, f"the new code holds a line of an edit or diff: {sign[0][:40]!r}")
        inside = reads.open_end(content)
        if inside:
            return Rejected(
                RejectReason.OUTSIDE_BLOCK, f"the new code ends inside {inside}: it would change what follows"
            )
    if not any(content.strip() for content in contents):
        return Rejected(RejectReason.NO_CODE, "the new code is empty")
    crlf = "\r\n" in kernel.text
    child = kernel.with_contents(
        tuple(
            content.rstrip("\n").replace("\n", "\r\n" if crlf else "\n") + ("\r\n" if crlf else "\n")
            for content in contents
        )
    )
    if not reads.defines(child.text, entry):
        return Rejected(RejectReason.MISSING_ENTRY, f"the new file does not define {entry}")
    if normal_form(child.text, reads) == normal_form(kernel.text, reads):
        return Rejected(RejectReason.NO_OP, "the answer changes nothing but comments and spacing")
    return Drafted(child)
