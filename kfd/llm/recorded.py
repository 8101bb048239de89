"""Answers that a task brings along, found by parent, operator and count of asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kfd.base.ids import CampaignId
from kfd.llm.port import Answer, Ask, Miss

__all__ = ["RecordedGenerator", "recording_name"]

NOTHING = "nothing"


def recording_name(parent: str, operator: str, nth: int) -> str:
    """Name of a recording inside its task: ``recorded/1f3c9a22b0de/rewrite.0.md``."""
    return f"recorded/{parent if parent == NOTHING else parent[:12]}/{operator}.{nth}.md"


class RecordedGenerator:
    """Deterministic: equal asks have equal answers. A miss is an event, not an error."""

    name = "recorded"

    def __init__(self, files_of: Callable[[CampaignId], Mapping[str, bytes]]) -> None:
        self._files_of = files_of

    async def answer(self, ask: Ask) -> Answer | Miss:
        """The recording of this question, or a Miss that names the file which would be it."""
        name = recording_name(ask.parent, ask.operator, ask.nth)
        data = self._files_of(ask.campaign).get(name)
        if data is None:
            return Miss(text=f"no recording {name}")
        # Decoded leniently: the strict parser of answers is the judge of what a recording says.
        return Answer(text=data.decode("utf-8", "replace"), finish_reason="stop", model="recorded")

    async def close(self) -> None:
        """Nothing is held."""
