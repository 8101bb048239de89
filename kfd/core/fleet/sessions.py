"""Agents by name and their sessions: who is registered, who was heard, who is gone."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from kfd.base.failure import NotFound
from kfd.base.ids import SessionId, SlotName, WorkerName
from kfd.base.instant import MINUTE, Instant, Span
from kfd.base.version import PROTOCOL_MAX, PROTOCOL_MIN
from kfd.base.work import IncidentCode, LeaseRef
from kfd.core.fleet.health import SlotHealth
from kfd.core.fleet.leases import Leases
from kfd.core.fleet.model import (
    FinishedJob,
    FleetPolicy,
    RegisterAnswer,
    RegisterStatus,
    Registration,
    SlotOffer,
    SyncReport,
)
from kfd.core.fleet.state import Agent, Bond, Phase, Slot, keys_of, session_id

__all__ = ["Sessions"]

Dismiss: TypeAlias = Callable[[Slot], None]

FORGET_SILENT: Span = 60 * MINUTE
"""A session that was silent for so long is ended."""
REMEMBERED = 256
"""Workers without a session that are remembered for people."""


class Sessions:
    """Registration, liveness and the end of sessions."""

    def __init__(self, policy: FleetPolicy, boot: bytes, leases: Leases) -> None:
        self.policy = policy
        self.boot = boot
        self.leases = leases
        self.agents: dict[WorkerName, Agent] = {}
        self.by_session: dict[SessionId, Agent] = {}

    def named(self, worker: WorkerName) -> Agent:
        """Worker by name. Raises NotFound."""
        agent = self.agents.get(worker)
        if agent is None:
            raise NotFound(
                f"no worker is called {worker!r}",
                mend="List the workers; a name is known once it has registered.",
            )
        return agent

    def slot_of(self, report: SyncReport) -> Slot | None:
        """Slot that a report is about; None when its session or its name is unknown."""
        agent = self.by_session.get(report.session)
        return None if agent is None else agent.slots.get(report.slot)

    # ---- registering ----------------------------------------------------------------------------------

    def register(self, registration: Registration, now: Instant, dismiss: Dismiss) -> RegisterAnswer:
        """Open a session, or announce it again. Results in the outbox are taken in first."""
        agent = self.agents.get(registration.worker)
        refused = self._refusal(agent, registration, now)
        if refused is not None:
            return refused
        if agent is None:
            agent = self.agents[registration.worker] = Agent(worker=registration.worker)
            self._forget_some()
        same = agent.session is not None and agent.nonce == registration.boot_nonce
        acknowledged = tuple(self._take_in(agent, finished, now) for finished in registration.outbox)
        if not same:
            self.end(agent, "its agent has restarted", now, dismiss, blame=True)
            agent.session = session_id(registration.worker, registration.boot_nonce, self.boot)
            self.by_session[agent.session] = agent
        agent.nonce, agent.machine_id = registration.boot_nonce, registration.machine_id
        agent.version, agent.reason = registration.agent_version, ""
        agent.protocol = min(PROTOCOL_MAX, registration.protocol_max)
        self.hear(agent, now)
        self._announce(agent, registration, now, dismiss)
        self.leases.adopt(agent, now)
        if not same:
            self.leases.fact("worker.registered", worker=agent.worker, slots=len(agent.slots))
        return RegisterAnswer(
            status=RegisterStatus.OK,
            session=agent.session,
            protocol=agent.protocol,
            boot=self.boot,
            acknowledged=acknowledged,
        )

    def _refusal(self, agent: Agent | None, asked: Registration, now: Instant) -> RegisterAnswer | None:
        if asked.protocol_min > PROTOCOL_MAX or asked.protocol_max < PROTOCOL_MIN:
            text = (
                f"this daemon speaks protocol {PROTOCOL_MIN} to {PROTOCOL_MAX}, "
                f"the agent {asked.protocol_min} to {asked.protocol_max}: install matching versions"
            )
            self.leases.fact("worker.refused", worker=asked.worker, reason=text)
            return RegisterAnswer(status=RegisterStatus.WRONG_PROTOCOL, text=text, boot=self.boot)
        if agent is None or (agent.session is not None and agent.nonce == asked.boot_nonce):
            return None
        text = ""
        if asked.boot_nonce in agent.past_nonces:
            text = (
                f"a newer agent has registered as {asked.worker!r}, or this one has left: "
                "restart the agent, under another --name if both shall run"
            )
        elif (
            agent.session is not None
            and agent.machine_id != asked.machine_id
            and (agent.parked > 0 or agent.last_seen + self.policy.lease_ttl > now)
        ):
            text = f"another machine is registered as {asked.worker!r} and alive: choose another --name"
        if not text:
            return None
        self.leases.fact("worker.refused", worker=asked.worker, reason=text)
        return RegisterAnswer(status=RegisterStatus.NAME_IN_USE, text=text, boot=self.boot)

    def _take_in(self, agent: Agent, finished: FinishedJob, now: Instant) -> LeaseRef:
        """A report from an agent's outbox: it counts if the lease is still its own, or by the late rule."""
        entry = self.leases.entries.get(finished.lease.job)
        if (
            entry is not None
            and not entry.queued
            and entry.job.worker == agent.worker
            and self.leases.holds(entry, finished.lease)
        ):
            self.leases.finish(entry, finished.report, agent, now)
        else:
            self.leases.late(finished, agent)
        return finished.lease

    def _announce(self, agent: Agent, asked: Registration, now: Instant, dismiss: Dismiss) -> None:
        """Slots and toolchains as they are now. A slot that is gone keeps its lease until that runs out."""
        offered: dict[SlotName, SlotOffer] = {offer.slot: offer for offer in asked.slots}
        agent.toolchains = asked.toolchains
        agent.host = asked.host
        for name in [name for name in agent.slots if name not in offered]:
            slot = agent.slots[name]
            entry, deadline = slot.entry, slot.deadline.due
            self._drop(slot, now, dismiss)
            if entry is not None:
                self.leases.detach(entry)
                self.leases.orphan(entry, deadline or now + self.policy.lease_ttl)
            del agent.slots[name]
        for name, offer in offered.items():
            known = agent.slots.get(name)
            if known is None:
                known = Slot(agent=agent, offer=offer, health=SlotHealth(self.policy.slot_incident_limit))
                known.since = now
                agent.slots[name] = known
            waited = known.ready
            self.leases.placement.unwait(known)
            self._uncount(known, now)
            known.offer, known.keys = offer, keys_of(offer, agent.toolchains)
            known.health.trust()
            self.recount(known, now)
            if waited and known.counted:
                self.leases.placement.wait(known)

    # ---- liveness -------------------------------------------------------------------------------------

    def hear(self, agent: Agent, now: Instant) -> None:
        """A message of an agent has arrived."""
        agent.last_seen = now
        if agent.blamed:
            self.leases.absolve(agent)
        if agent.live:
            return
        agent.live = True
        for slot in agent.slots.values():
            self.recount(slot, now)
        self.leases.timers.arm(agent.silence, now + self.policy.lease_ttl)
        if agent.reason:
            agent.reason = ""
            self.leases.fact("worker.returned", worker=agent.worker)

    def silent(self, agent: Agent, now: Instant, dismiss: Dismiss) -> None:
        """An agent's silence timer has come up."""
        timers, ttl = self.leases.timers, self.policy.lease_ttl
        if agent.session is None:
            return
        if agent.parked:
            timers.arm(agent.silence, now + ttl)
        elif agent.last_seen + ttl > now:
            timers.arm(agent.silence, agent.last_seen + ttl)
        elif agent.live:
            agent.live, agent.reason = False, "no word from its agent"
            for slot in agent.slots.values():
                self._uncount(slot, now)
            self.leases.fact("worker.silent", worker=agent.worker)
            timers.arm(agent.silence, now + FORGET_SILENT)
        else:
            self.end(agent, "no word from its agent for an hour", now, dismiss, blame=False)

    def end(
        self, agent: Agent, reason: str, now: Instant, dismiss: Dismiss, *, blame: bool, charge: bool = True
    ) -> None:
        """End an agent's session, if any. Its leases are lost now; ``blame`` and ``charge`` as in ``Leases.lose``,
        but only what was running is blamed."""
        if agent.session is None:
            return
        entries = [(slot.entry, slot.phase) for slot in agent.slots.values() if slot.entry is not None]
        for slot in agent.slots.values():
            self._drop(slot, now, dismiss)
        for entry, phase in entries:
            guilty = blame and phase is Phase.ACTIVE
            self.leases.lose(entry, IncidentCode.WORKER_LOST, reason, now, blame=guilty, charge=charge)
        for entry in list(self.leases.orphans.get(agent.worker, {}).values()):
            if entry.job.session == agent.session:
                self.leases.lose(entry, IncidentCode.WORKER_LOST, reason, now, charge=charge)
        del self.by_session[agent.session]
        agent.past_nonces.append(agent.nonce)
        agent.session, agent.live, agent.reason = None, False, reason
        agent.slots = {}
        agent.blamed.clear()
        self.leases.timers.disarm(agent.silence)

    def recount(self, slot: Slot, now: Instant) -> None:
        """Let a slot count as serving, or not, as things are now."""
        agent = slot.agent
        if agent.live and agent.drained is None and not slot.health.aside:
            self.leases.placement.count(slot)
        else:
            self._uncount(slot, now)

    def _uncount(self, slot: Slot, now: Instant) -> None:
        for key in self.leases.placement.uncount(slot):
            self.leases.timers.arm(Bond(key).timer, now + self.policy.lease_ttl)

    def _drop(self, slot: Slot, now: Instant, dismiss: Dismiss) -> None:
        dismiss(slot)
        self.leases.placement.unwait(slot)
        self._uncount(slot, now)
        self.leases.timers.disarm(slot.hold)

    def _forget_some(self) -> None:
        """Names come from outside: remember a bounded number of workers that are gone."""
        gone = [agent for agent in self.agents.values() if agent.session is None and agent.drained is None]
        for agent in gone[: max(0, len(gone) - REMEMBERED)]:
            del self.agents[agent.worker]
