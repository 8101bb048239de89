"""The fleet machine: which worker may do which job, and for how long (worker-protocol, sections 3 to 6).

Pure: the time comes in with each input, what should happen comes out as a list. Reports say what is, answers
say what should be; whatever was lost in between is repaired by the next exchange of the slot.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kfd.base.ids import CampaignId, JobId, SessionId, WorkerName
from kfd.base.instant import Instant
from kfd.base.work import IncidentCode, LeaseRef, Requirement
from kfd.core.fleet import views
from kfd.core.fleet.calls import Calls
from kfd.core.fleet.invariants import check_fleet
from kfd.core.fleet.leases import RETRY_LOOK, Leases
from kfd.core.fleet.model import (
    CallId,
    FinishedJob,
    FleetOutput,
    FleetPolicy,
    IdleState,
    Job,
    QueueView,
    RegisterAnswer,
    RegisterStatus,
    Registration,
    Reply,
    RunningState,
    SaveJob,
    StartDirective,
    SyncAnswer,
    SyncReport,
    SyncStatus,
    WorkerSeen,
)
from kfd.core.fleet.placement import BondKey
from kfd.core.fleet.sessions import Sessions
from kfd.core.fleet.state import Agent, Bond, Entry, Owner, Phase, Slot
from kfd.core.fleet.timers import Timer

__all__ = ["Fleet"]


class Fleet:
    """Jobs, leases, slots and workers. Every input returns what is to be done, in order; replies may leave
    only after everything else in the list is durable."""

    def __init__(self, policy: FleetPolicy, boot: bytes) -> None:
        self.policy = policy
        self.boot = boot
        self.leases = Leases(policy)
        self.sessions = Sessions(policy, boot, self.leases)
        self.calls = Calls(boot, self.leases)
        self.halted = ""
        self.stopping = False

    # ---- inputs: jobs ---------------------------------------------------------------------------------

    def load(self, jobs: Iterable[Job], now: Instant, bonds: Mapping[BondKey, str] | None = None) -> list[FleetOutput]:
        """Take in the open jobs after a restart, and the device models that campaigns were bound to (from the
        facts ``campaign.bound``). Call it before any other input. Raises Bug on rows that cannot be."""
        out = self._begin()
        placement = self.leases.placement
        for (campaign, toolchain, target), model in (bonds or {}).items():
            placement.bind(campaign, toolchain, target, model)
        for key in placement.bound:
            self.leases.timers.arm(Bond(key).timer, now + self.policy.adoption)
        self.leases.load(jobs, now)
        return self._end(out, now)

    def enqueue(self, job: Job, now: Instant) -> list[FleetOutput]:
        """Queue a new job (state ``queued``); one that is known already changes nothing."""
        out = self._begin()
        entry = self.leases.enqueue(job, now)
        if entry is not None and not self._place(entry, now):
            out.append(SaveJob(job=job))
        return out

    def cancel(self, job_id: JobId, reason: str, now: Instant) -> list[FleetOutput]:
        """Nobody wants this job any more. A leased one settles when its slot has stopped it or is lost."""
        out = self._begin()
        entry = self.leases.entries.get(job_id)
        if entry is None or entry.job.cancelled:
            return out
        entry.reason = reason
        self.leases.mark_cancelled(entry)
        slot = entry.slot
        if entry.queued:
            self.leases.cancel_queued(entry)
        elif slot is not None and slot.call is not None and slot.phase is Phase.ACTIVE:
            self.calls.tell_stop(slot, entry.lease, reason, now)
        return out

    def forget(self, campaign: CampaignId) -> None:
        """A campaign has ended: drop what is remembered about it (its bond to a device model)."""
        self.leases.placement.forget(campaign)

    def halt(self, reason: str) -> None:
        """Grant nothing until ``resume``: the daemon cannot take results in (a full disk)."""
        self.halted = reason

    def resume(self, now: Instant) -> list[FleetOutput]:
        """Grant again."""
        out = self._begin()
        if self.halted:
            self.halted = ""
            for slot in list(self.calls.parked.values()):
                self._offer_work(slot, now)
        return self._end(out, now)

    # ---- inputs: agents -------------------------------------------------------------------------------

    def register(self, call: CallId, registration: Registration, now: Instant) -> list[FleetOutput]:
        """An agent opens (or announces again) its session. Idempotent by boot nonce."""
        out = self._begin()
        if self.stopping:
            answer = RegisterAnswer(status=RegisterStatus.RETRY, text="the daemon is stopping", boot=self.boot)
            out.append(Reply(call=call, answer=answer))
            return out
        answer = self.sessions.register(registration, now, self.calls.dismiss)
        out.append(Reply(call=call, answer=answer))
        return self._end(out, now)

    def sync(self, call: CallId, report: SyncReport, now: Instant) -> list[FleetOutput]:
        """A slot says what it is doing (reconciliation table, worker-protocol 4.1)."""
        out = self._begin()
        slot = self.sessions.slot_of(report)
        status = self._refusal(slot, report)
        if status is not None or slot is None:
            answer = SyncAnswer(status=status or SyncStatus.REREGISTER, boot=self.boot)
            out.append(Reply(call=call, answer=answer))
            return out
        self.sessions.hear(slot.agent, now)
        if slot.call is not None:
            self.calls.answer(slot, SyncStatus.SUPERSEDED)
        self.calls.park(slot, call, report, now)
        state = report.state
        if isinstance(state, RunningState):
            self._running(slot, state, now)
        elif isinstance(state, FinishedJob):
            self._finished(slot, state, now)
        else:
            self._idle(slot, state, now)
        return self._end(out, now)

    def leave(self, call: CallId, session: SessionId, reason: str, now: Instant) -> list[FleetOutput]:
        """An agent ends its session in good order; leases that it still holds are lost now."""
        out = self._begin()
        agent = self.sessions.by_session.get(session)
        if agent is not None:
            self.sessions.end(agent, f"it left: {reason}", now, self.calls.dismiss, blame=False, charge=False)
            self.leases.fact("worker.left", worker=agent.worker, reason=reason)
        out.append(Reply(call=call, answer=None))
        return self._end(out, now)

    def drop_call(self, call: CallId, now: Instant) -> list[FleetOutput]:
        """The peer of a parked call went away. Disconnected is not dead: the lease stays."""
        out = self._begin()
        slot = self.calls.parked.get(call)
        if slot is not None:
            self.calls.unpark(slot)
            slot.since = now
        return out

    def drain(self, worker: WorkerName, reason: str, now: Instant) -> list[FleetOutput]:
        """Grant this worker nothing more; what runs may finish. Raises NotFound."""
        out = self._begin()
        agent = self.sessions.named(worker)
        agent.drained = reason
        for slot in agent.slots.values():
            self.leases.placement.unwait(slot)
            self.sessions.recount(slot, now)
        self.leases.fact("worker.drained", worker=worker, reason=reason)
        return self._end(out, now)

    def undrain(self, worker: WorkerName, now: Instant) -> list[FleetOutput]:
        """Put a drained worker back into service. Raises NotFound."""
        out = self._begin()
        agent = self.sessions.named(worker)
        if agent.drained is not None:
            agent.drained = None
            self.leases.fact("worker.undrained", worker=worker)
            for slot in agent.slots.values():
                self.sessions.recount(slot, now)
                self._offer_work(slot, now)
        return self._end(out, now)

    def release_all(self, now: Instant) -> list[FleetOutput]:
        """The daemon stops: every parked call is answered RETRY, and every later one too."""
        out = self._begin()
        self.stopping = True
        for slot in list(self.calls.parked.values()):
            self.calls.answer(slot, SyncStatus.RETRY)
        return out

    # ---- inputs: time ---------------------------------------------------------------------------------

    def tick(self, now: Instant) -> list[FleetOutput]:
        """Do what is due: holds end, leases run out, silent agents are marked."""
        out = self._begin()
        timers = self.leases.timers
        while (timer := timers.pop_due(now)) is not None:
            self._fire(timer, now)
            self._place_returned(now)
        return out

    def next_wake(self) -> Instant | None:
        """When ``tick`` should be called next, at the latest; None when nothing is due ever."""
        return self.leases.timers.next_wake()

    # ---- read models ----------------------------------------------------------------------------------

    def workers(self, now: Instant) -> list[WorkerSeen]:
        """Every worker that is known, by name."""
        return views.workers(self.sessions.agents.values(), self.policy, now)

    def queue_view(self, now: Instant) -> QueueView:
        """How long the queue is and what waits there."""
        return views.queue(self.leases, self.halted, now)

    def could_run(self, requirement: Requirement) -> list[str]:
        """Why no slot could run such a job now or after waiting; empty when one could."""
        if not self.leases.placement.why_not(requirement):
            return []
        return views.reasons(self.sessions.agents.values(), requirement)

    def bonds(self) -> dict[BondKey, str]:
        """Device models that campaigns are bound to, for ``load``."""
        return dict(self.leases.placement.bonds)

    def check(self) -> None:
        """Raise Bug when an invariant does not hold. Looks at everything: for tests and for the fearful."""
        check_fleet(self.leases, self.sessions, self.calls.parked)

    # ---- reconciliation -------------------------------------------------------------------------------

    def _refusal(self, slot: Slot | None, report: SyncReport) -> SyncStatus | None:
        if self.stopping:
            return SyncStatus.RETRY
        if slot is None:
            return SyncStatus.REREGISTER
        if report.boot != self.boot:
            return SyncStatus.RETRY
        if self.is_stale(slot, report.seq):
            return SyncStatus.SUPERSEDED
        return None

    def is_stale(self, slot: Slot, seq: int) -> bool:
        """Whether a request was overtaken by a newer one of its slot."""
        return seq <= slot.seq

    def _idle(self, slot: Slot, state: IdleState, now: Instant) -> None:
        entry = slot.entry
        if entry is not None:
            if slot.phase is Phase.ACTIVE:
                text = "the slot says idle though it reported the job running"
                self.leases.fact("protocol.broken", entry.job, worker=slot.agent.worker, slot=slot.name, text=text)
                self.leases.lose(entry, IncidentCode.LEASE_LOST, text, now, blame=False)
            elif entry.job.cancelled:
                self.leases.lose(entry, IncidentCode.LEASE_LOST, "cancelled before it began", now, blame=False)
            elif not slot.accepting:
                self.leases.give_back(entry, "the slot was no longer ready for it", now)
            elif slot.offers >= self.policy.offer_limit:
                text = f"offered {slot.offers} times and never begun"
                if slot.health.fault(entry.job.id, text):
                    self.leases.set_aside(slot, entry.job)
                self.leases.lose(entry, IncidentCode.LEASE_LOST, text, now, blame=False)
            else:
                self._offer_again(slot, entry, now, None)
                return
        self.sessions.recount(slot, now)
        self._offer_work(slot, now)
        if slot.call is not None:
            self.leases.timers.arm(slot.hold, now + self.policy.idle_hold)

    def _running(self, slot: Slot, state: RunningState, now: Instant) -> None:
        entry = slot.entry
        if entry is None or not self.leases.holds(entry, state.lease):
            self.calls.tell_stop(slot, state.lease, "unknown_lease", now)
            return
        if slot.phase is not Phase.ACTIVE or slot.stage != state.stage:
            slot.since = now - min(state.in_stage, now) if state.in_stage > 0 else now
        slot.phase, slot.stage = Phase.ACTIVE, state.stage
        self.leases.timers.arm(slot.deadline, now + self.policy.lease_ttl)
        if entry.job.cancelled:
            self.calls.tell_stop(slot, state.lease, entry.reason or "cancelled", now)
        else:
            self.leases.timers.arm(slot.hold, now + self.policy.busy_hold)

    def _finished(self, slot: Slot, state: FinishedJob, now: Instant) -> None:
        entry = slot.entry
        if entry is not None and self.leases.holds(entry, state.lease):
            self.leases.finish(entry, state.report, slot.agent, now)
            slot.since = now
        else:
            self.leases.late(state, slot.agent)
        self.sessions.recount(slot, now)
        entry = slot.entry
        if entry is None and slot.willing and not self.halted:
            entry = self.leases.placement.take(slot, now)
            if entry is not None:
                self._start(slot, entry, now, state.lease)
                return
        elif (
            entry is not None
            and slot.phase is Phase.OFFERED
            and not entry.job.cancelled
            and slot.accepting
            and slot.offers < self.policy.offer_limit
        ):
            self._offer_again(slot, entry, now, state.lease)
            return
        self.calls.answer(slot, SyncStatus.OK, acknowledged=state.lease)

    def _offer_work(self, slot: Slot, now: Instant) -> None:
        """Give a parked idle slot a job, or let it wait for one."""
        if slot.call is None or slot.entry is not None or slot.busy or self.halted or not slot.willing:
            return
        entry = self.leases.placement.take(slot, now)
        if entry is None:
            self.leases.placement.wait(slot)
        else:
            self._start(slot, entry, now, None)

    def _start(self, slot: Slot, entry: Entry, now: Instant, acknowledged: LeaseRef | None) -> None:
        self.leases.grant(slot, entry, now)
        self.calls.answer(
            slot,
            SyncStatus.OK,
            acknowledged=acknowledged,
            directive=StartDirective(lease=entry.lease, held=now - slot.arrived, spec=entry.job.spec),
        )

    def _offer_again(self, slot: Slot, entry: Entry, now: Instant, acknowledged: LeaseRef | None) -> None:
        """The answer with the start was lost: send it again. An idle slot runs nothing under the lease."""
        slot.offers += 1
        self.leases.timers.arm(slot.deadline, max(slot.deadline.due or 0, now + self.policy.lease_ttl))
        directive = StartDirective(lease=entry.lease, held=now - slot.arrived, spec=entry.job.spec)
        self.calls.answer(slot, SyncStatus.OK, acknowledged=acknowledged, directive=directive)

    # ---- time -----------------------------------------------------------------------------------------

    def _fire(self, timer: Timer[Owner], now: Instant) -> None:
        owner = timer.owner
        if isinstance(owner, Slot):
            if timer.what == "hold":
                self.calls.hold_over(owner, now)
            else:
                self.leases.expire(owner, now)
        elif isinstance(owner, Agent):
            self.sessions.silent(owner, now, self.calls.dismiss)
        elif isinstance(owner, Bond):
            self._model_gone(owner, now)
        elif timer.what == "adoption":
            text = f"worker {owner.job.worker} did not come back in time"
            self.leases.lose(owner, IncidentCode.WORKER_LOST, text, now, blame=False)
        elif owner.queued and not self._place(owner, now):
            self.leases.timers.arm(timer, now + RETRY_LOOK)

    def _model_gone(self, bond: Bond, now: Instant) -> None:
        placement = self.leases.placement
        if bond.key in placement.serving or bond.key not in placement.bound:
            return
        campaigns = placement.unbind(bond.key)
        self.leases.fact("device.gone", device_name=bond.key[3], campaigns=len(campaigns))
        free = (bond.key[0], bond.key[1], bond.key[2], None)
        for slot in list(placement.waiting.get(free, ())):
            self._offer_work(slot, now)

    # ---- placing --------------------------------------------------------------------------------------

    def _place(self, entry: Entry, now: Instant) -> bool:
        """Give a queued job to a waiting slot. Whether one was found."""
        if self.halted or self.stopping or not entry.queued:
            return False
        placement = self.leases.placement
        slot = placement.slot_for(entry, now)
        if slot is None:
            return False
        placement.remove(entry)
        self._start(slot, entry, now, None)
        return True

    def _place_returned(self, now: Instant) -> None:
        returned = self.leases.returned
        while returned:
            self._place(returned.pop(0), now)

    def _begin(self) -> list[FleetOutput]:
        self.leases.out = []
        return self.leases.out

    def _end(self, out: list[FleetOutput], now: Instant) -> list[FleetOutput]:
        if self.leases.returned:
            self._place_returned(now)
        return out
