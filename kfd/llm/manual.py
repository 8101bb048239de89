"""A person, or a coding agent, as the model: pending prompts are handed out, answers come back by
candidate."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from kfd.base.failure import BadInput, NotFound, WrongState
from kfd.base.ids import CampaignId, CandidateId
from kfd.llm.port import Answer, Ask, Miss

__all__ = ["MAX_TOLD_BYTES", "ManualDesk"]

MAX_TOLD_BYTES = 1 << 20

MAX_MODEL = 100
"""Characters of a model's name, as in the configuration: it goes into rows, events and tables."""


@dataclass(slots=True)
class _Pending:
    ask: Ask
    told: asyncio.Future[Answer]


class ManualDesk:
    """Asks wait, without deadline, until somebody tells or the caller cancels. One event loop, no locks."""

    name = "manual"

    def __init__(self) -> None:
        self._pending: dict[CandidateId, _Pending] = {}

    async def answer(self, ask: Ask) -> Answer | Miss:
        """Wait for the answer to one question. Raises WrongState when the candidate is being asked
        already."""
        if ask.candidate in self._pending:
            raise WrongState(f"candidate {ask.candidate} is being asked already")
        pending = _Pending(ask, asyncio.get_running_loop().create_future())
        self._pending[ask.candidate] = pending
        try:
            return await pending.told
        finally:
            del self._pending[ask.candidate]

    def ask(self, campaign: CampaignId) -> list[Ask]:
        """Questions of a campaign that nobody has answered, in the order of asking."""
        return [
            pending.ask
            for pending in self._pending.values()
            if pending.ask.campaign == campaign and not pending.told.done()
        ]

    def tell(self, candidate: CandidateId, text: str, model: str = "") -> None:
        """Answer one question. Raises NotFound, WrongState when it is answered already, BadInput when too
        long."""
        pending = self._pending.get(candidate)
        if pending is None:
            raise NotFound(
                f"no question about {candidate} is waiting", mend="List what is waiting: kfd-client ask CAMPAIGN."
            )
        if pending.told.done():
            raise WrongState(f"the question about {candidate} is answered already", mend="Ask for the next one.")
        size = len(text.encode("utf-8", "surrogatepass"))
        if size > MAX_TOLD_BYTES:
            raise BadInput(f"the answer has {size} bytes; {MAX_TOLD_BYTES} are allowed", mend="Send only the answer.")
        if len(model) > MAX_MODEL or not model.isprintable():
            raise BadInput(
                f"a model's name has up to {MAX_MODEL} visible characters", mend="Give the name alone: --model NAME."
            )
        pending.told.set_result(Answer(text=text, finish_reason="stop", model=model or "manual"))

    async def close(self) -> None:
        """Forget what nobody waits for; waiting callers are cancelled by their owner."""
        for pending in self._pending.values():
            pending.told.cancel()
