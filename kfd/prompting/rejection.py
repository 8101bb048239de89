"""Why an answer is not a candidate."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["RejectReason", "Rejected"]


class RejectReason(StrEnum):
    """One word for each way an answer can fail to be a kernel."""

    NO_CODE = "no_code"
    TRUNCATED = "truncated"
    REFUSED = "refused"
    AMBIGUOUS = "ambiguous"
    TOO_LONG = "too_long"
    EDIT_UNMATCHED = "edit_unmatched"
    EDIT_AMBIGUOUS = "edit_ambiguous"
    OUTSIDE_BLOCK = "outside_block"
    MARKERS = "markers"
    MISSING_ENTRY = "missing_entry"
    NO_OP = "no_op"
    NOT_TEXT = "not_text"


@dataclass(frozen=True, slots=True)
class Rejected:
    """The answer is not a candidate; ``detail`` says why in words that a model can act on."""

    reason: RejectReason
    detail: str
