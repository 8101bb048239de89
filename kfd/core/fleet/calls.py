"""Calls that are held until there is news for their slot."""

from __future__ import annotations

from kfd.base.instant import SECOND, Instant, Span
from kfd.base.work import LeaseRef
from kfd.core.fleet.leases import Leases
from kfd.core.fleet.model import (
    CallId,
    IdleState,
    Reply,
    StartDirective,
    StopDirective,
    SyncAnswer,
    SyncReport,
    SyncStatus,
)
from kfd.core.fleet.state import Slot

__all__ = ["Calls"]

_RETELL: Span = SECOND
"""How often a stop is said again to a slot that goes on reporting the job."""


class Calls:
    """At most one parked call per slot. Answers go to the output list of the leases, in order."""

    def __init__(self, boot: bytes, leases: Leases) -> None:
        self.boot = boot
        self.leases = leases
        self.parked: dict[CallId, Slot] = {}

    def park(self, slot: Slot, call: CallId, report: SyncReport, now: Instant) -> None:
        """Hold a call, and note what its report says of the slot's readiness."""
        slot.seq, slot.call, slot.arrived = report.seq, call, now
        state = report.state
        slot.busy = not isinstance(state, IdleState)
        why = state.not_ready if isinstance(state, IdleState) else ""
        slot.accepting = report.accepting and not why
        if slot.why != why:
            slot.why, slot.since = why, now
        slot.agent.parked += 1
        self.parked[call] = slot

    def unpark(self, slot: Slot) -> CallId:
        """Hold a slot's call no longer; the slot must have one."""
        call, slot.call = slot.call, None
        assert call is not None
        del self.parked[call]
        slot.agent.parked -= 1
        slot.stop = None
        self.leases.timers.disarm(slot.hold)
        self.leases.placement.unwait(slot)
        return call

    def answer(
        self,
        slot: Slot,
        status: SyncStatus,
        *,
        acknowledged: LeaseRef | None = None,
        directive: StartDirective | StopDirective | None = None,
    ) -> None:
        """Answer a slot's parked call."""
        call = self.unpark(slot)
        notices = []
        if slot.agent.drained is not None:
            notices.append(("drain", slot.agent.drained))
        if slot.health.aside:
            notices.append(("set_aside", slot.health.aside))
        answer = SyncAnswer(
            status=status,
            boot=self.boot,
            acknowledged=acknowledged,
            directive=directive,
            notices=tuple(notices),
        )
        self.leases.out.append(Reply(call=call, answer=answer))

    def tell_stop(self, slot: Slot, lease: LeaseRef, reason: str, now: Instant) -> None:
        """Say stop at once, and again each second while the slot goes on reporting the job."""
        if slot.told is not None and slot.told[0] == lease and now < slot.told[1] + _RETELL:
            slot.stop = (lease, reason)
            self.leases.timers.arm(slot.hold, slot.told[1] + _RETELL)
            return
        slot.told = (lease, now)
        self.answer(slot, SyncStatus.OK, directive=StopDirective(lease=lease, reason=reason))

    def hold_over(self, slot: Slot, now: Instant) -> None:
        """A call was held long enough: answer it with what there is to say."""
        if slot.call is None:
            return
        if slot.stop is None:
            self.answer(slot, SyncStatus.OK)
            return
        lease, reason = slot.stop
        slot.told = (lease, now)
        self.answer(slot, SyncStatus.OK, directive=StopDirective(lease=lease, reason=reason))

    def dismiss(self, slot: Slot) -> None:
        """A slot is gone from its session: whoever waits for it must register afresh."""
        if slot.call is not None:
            self.answer(slot, SyncStatus.REREGISTER)
