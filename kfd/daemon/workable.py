"""Whether a kernel can be worked on further: it fits into a prompt for every model that may be asked about it.

Patches make kernels longer than any answer may be. One that fits into no prompt would be a parent whose question cannot
be put, and a campaign that waits for a person who can do nothing about it.
"""

from __future__ import annotations

from kfd.core.campaign.learning import model_name
from kfd.core.campaign.state import CampaignSpec
from kfd.core.search.terms import terms_of
from kfd.prompting import render
from kfd.prompting.answers import Drafted
from kfd.prompting.rejection import Rejected, RejectReason
from kfd.prompting.render import Exemplar, PromptRequest, PromptTooLong
from kfd.tasks.spec import KernelFile, TaskSpec

__all__ = ["room_of", "workable"]

_SMALL = 16
"""A kernel whose bytes are this part of the room is not looked at: no text has more tokens than bytes."""


def room_of(spec: CampaignSpec) -> int | None:
    """Tokens of the longest prompt that every model of a campaign takes; None where no window is known."""
    found = [terms_of(spec.terms, model_name(name)) for name, _ in spec.search.models]
    return min((terms.max_input_tokens for terms in found if terms is not None), default=None)


def workable(parsed: Drafted | Rejected, before: KernelFile, task: TaskSpec, room: int | None) -> Drafted | Rejected:
    """What was parsed, unless its kernel is longer than the one ``before`` and does not fit into ``room`` any more."""
    if isinstance(parsed, Rejected) or room is None:
        return parsed
    size = len(parsed.kernel.text.encode("utf-8", "surrogatepass"))
    if len(parsed.kernel.text) <= len(before.text) or size <= room // _SMALL:
        return parsed
    parent = Exemplar(candidate="", kernel=parsed.kernel, outcome="ok")
    try:
        for operator in render.OPERATORS:
            render.prompt(PromptRequest(spec=task, operator=operator, parent=parent, max_tokens=room))
    except PromptTooLong as error:
        return Rejected(RejectReason.TOO_LONG, f"the kernel is too long to be worked on further: {error}")
    return parsed
