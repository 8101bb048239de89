"""The engine: fleet and campaigns composed. One event in, commands out, nothing else happens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial

from kfd.base.failure import CallerError, NotFound
from kfd.base.ids import CampaignId, CandidateId, JobId, campaign_of
from kfd.base.instant import SECOND, Instant
from kfd.base.work import Report
from kfd.core.campaign.machine import Campaign
from kfd.core.campaign.ports import CancelJob, Enqueue, Loaded, Output
from kfd.core.campaign.state import ENDED, CampaignRecord, CampaignState
from kfd.core.commands import Command, CreateCampaign, Refuse, ReplyTo, SaveCampaign, SaveElite
from kfd.core.events import (
    AgentLeft,
    AgentRegistered,
    CallDropped,
    CampaignCancelled,
    CampaignPaused,
    CampaignResumed,
    CampaignSubmitted,
    DaemonStopping,
    DraftArrived,
    DraftFaulted,
    DraftMissed,
    DraftRejected,
    Event,
    MutationEvent,
    SlotSynced,
    SpaceChanged,
    Ticked,
    WorkerDrained,
)
from kfd.core.fleet.machine import Fleet
from kfd.core.fleet.model import NEVER, CallId, Fact, FleetOutput, FleetPolicy, Job, JobSettled
from kfd.core.fleet.placement import BondKey

__all__ = ["Engine"]

KEEP_TIME_EVERY = 30 * SECOND
"""How much of a campaign's running time a crash may forget."""


class Engine:
    """The daemon's whole state machine."""

    def __init__(self, policy: FleetPolicy, boot: bytes) -> None:
        self.fleet = Fleet(policy, boot)
        self.campaigns: dict[CampaignId, Campaign] = {}
        self._by_key: dict[str, tuple[CampaignId, str]] = {}
        self._names: set[str] = set()
        self._counters: dict[str, int] = {}
        self._keep_time_at: Instant = 0

    def load(
        self,
        loaded: Iterable[Loaded],
        jobs: dict[JobId, Job],
        sources: dict[CandidateId, str],
        keys: Iterable[tuple[str, CampaignId, str]],
        now: Instant,
        bonds: Mapping[BondKey, str] | None = None,
    ) -> list[Command]:
        """Take over what the store holds; what is owed follows from it (levels, not edges).

        ``jobs`` are the rows of jobs that have not settled; a candidate that needs a job and has no row gets a
        fresh one. ``keys`` are (idempotency key, campaign, name) of all campaigns ever;
        ``bonds`` the device models that campaigns are bound to.
        """
        for key, campaign, name in keys:
            self._remember(key, campaign, name)
        adopted: list[Job] = []
        out: list[Output] = []
        for one in loaded:
            campaign_machine = Campaign(one, now)
            self._adopt(campaign_machine)
            for job in campaign_machine.jobs(sources):
                row = jobs.get(job.id)
                if row is None:
                    out.append(Enqueue(job=job))
                else:
                    adopted.append(replace(row, spec=job.spec))
        commands = self._fleet_outputs(self.fleet.load(adopted, now, bonds), now)
        commands += self._campaign_outputs(out, now)
        for campaign_machine in list(self.campaigns.values()):
            commands += self._step(campaign_machine, lambda one: one.advance(now), now)
        return commands

    def owed(self, now: Instant) -> list[Command]:
        """Effects that should be running and are not."""
        commands: list[Command] = []
        for campaign in list(self.campaigns.values()):
            commands += self._step(campaign, lambda one: one.owed(now), now)
        return commands

    def handle(self, event: Event, now: Instant) -> list[Command]:
        """Take one event. A caller's mistake becomes a Refuse command; a Bug is raised."""
        try:
            return self._handle(event, now)
        except CallerError as error:
            call = getattr(event, "call", None)
            if call is None:
                raise
            return [Refuse(call=call, error=error)]

    def next_wake(self, now: Instant) -> Instant:
        """When ``Ticked`` should come at the latest."""
        wakes = [self.fleet.next_wake() or NEVER]
        wakes += [campaign.next_wake(now) for campaign in self.campaigns.values()]
        if self.campaigns:
            wakes.append(self._keep_time_at)
        return min(wakes)

    def check(self) -> None:
        """Raise Bug when an invariant does not hold."""
        self.fleet.check()
        for campaign in self.campaigns.values():
            campaign.check()

    # ---- routing --------------------------------------------------------------------------------------

    def _handle(self, event: Event, now: Instant) -> list[Command]:
        match event:
            case SlotSynced():
                return self._fleet_outputs(self.fleet.sync(event.call, event.report, now), now)
            case AgentRegistered():
                return self._fleet_outputs(self.fleet.register(event.call, event.registration, now), now)
            case AgentLeft():
                return self._fleet_outputs(self.fleet.leave(event.call, event.session, event.reason, now), now)
            case CallDropped():
                return self._fleet_outputs(self.fleet.drop_call(event.call, now), now)
            case WorkerDrained():
                return self._drain(event, now)
            case Ticked():
                return self._tick(now)
            case DaemonStopping():
                return self._stop(event.call, now)
            case SpaceChanged():
                return self._space(event, now)
            case CampaignSubmitted():
                return self._submit(event, now)
            case CampaignPaused() | CampaignResumed() | CampaignCancelled():
                return self._steer(event, now)
            case DraftArrived() | DraftRejected() | DraftMissed() | DraftFaulted():
                return self._draft(event, now)
            case _:
                return self._mutation(event, now)

    def _tick(self, now: Instant) -> list[Command]:
        commands = self._fleet_outputs(self.fleet.tick(now), now)
        for campaign in list(self.campaigns.values()):
            commands += self._step(campaign, lambda one: [*one.advance(now), *one.owed(now)], now)
        if now >= self._keep_time_at:
            self._keep_time_at = now + KEEP_TIME_EVERY
            for campaign in self.campaigns.values():
                if campaign.record.state in (CampaignState.RUNNING, CampaignState.BASELINING):
                    commands += self._campaign_outputs(campaign.keep_time(now), now)
        return commands

    def _stop(self, call: CallId, now: Instant) -> list[Command]:
        commands = self._fleet_outputs(self.fleet.release_all(now), now)
        for campaign in list(self.campaigns.values()):
            commands += self._step(campaign, lambda one: one.keep_time(now), now)
        return [*commands, ReplyTo(call=call, value=None)]

    def _drain(self, event: WorkerDrained, now: Instant) -> list[Command]:
        if event.drain:
            outputs = self.fleet.drain(event.worker, event.reason, now)
        else:
            outputs = self.fleet.undrain(event.worker, now)
        return [*self._fleet_outputs(outputs, now), ReplyTo(call=event.call, value=None)]

    def _space(self, event: SpaceChanged, now: Instant) -> list[Command]:
        fact = Fact(kind="disk.full" if event.low else "disk.freed", body=(("text", event.text),))
        commands: list[Command] = [fact]
        if event.low:
            self.fleet.halt(event.text)
        else:
            commands += self._fleet_outputs(self.fleet.resume(now), now)
        for campaign in list(self.campaigns.values()):
            campaign.hold(event.low)
            commands += self._step(campaign, lambda one: one.advance(now), now)
        return commands

    def _submit(self, event: CampaignSubmitted, now: Instant) -> list[Command]:
        spec = event.spec
        known = self._by_key.get(spec.idempotency_key)
        if known is not None:
            return [ReplyTo(call=event.call, value=(known[0], known[1], True))]
        if not spec.name:
            stem = f"{spec.task_name}-check" if spec.validate_only else spec.task_name
            spec = replace(spec, name=self._free_name(stem))
        elif spec.name in self._names:
            raise CallerError(f"there is a campaign named {spec.name}", mend="give another --name")
        record = CampaignRecord(id=spec.id, state=CampaignState.BASELINING)
        campaign = Campaign(Loaded(spec=spec, record=record), now)
        campaign.hold(bool(self.fleet.halted))
        self._adopt(campaign)
        self._remember(spec.idempotency_key, spec.id, spec.name)
        commands: list[Command] = [CreateCampaign(spec=spec, record=record)]
        commands += self._campaign_outputs(campaign.begin(event.initial, event.initial_text, now), now)
        return [*commands, ReplyTo(call=event.call, value=(spec.id, spec.name, False))]

    def _steer(self, event: CampaignPaused | CampaignResumed | CampaignCancelled, now: Instant) -> list[Command]:
        campaign = self.campaigns.get(event.campaign)
        if campaign is None:
            raise NotFound(f"no campaign {event.campaign} is in progress", mend="kfd-client list")
        match event:
            case CampaignPaused(reason=reason):
                outputs = campaign.pause(reason, now)
            case CampaignResumed():
                outputs = campaign.resume(now)
            case CampaignCancelled(reason=reason):
                outputs = campaign.cancel(reason, now)
        commands = self._campaign_outputs(outputs, now)
        return [*commands, ReplyTo(call=event.call, value=None)]

    def _draft(self, event: DraftArrived | DraftRejected | DraftMissed | DraftFaulted, now: Instant) -> list[Command]:
        campaign = self.campaigns.get(campaign_of(event.candidate))
        if campaign is None:
            return []
        return self._step(campaign, lambda one: one.draft_ended(event, now), now)

    def _mutation(self, event: MutationEvent, now: Instant) -> list[Command]:
        campaign = self.campaigns.get(campaign_of(CandidateId(event.mutation)))
        if campaign is None:
            return []
        return self._step(campaign, lambda one: one.mutation_ended(event, now), now)

    # ---- composition ----------------------------------------------------------------------------------

    def _step(self, campaign: Campaign, step: Callable[[Campaign], list[Output]], now: Instant) -> list[Command]:
        """One step of one campaign. A fault of ours in it ends that campaign and no other."""
        try:
            outputs = step(campaign)
        except Exception as error:  # noqa: BLE001 - whatever it is, the other campaigns go on
            outputs = campaign.fail(f"internal fault, please report it: {error!r}", now)
        commands = self._campaign_outputs(outputs, now)
        if campaign.spec.group and any(isinstance(output, SaveElite) for output in outputs):
            for sibling in self._siblings(campaign):
                commands += self._step(sibling, lambda one: one.advance(now), now)
        return commands

    def _adopt(self, campaign: Campaign) -> None:
        """Keep a campaign; one of a group is offered the elites of the others."""
        self.campaigns[campaign.spec.id] = campaign
        if campaign.spec.group:
            campaign.offered = lambda: [elite for one in self._siblings(campaign) for elite in one.exports()]

    def _siblings(self, campaign: Campaign) -> list[Campaign]:
        """The other campaigns of its group that have not ended; a kernel of another task would mean nothing here."""
        spec = campaign.spec
        return [
            one
            for id_, one in self.campaigns.items()
            if id_ != spec.id and one.spec.group == spec.group and one.spec.task == spec.task
        ]

    def _fleet_outputs(self, outputs: Iterable[FleetOutput], now: Instant) -> list[Command]:
        commands: list[Command] = []
        for output in outputs:
            if isinstance(output, JobSettled):
                campaign = self.campaigns.get(output.job.campaign)
                if campaign is not None:
                    settle = partial(_settle, job=output.job, report=output.report, now=now)
                    commands += self._step(campaign, settle, now)
            else:
                commands.append(output)
        return commands

    def _campaign_outputs(self, outputs: Iterable[Output], now: Instant) -> list[Command]:
        commands: list[Command] = []
        for output in outputs:
            match output:
                case Enqueue(job=job):
                    commands += self._fleet_outputs(self.fleet.enqueue(job, now), now)
                case CancelJob(job=job, reason=reason):
                    commands += self._fleet_outputs(self.fleet.cancel(job, reason, now), now)
                case SaveCampaign(record=record):
                    commands.append(output)
                    if record.state in ENDED:
                        self.campaigns.pop(record.id, None)
                        self.fleet.forget(record.id)
                case _:
                    commands.append(output)
        return commands

    def _remember(self, key: str, campaign: CampaignId, name: str) -> None:
        if key:
            self._by_key[key] = (campaign, name)
        self._names.add(name)

    def _free_name(self, task: str) -> str:
        count = self._counters.get(task, 0) + 1
        while f"{task}-{count}" in self._names:
            count += 1
        self._counters[task] = count
        return f"{task}-{count}"


def _settle(campaign: Campaign, *, job: Job, report: Report, now: Instant) -> list[Output]:
    return campaign.job_settled(job, report, now)
