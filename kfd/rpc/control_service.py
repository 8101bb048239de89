"""The user's service: campaigns, candidates, events, and the person as generator."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Any

from kfd.api.v1 import control_pb2, control_pb2_grpc
from kfd.base.failure import BadInput, NotFound, WrongState
from kfd.base.ids import CampaignId, CandidateId
from kfd.base.version import PROTOCOL_MAX, PROTOCOL_MIN, VERSION
from kfd.base.work import Requirement, SlotKind
from kfd.core.campaign.state import ENDED, CandidateState
from kfd.core.commands import Packed
from kfd.core.events import (
    CampaignCancelled,
    CampaignPaused,
    CampaignResumed,
    CampaignSubmitted,
    Drafted,
    Event,
)
from kfd.core.fleet.model import CallId
from kfd.core.search.budgets import ZERO
from kfd.core.views import CampaignView
from kfd.prompting.reading import drafted
from kfd.rpc import prompts, translate
from kfd.rpc.port import Archives, Desk, LiveReactor, ReadModels
from kfd.rpc.submission import Defaults, spec_of
from kfd.tasks import load
from kfd.tasks.spec import TaskSpec

__all__ = ["ControlService"]

PAGE = 500
MAX_ANSWER_BYTES = 1 << 20
TELL_SECONDS = 30.0


class ControlService(control_pb2_grpc.ControlServiceServicer):
    """Reads come from the store, changes go through the reactor."""

    def __init__(
        self,
        reactor: LiveReactor,
        reader: ReadModels,
        archives: Archives,
        desk: Desk,
        defaults: Defaults,
        pack: Callable[[str, str], Packed],
    ) -> None:
        self._reactor = reactor
        self._reader = reader
        self._archives = archives
        self._desk = desk
        self._defaults = defaults
        self._pack = pack
        self._started = time.monotonic_ns()

    # ---- campaigns ------------------------------------------------------------------------------------

    async def GetServerInfo(  # noqa: N802
        self, request: control_pb2.GetServerInfoRequest, context: Any
    ) -> control_pb2.GetServerInfoResponse:
        """Versions and what can answer."""
        return control_pb2.GetServerInfoResponse(
            version=VERSION,
            protocol_min=PROTOCOL_MIN,
            protocol_max=PROTOCOL_MAX,
            uptime_ns=time.monotonic_ns() - self._started,
            generators=self._defaults.generators,
            models=self._defaults.models,
        )

    async def SubmitCampaign(  # noqa: N802
        self, request: control_pb2.SubmitCampaignRequest, context: Any
    ) -> control_pb2.SubmitCampaignResponse:
        """Start a campaign; the same idempotency key starts one only."""
        try:
            digest = translate.digest_from_pb(request.task)
        except ValueError as error:
            raise BadInput(f"the task's digest is malformed: {error}") from error
        archive = await self._archives.get(digest)
        task = (await asyncio.to_thread(load, archive)).spec
        spec = spec_of(
            task,
            request.options,
            self._defaults,
            key=request.idempotency_key,
            token=os.urandom(48),
            submitted_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        )
        initial = await asyncio.to_thread(_initial, task, spec.toolchain)
        text = self._pack("source", task.kernel.text) if initial is not None else None

        def event(call: CallId) -> Event:
            return CampaignSubmitted(call=call, spec=spec, initial=initial, initial_text=text)

        campaign, name, existed = await self._reactor.call(event)
        return control_pb2.SubmitCampaignResponse(campaign=campaign, name=name, existed=existed)

    async def GetCampaign(  # noqa: N802
        self, request: control_pb2.GetCampaignRequest, context: Any
    ) -> control_pb2.GetCampaignResponse:
        """One campaign."""
        return control_pb2.GetCampaignResponse(campaign=await self._view(request.campaign))

    async def ListCampaigns(  # noqa: N802
        self, request: control_pb2.ListCampaignsRequest, context: Any
    ) -> control_pb2.ListCampaignsResponse:
        """The newest campaigns."""
        views = await self._reader.campaigns(request.state, min(request.limit or 50, PAGE))
        return control_pb2.ListCampaignsResponse(campaigns=[self._shown(view) for view in views])

    async def PauseCampaign(  # noqa: N802
        self, request: control_pb2.PauseCampaignRequest, context: Any
    ) -> control_pb2.PauseCampaignResponse:
        """Ask for nothing new."""
        campaign = await self._open_campaign(request.campaign)
        reason = request.reason or "paused"
        await self._reactor.call(lambda call: CampaignPaused(call=call, campaign=campaign, reason=reason))
        return control_pb2.PauseCampaignResponse(campaign=await self._view(campaign))

    async def ResumeCampaign(  # noqa: N802
        self, request: control_pb2.ResumeCampaignRequest, context: Any
    ) -> control_pb2.ResumeCampaignResponse:
        """Go on asking."""
        campaign = await self._open_campaign(request.campaign)
        await self._reactor.call(lambda call: CampaignResumed(call=call, campaign=campaign))
        return control_pb2.ResumeCampaignResponse(campaign=await self._view(campaign))

    async def CancelCampaign(  # noqa: N802
        self, request: control_pb2.CancelCampaignRequest, context: Any
    ) -> control_pb2.CancelCampaignResponse:
        """End a campaign now."""
        campaign = await self._open_campaign(request.campaign)
        reason = request.reason or "cancelled"
        await self._reactor.call(lambda call: CampaignCancelled(call=call, campaign=campaign, reason=reason))
        return control_pb2.CancelCampaignResponse(campaign=await self._view(campaign))

    # ---- candidates -----------------------------------------------------------------------------------

    async def GetCandidate(  # noqa: N802
        self, request: control_pb2.GetCandidateRequest, context: Any
    ) -> control_pb2.GetCandidateResponse:
        """One candidate with its evidence, and its texts when asked for."""
        candidate = await self._reader.resolve_candidate(request.candidate, request.campaign)
        view = await self._reader.candidate(candidate)
        campaign = await self._reader.campaign(view.campaign)
        response = control_pb2.GetCandidateResponse(
            candidate=translate.candidate_to_pb(view), kernel_path=campaign.spec.kernel_path
        )
        if request.source:
            response.source = _printable(await self._reader.text(candidate, "source"))
        if request.prompt:
            response.prompt = _printable(await self._reader.text(candidate, "prompt"))
        if request.answer:
            response.answer = _printable(await self._reader.text(candidate, "answer"))
        return response

    async def ListCandidates(  # noqa: N802
        self, request: control_pb2.ListCandidatesRequest, context: Any
    ) -> control_pb2.ListCandidatesResponse:
        """Candidates in the order of asking, a page at a time."""
        campaign = await self._reader.resolve_campaign(request.campaign)
        limit = min(request.limit or 100, PAGE)
        views = await self._reader.candidates(
            campaign,
            after=-1 if request.from_start else request.after_ordinal,
            limit=limit + 1,
            outcome=request.outcome,
            elites_only=request.elites_only,
        )
        return control_pb2.ListCandidatesResponse(
            candidates=[translate.candidate_to_pb(view) for view in views[:limit]], more=len(views) > limit
        )

    async def ListPrompts(  # noqa: N802
        self, request: control_pb2.ListPromptsRequest, context: Any
    ) -> control_pb2.ListPromptsResponse:
        """Prompt variants with their credit, a page at a time, or one with its texts."""
        campaign = await self._reader.resolve_campaign(request.campaign)
        spec = (await self._reader.campaign(campaign)).spec
        views = await self._reader.prompts(spec)
        if request.prompt:
            return await prompts.one(self._reader, spec, views, request.prompt)
        return prompts.page(spec, views, request.skip, min(request.limit or 100, PAGE))

    # ---- events ---------------------------------------------------------------------------------------

    async def WatchEvents(  # noqa: N802
        self, request: control_pb2.WatchEventsRequest, context: Any
    ) -> AsyncIterator[control_pb2.WatchEventsResponse]:
        """Events in order; resumes after a sequence number, follows until the campaign has ended."""
        campaign = await self._reader.resolve_campaign(request.campaign) if request.campaign else ""
        after = request.after_seq
        if request.tail:
            after = max(after, await self._reader.tail_seq(campaign, min(request.tail, 10_000)))
        while True:
            has_ended = campaign != "" and await self._has_ended(CampaignId(campaign))
            events = await self._reader.events(after, campaign, PAGE)
            for row in events:
                after = row.seq
                yield control_pb2.WatchEventsResponse(event=translate.event_to_pb(row))
            if len(events) == PAGE:
                continue
            if not request.follow or has_ended:
                return
            await self._reactor.committed(5.0)

    # ---- the person as generator ----------------------------------------------------------------------

    async def Ask(self, request: control_pb2.AskRequest, context: Any) -> control_pb2.AskResponse:  # noqa: N802
        """Prompts that wait for a person."""
        campaign = await self._reader.resolve_campaign(request.campaign)
        view = await self._reader.campaign(campaign)
        if view.spec.generator != "manual":
            raise WrongState(
                f"{campaign} gets its answers from {view.spec.generator}",
                mend="submit with --generator manual to answer yourself",
            )
        pending = self._desk.ask(campaign)[: min(request.limit or 100, PAGE)]
        return control_pb2.AskResponse(
            prompts=[
                control_pb2.PendingPrompt(
                    candidate=ask.candidate,
                    operator=ask.operator,
                    prompt=f"{ask.system}\n\n{ask.user}",
                    campaign=ask.campaign,
                )
                for ask in pending
            ]
        )

    async def Tell(self, request: control_pb2.TellRequest, context: Any) -> control_pb2.TellResponse:  # noqa: N802
        """Answer a prompt. Returns when what became of the answer is durable."""
        if len(request.answer.encode("utf-8", "replace")) > MAX_ANSWER_BYTES:
            raise BadInput(f"the answer is larger than {MAX_ANSWER_BYTES} bytes", mend="answer with the kernel only")
        candidate = await self._reader.resolve_candidate(request.candidate)
        found = (await self._reader.candidate(candidate)).candidate
        if found.state is not CandidateState.DRAFTING:
            raise WrongState(
                f"{candidate} has its answer already ({found.state.value})",
                mend=f"kfd-client show {candidate} tells what became of it",
            )
        self._desk.tell(candidate, request.answer, request.model or "manual")
        return await self._told(candidate)

    async def _told(self, candidate: CandidateId) -> control_pb2.TellResponse:
        stop_at = time.monotonic() + TELL_SECONDS
        while time.monotonic() < stop_at:
            found = (await self._reader.candidate(candidate)).candidate
            if found.state is not CandidateState.DRAFTING:
                return control_pb2.TellResponse(state=found.state.value, outcome=found.outcome, text=found.text)
            await self._reactor.committed(0.5)
        raise WrongState(f"the answer for {candidate} was taken but is not stored yet", mend="kfd-client show it again")

    # ---- helpers --------------------------------------------------------------------------------------

    async def _view(self, text: str) -> control_pb2.Campaign:
        view = await self._reader.campaign(await self._reader.resolve_campaign(text))
        message = self._shown(view)
        search = await self._reader.search(view.spec.id)
        message.search.CopyFrom(translate.search_to_pb(search, view.record.roofline))
        return message

    def _shown(self, view: CampaignView) -> control_pb2.Campaign:
        live = self._reactor.engine.campaigns.get(view.spec.id)
        reserved = live.account.reserved if live is not None else ZERO
        return translate.campaign_to_pb(view, self._waiting_for(view), reserved)

    def _waiting_for(self, view: CampaignView) -> list[str]:
        """What a campaign that cannot go on waits for, in words."""
        if view.record.state in ENDED:
            return []
        reasons: list[str] = []
        fleet = self._reactor.engine.fleet
        if fleet.halted:
            reasons.append(fleet.halted)
        for kind in SlotKind:
            requirement = Requirement(kind=kind, toolchain=view.spec.toolchain, target=view.spec.target)
            reasons += [f"{kind.value} slot: {reason}" for reason in fleet.could_run(requirement)]
        if view.spec.generator == "manual" and (waiting := len(self._desk.ask(view.spec.id))):
            reasons.append(f"{waiting} prompts wait for an answer: kfd-client ask {view.spec.id}")
        return reasons

    async def _open_campaign(self, text: str) -> CampaignId:
        campaign = await self._reader.resolve_campaign(text)
        state = (await self._reader.campaign(campaign)).record.state
        if state in ENDED:
            raise WrongState(f"{campaign} has ended ({state.value})", mend=f"kfd-client status {campaign}")
        return campaign

    async def _has_ended(self, campaign: CampaignId) -> bool:
        if campaign in self._reactor.engine.campaigns:
            return False
        return (await self._reader.campaign(campaign)).record.state in ENDED


def _initial(task: TaskSpec, toolchain: str) -> Drafted | None:
    if task.kernel.is_empty:
        return None
    return drafted(task.kernel, toolchain)


def _printable(text: str | None) -> str:
    """Text that protobuf can carry."""
    if text is None:
        raise NotFound("there is no such text for this candidate")
    return text.encode("utf-8", "replace").decode("utf-8")
