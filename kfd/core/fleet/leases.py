"""A lease's life: granted, renewed, finished or lost; and what that makes of its job."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kfd.base.failure import Bug
from kfd.base.ids import JobId, WorkerName
from kfd.base.instant import SECOND, Instant, Span
from kfd.base.work import (
    Incident,
    IncidentCode,
    LeaseRef,
    Report,
    RunSpec,
    Stopped,
    Verdict,
    VerdictCode,
)
from kfd.core.fleet.model import (
    Fact,
    FinishedJob,
    FleetOutput,
    FleetPolicy,
    Job,
    JobSettled,
    JobState,
    SaveJob,
)
from kfd.core.fleet.placement import Placement
from kfd.core.fleet.soundness import sound
from kfd.core.fleet.state import Agent, Entry, Owner, Phase, Slot, incarnation_of
from kfd.core.fleet.timers import Timer, Timers

__all__ = ["Leases", "sound"]

RETRY_LOOK: Span = SECOND
"""How often a retry that found no fitting slot looks again."""


class Leases:
    """The open jobs and their leases. Appends to ``out``; jobs that came back to the queue are left in
    ``returned`` for the caller to place."""

    def __init__(self, policy: FleetPolicy) -> None:
        self.policy = policy
        self.out: list[FleetOutput] = []
        self.entries: dict[JobId, Entry] = {}
        self.orphans: dict[WorkerName, dict[JobId, Entry]] = {}
        self.placement = Placement()
        self.timers: Timers[Owner] = Timers()
        self.returned: list[Entry] = []

    def holds(self, entry: Entry, lease: LeaseRef) -> bool:
        """The fence: whether a lease is the current one of a job."""
        return entry.job.id == lease.job and entry.job.attempt == lease.attempt

    def fact(self, kind: str, job: Job | None = None, **body: str | int | float | bool | None) -> None:
        """Record that something happened."""
        campaign = None
        if job is not None:
            campaign = job.campaign
            body = {"job": job.id, "attempt": job.attempt, **body}
        self.out.append(Fact(kind=kind, campaign=campaign, body=tuple(body.items())))

    # ---- entering -------------------------------------------------------------------------------------

    def load(self, jobs: Iterable[Job], now: Instant) -> None:
        """Take in rows after a restart. Leases stay; their agents have the adoption time to come back."""
        for job in jobs:
            if job.state is JobState.SETTLED or job.id in self.entries:
                continue
            entry = self.entries[job.id] = Entry(job=job)
            if job.state is JobState.LEASED:
                if job.worker is None:
                    raise Bug(f"job {job.id} is leased to nobody")
                self.orphan(entry, now + self.policy.adoption)
            elif job.cancelled:
                self.settle(entry, Report(outcome=Stopped(reason="cancelled")), None)
            elif job.worker is not None:
                self._requeue(entry, now)
            else:
                self.placement.push(entry, now)
                self.returned.append(entry)

    def enqueue(self, job: Job, now: Instant) -> Entry | None:
        """Queue a new job; None when it is known already."""
        if job.id in self.entries:
            return None
        if job.state is not JobState.QUEUED:
            raise Bug(f"job {job.id} cannot be queued: it is {job.state.value}")
        entry = self.entries[job.id] = Entry(job=job)
        if job.cancelled:
            self.settle(entry, Report(outcome=Stopped(reason="cancelled")), None)
            return None
        self.placement.push(entry, now)
        return entry

    def orphan(self, entry: Entry, deadline: Instant) -> None:
        """Keep a lease whose slot is not there (any more, or not yet) until its deadline."""
        worker = entry.job.worker
        if worker is None:
            raise Bug(f"job {entry.job.id} is leased to nobody")
        self.orphans.setdefault(worker, {})[entry.job.id] = entry
        entry.timer = Timer(owner=entry, what="adoption")
        self.timers.arm(entry.timer, deadline)

    def unorphan(self, entry: Entry) -> Instant | None:
        """Take a lease out of the orphans; its deadline."""
        worker = entry.job.worker
        if worker is None or entry.job.id not in self.orphans.get(worker, {}):
            return None
        del self.orphans[worker][entry.job.id]
        if not self.orphans[worker]:
            del self.orphans[worker]
        timer, entry.timer = entry.timer, None
        if timer is None:
            return None
        deadline = timer.due
        self.timers.disarm(timer)
        return deadline

    # ---- granting -------------------------------------------------------------------------------------

    def grant(self, slot: Slot, entry: Entry, now: Instant) -> None:
        """Lease a job, already out of the queue, to a slot."""
        job = entry.job
        if job.cancelled or job.state is not JobState.QUEUED or slot.entry is not None:
            raise Bug(f"job {job.id} may not be granted to {slot.agent.worker}/{slot.name}")
        work = job.spec.work
        if isinstance(work, RunSpec) and self.placement.bind(
            job.campaign, work.toolchain, work.target, slot.offer.device_name
        ):
            self.fact(
                "campaign.bound",
                job,
                toolchain=work.toolchain,
                target=work.target,
                device_name=slot.offer.device_name,
            )
        self._forget_timer(entry)
        agent = slot.agent
        entry.job = replace(
            job,
            state=JobState.LEASED,
            attempt=job.attempt + 1,
            worker=agent.worker,
            slot=slot.name,
            session=agent.session,
        )
        self.attach(slot, entry, now + self.policy.lease_ttl, now)
        slot.offers = 1
        self.out.append(SaveJob(job=entry.job))

    def attach(self, slot: Slot, entry: Entry, deadline: Instant, now: Instant) -> None:
        """Let a slot hold a lease, as offered."""
        slot.entry, entry.slot = entry, slot
        slot.phase, slot.offers, slot.stage, slot.since = Phase.OFFERED, 0, "", now
        if entry.job.agent_losses:
            slot.agent.suspects.add(entry.job.id)
        self.timers.arm(slot.deadline, deadline)

    def detach(self, entry: Entry) -> None:
        """Take a lease off whatever holds it."""
        self.unorphan(entry)
        slot, entry.slot = entry.slot, None
        if slot is not None:
            slot.entry, slot.stage, slot.offers = None, "", 0
            slot.agent.suspects.discard(entry.job.id)
            self.timers.disarm(slot.deadline)

    # ---- ending ---------------------------------------------------------------------------------------

    def finish(self, entry: Entry, report: Report, agent: Agent, now: Instant) -> None:
        """The holder of a lease says how the job ended."""
        report = sound(entry.job.spec, report)
        slot, outcome = entry.slot, report.outcome
        if slot is not None and slot.health.note(entry.job.id, outcome, now):
            self.set_aside(slot, entry.job)
        agent.settled += 1
        if isinstance(outcome, Verdict):
            self.settle(entry, report, agent)
        elif entry.job.cancelled:
            stopped = outcome if isinstance(outcome, Stopped) else Stopped(reason=entry.reason or "cancelled")
            self.settle(entry, replace(report, outcome=stopped), agent)
        elif isinstance(outcome, Incident):
            self._incident(entry, report, now)
        else:
            text = f"worker {agent.worker} stopped the job by itself: {outcome.reason or 'no reason'}"
            self.give_back(entry, text, now)

    def set_aside(self, slot: Slot, job: Job) -> None:
        """Tell the campaign whose job was the last straw: it may have no other slot."""
        self.fact("slot.set_aside", job, worker=slot.agent.worker, slot=slot.name, reason=slot.health.aside)

    def late(self, finished: FinishedJob, agent: Agent) -> bool:
        """A report whose lease is gone: it counts if the job waits again and nobody was granted it since."""
        entry = self.entries.get(finished.lease.job)
        outcome = finished.report.outcome
        if (
            entry is not None
            and entry.queued
            and self.holds(entry, finished.lease)
            and entry.job.attempt > 0
            and entry.job.worker == agent.worker
            and isinstance(sound(entry.job.spec, finished.report).outcome, Verdict)
        ):
            agent.settled += 1
            self.settle(entry, sound(entry.job.spec, finished.report), agent)
            return True
        self.out.append(
            Fact(
                kind="report.late",
                campaign=entry.job.campaign if entry is not None else None,
                body=(
                    ("job", finished.lease.job),
                    ("attempt", finished.lease.attempt),
                    ("worker", agent.worker),
                    ("outcome", _name(outcome)),
                ),
            )
        )
        return False

    def lose(
        self,
        entry: Entry,
        code: IncidentCode,
        text: str,
        now: Instant,
        *,
        blame: bool = False,
        charge: bool = True,
    ) -> None:
        """A lease is lost. ``blame``: the agent died while the job ran, which may be the job's doing. Without
        ``charge`` the attempt does not count as an incident: its end has nothing to do with the job."""
        job = entry.job
        self.fact("lease.lost", job, worker=job.worker, slot=job.slot, reason=text)
        if job.cancelled:
            self.settle(entry, Report(outcome=Stopped(reason=entry.reason or "cancelled")), None)
            return
        if not charge:
            self.give_back(entry, text, now)
        elif blame:
            entry.job = replace(job, agent_losses=job.agent_losses + 1)
            if entry.job.agent_losses >= self.policy.poison_limit:
                self.settle(entry, _poison(entry.job, text), None)
            else:
                self._retry_or_settle(entry, Report(outcome=Incident(code=code, text=text)), now)
        else:
            self._incident(entry, Report(outcome=Incident(code=code, text=text)), now)

    def expire(self, slot: Slot, now: Instant) -> None:
        """A lease was not renewed in time. The job is suspected only when its whole agent is silent."""
        entry, agent = slot.entry, slot.agent
        if entry is None:
            return
        dead = agent.parked == 0 and agent.last_seen + self.policy.lease_ttl <= now
        blame = dead and slot.phase is Phase.ACTIVE
        code = IncidentCode.WORKER_LOST if dead else IncidentCode.LEASE_LOST
        text = f"no word from {agent.worker}" if dead else f"no word from slot {slot.name} of {agent.worker}"
        if blame:
            agent.blamed.append(entry)
        self.lose(entry, code, text, now, blame=blame)

    def give_back(self, entry: Entry, text: str, now: Instant) -> None:
        """An attempt came to nothing and nobody is charged: back to the queue, within reason."""
        if entry.job.attempt >= self.policy.attempt_limit:
            text = f"given up after {entry.job.attempt} attempts; the last: {text}"
            incident = Incident(code=IncidentCode.LEASE_LOST, text=text)
            self.settle(entry, Report(outcome=incident), None)
            return
        self.detach(entry)
        self._requeue(entry, now)

    def mark_cancelled(self, entry: Entry) -> None:
        """A job is not wanted any more; if it is leased it ends with its lease."""
        entry.job = replace(entry.job, cancelled=True)
        if not entry.queued:
            self.out.append(SaveJob(job=entry.job))

    def cancel_queued(self, entry: Entry) -> None:
        """A waiting job is not wanted any more."""
        self.settle(entry, Report(outcome=Stopped(reason=entry.reason)), None)

    def settle(self, entry: Entry, report: Report, agent: Agent | None) -> None:
        """A job has reached its end and is forgotten here."""
        if self.entries.pop(entry.job.id, None) is not entry:
            raise Bug(f"job {entry.job.id} is settled twice")
        if entry.queued:
            self.placement.remove(entry)
        self.detach(entry)
        self._forget_timer(entry)
        entry.job = replace(entry.job, state=JobState.SETTLED)
        self.out.append(SaveJob(job=entry.job))
        self.out.append(JobSettled(job=entry.job, report=report))

    def absolve(self, agent: Agent) -> None:
        """An agent thought dead speaks again in the same session: it was the network, not the jobs."""
        for entry in agent.blamed:
            if self.entries.get(entry.job.id) is entry and entry.job.agent_losses:
                entry.job = replace(
                    entry.job, agent_losses=entry.job.agent_losses - 1, incidents=entry.job.incidents + 1
                )
                if entry.slot is not None and not entry.job.agent_losses:
                    entry.slot.agent.suspects.discard(entry.job.id)
                self.out.append(SaveJob(job=entry.job))
        agent.blamed.clear()

    def adopt(self, agent: Agent, now: Instant) -> None:
        """An agent has registered: give it the leases that it held before the daemon restarted, or count them
        as lost when the agent has restarted as well. Leases that it holds now are renewed: it counts on that from
        the moment at which it sent the registration."""
        mine = incarnation_of(agent.session)
        for held in agent.slots.values():
            if held.entry is not None:
                self.timers.arm(held.deadline, max(held.deadline.due or 0, now + self.policy.lease_ttl))
        for entry in list(self.orphans.get(agent.worker, {}).values()):
            if incarnation_of(entry.job.session) != mine:
                text = "daemon and agent have both restarted"
                self.lose(entry, IncidentCode.WORKER_LOST, text, now, charge=False)
                continue
            slot = agent.slots.get(entry.job.slot) if entry.job.slot is not None else None
            if slot is not None and slot.entry is None:
                deadline = self.unorphan(entry)
                self.attach(slot, entry, max(deadline or 0, now + self.policy.lease_ttl), now)

    def _incident(self, entry: Entry, report: Report, now: Instant) -> None:
        entry.job = replace(entry.job, incidents=entry.job.incidents + 1)
        self._retry_or_settle(entry, report, now)

    def _retry_or_settle(self, entry: Entry, report: Report, now: Instant) -> None:
        job = entry.job
        if job.incidents + job.agent_losses >= self.policy.incident_limit:
            self.settle(entry, report, None)
            return
        self.detach(entry)
        outcome = report.outcome
        self.fact("job.retried", job, worker=job.worker, outcome=_name(outcome), text=_text(outcome))
        self._requeue(entry, now)

    def _requeue(self, entry: Entry, now: Instant) -> None:
        if entry.job.state is not JobState.QUEUED:
            entry.job = replace(entry.job, state=JobState.QUEUED)
            self.out.append(SaveJob(job=entry.job))
        entry.avoid_until = now + self.policy.lease_ttl
        self.placement.push_retry(entry, now)
        entry.timer = Timer(owner=entry, what="retry")
        self.timers.arm(entry.timer, now + RETRY_LOOK)
        self.returned.append(entry)

    def _forget_timer(self, entry: Entry) -> None:
        if entry.timer is not None:
            self.timers.disarm(entry.timer)
            entry.timer = None


def _poison(job: Job, text: str) -> Report:
    return Report(
        outcome=Verdict(
            code=VerdictCode.RUNTIME_ERROR,
            text=f"it crashes workers: {job.agent_losses} attempts ended with the loss of the worker's agent "
            f"while this candidate was being worked on (last: {text})",
        )
    )


def _name(outcome: Verdict | Incident | Stopped) -> str:
    return "stopped" if isinstance(outcome, Stopped) else outcome.code.value


def _text(outcome: Verdict | Incident | Stopped) -> str:
    return (outcome.reason if isinstance(outcome, Stopped) else outcome.text)[:500]
