"""What the servicers need of the rest of the daemon."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from kfd.base.digest import Digest
from kfd.base.ids import CampaignId, CandidateId
from kfd.core.campaign.state import CampaignSpec
from kfd.core.engine import Engine
from kfd.core.events import Event
from kfd.core.fleet.model import CallId
from kfd.core.views import CampaignView, CandidateView, EventRow, PromptView, SearchView

__all__ = ["Archives", "Desk", "LiveReactor", "PendingAsk", "Reactor", "ReadModels"]


class Reactor(Protocol):
    """The one loop that owns the engine. A reply leaves only after the batch that made it is durable."""

    @property
    def boot(self) -> bytes:
        """Random id of this daemon process."""
        ...

    async def call(self, make_event: Callable[[CallId], Event]) -> Any:
        """Post the event made with a fresh call id and wait for its reply.

        Raises CallerError when the engine refuses. When the waiting task is cancelled (the peer went
        away), the reactor posts ``CallDropped`` for the id.
        """
        ...

    def post(self, event: Event) -> None:
        """Post an event that nobody waits for."""
        ...


class LiveReactor(Reactor, Protocol):
    """The reactor as the control service sees it: it may also look at the engine and wait for commits."""

    @property
    def engine(self) -> Engine:
        """The engine, to be read and never changed."""
        ...

    async def committed(self, timeout_seconds: float) -> bool:
        """Wait until something was committed; False when nothing was in time."""
        ...


class ReadModels(Protocol):
    """What the store can tell (``kfd.store.read.Reader``). Raises NotFound and Exhausted."""

    async def resolve_campaign(self, text: str) -> CampaignId:
        """A campaign by id, name, unique prefix, or ``@last``."""
        ...

    async def campaign(self, campaign: CampaignId) -> CampaignView:
        """One campaign."""
        ...

    async def search(self, campaign: CampaignId) -> SearchView:
        """How a campaign's search stands."""
        ...

    async def campaigns(self, state: str, limit: int) -> list[CampaignView]:
        """The newest campaigns."""
        ...

    async def resolve_candidate(self, text: str, campaign: str = "") -> CandidateId:
        """A candidate by id or ``@best``."""
        ...

    async def candidate(self, candidate: CandidateId) -> CandidateView:
        """One candidate with its evidence."""
        ...

    async def candidates(
        self, campaign: CampaignId, *, after: int, limit: int, outcome: str = "", elites_only: bool = False
    ) -> list[CandidateView]:
        """Candidates in the order of asking."""
        ...

    async def text(self, candidate: CandidateId, kind: str) -> str | None:
        """Source, prompt or answer."""
        ...

    async def prompts(self, spec: CampaignSpec) -> list[PromptView]:
        """The first prompt variant and all mutations with the credit of each variant."""
        ...

    async def mutation_text(self, campaign: CampaignId, nth: int, kind: str) -> str | None:
        """Question or answer of a mutation."""
        ...

    async def events(self, after: int, campaign: str, limit: int) -> list[EventRow]:
        """Events after a sequence number."""
        ...

    async def tail_seq(self, campaign: str, count: int) -> int:
        """Sequence number after which the last events lie."""
        ...


class PendingAsk(Protocol):
    """A question that waits for a person."""

    @property
    def campaign(self) -> CampaignId:
        """Campaign that asks."""
        ...

    @property
    def candidate(self) -> CandidateId:
        """Candidate that the answer makes."""
        ...

    @property
    def operator(self) -> str:
        """Name of the operator that asks."""
        ...

    @property
    def system(self) -> str:
        """The system prompt."""
        ...

    @property
    def user(self) -> str:
        """The question itself."""
        ...


class Desk(Protocol):
    """Where questions wait for a person (``kfd.llm.manual.ManualDesk``)."""

    def ask(self, campaign: CampaignId) -> Sequence[PendingAsk]:
        """Questions that wait, in the order of asking."""
        ...

    def tell(self, candidate: CandidateId, text: str, model: str) -> None:
        """Answer one. Raises NotFound when none waits for this candidate, WrongState when it is answered
        already, BadInput when it is too long."""
        ...


class Archives(Protocol):
    """Where task archives lie (``kfd.blobs``)."""

    async def get(self, digest: Digest) -> bytes:
        """The bytes of a blob. Raises NotFound."""
        ...
