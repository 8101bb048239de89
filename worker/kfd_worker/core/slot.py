"""One slot of the agent, as a pure machine (worker-protocol, sections 4 and 11).

It says what is (``SendSync``) and does what it is told. At most one call counts at a time: the newest; answers to
older ones are ignored. The machine stops its job by itself before the daemon can have granted it to another.

**Basis.** The instant up to which the daemon is known to have counted our lease as renewed: for a renewal the
sending of the call that was answered; for a start the sending plus the time that the daemon says it held the
call; for a session that was opened again the sending of the registration. All are at or before the daemon's own
reading, so that ``basis + ttl - guard`` always comes before the daemon's ``ttl`` has run out.
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum

from kfd.base.instant import MILLISECOND, SECOND, Instant, Span, seconds_text
from kfd.base.work import Incident, IncidentCode, LeaseRef, Report, Stopped
from kfd_worker.core.backoff import backoff
from kfd_worker.core.values import (
    Answer,
    DropReport,
    Finished,
    Idle,
    NeedSession,
    Output,
    Policy,
    Running,
    SaveReport,
    SendSync,
    Start,
    StartJob,
    Status,
    Stop,
    StopJob,
)

__all__ = ["Phase", "SlotMachine"]

_PATIENCE: Span = 10 * SECOND
"""How much longer than the daemon's hold a call may take."""

_PACE: Span = 50 * MILLISECOND
"""Least time between two calls that bring no news, whatever the daemon does."""


class Phase(StrEnum):
    """What the slot is doing."""

    IDLE = "idle"
    RUNNING = "running"
    STOPPING = "stopping"
    SAVING = "saving"
    FINISHED = "finished"


class SlotMachine:
    """``idle -> running (-> stopping) -> saving -> finished -> idle``."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.phase = Phase.IDLE
        self.lease: LeaseRef | None = None
        self.stage = ""
        self.not_ready = ""
        self.draining = False
        self._open = False
        self._seq = 0
        self._pending: int | None = None
        self._sent: Instant = 0
        self._again: Instant | None = None
        """When to send the next call, while none is pending."""
        self._failures = 0
        self._basis: Instant = 0
        self._down = False
        self._stopped_itself = ""
        self._stage_since: Instant = 0
        self._report: Report | None = None

    # ---- session --------------------------------------------------------------------------------------

    def opened(self, policy: Policy, sent: Instant, now: Instant) -> list[Output]:
        """A session is open; its registration was sent at ``sent``."""
        self.policy = policy
        self._open, self._failures = True, 0
        self._heard(sent)
        return self._send(now)

    def closed(self) -> None:
        """The session is gone; nothing is sent until another is open."""
        self._open, self._pending, self._again = False, None, None

    def acknowledged(self, lease: LeaseRef, now: Instant) -> list[Output]:
        """The daemon took a report in with our registration."""
        if lease != self.lease or self.phase is not Phase.FINISHED:
            return []
        return [*self._forget(), *self._send(now)]

    # ---- calls ----------------------------------------------------------------------------------------

    def answered(self, seq: int, answer: Answer, now: Instant) -> list[Output]:
        """A call was answered."""
        if seq != self._pending:
            return []
        sent, self._pending = self._sent, None
        if answer.restarted:
            # The process that counted our lease is gone; the one that answers keeps the lease for us.
            self.peer_down()
        if answer.restarted or answer.status is Status.REREGISTER:
            self.closed()
            return [NeedSession()]
        if answer.status is not Status.OK:
            self._failures += 1
            self._again = now + backoff(self._failures, 0.5)
            return []
        self._failures = 0
        self._heard(sent)
        outputs: list[Output] = []
        if self.phase is Phase.FINISHED and answer.acknowledged == self.lease:
            outputs += self._forget()
        directive = answer.directive
        if isinstance(directive, Start):
            outputs += self._start(directive, sent, now)
        elif isinstance(directive, Stop):
            outputs += self._stop(directive)
        if outputs or now >= sent + _PACE:
            return outputs + self._send(now)
        self._again = sent + _PACE
        return outputs

    def call_failed(self, seq: int, dice: float, now: Instant, *, down: bool) -> list[Output]:
        """A call ended without an answer. ``down``: because there is no process at the other end (refused or
        reset), not because nothing was heard in time."""
        if down:
            self.peer_down()
        if seq == self._pending:
            self._pending = None
            self._failures += 1
            self._again = now + backoff(self._failures, dice)
        return []

    def peer_down(self) -> None:
        """The daemon's process is down: jobs go on for longer, since a restarted daemon waits for us."""
        self._down = True

    # ---- jobs -----------------------------------------------------------------------------------------

    def progressed(self, lease: LeaseRef, stage: str, now: Instant) -> None:
        """The job has entered a stage."""
        if lease == self.lease and stage != self.stage:
            self.stage, self._stage_since = stage, now

    def ended(self, lease: LeaseRef, report: Report) -> list[Output]:
        """The job has ended and nothing of it is left."""
        if lease != self.lease or self.phase not in (Phase.RUNNING, Phase.STOPPING):
            return []
        if self._stopped_itself and isinstance(report.outcome, Stopped):
            report = replace(report, outcome=Incident(code=IncidentCode.LEASE_LOST, text=self._stopped_itself))
        self.phase, self._report = Phase.SAVING, report
        return [SaveReport(lease=lease, report=report)]

    def saved(self, lease: LeaseRef, now: Instant) -> list[Output]:
        """The report is in the outbox."""
        if lease != self.lease or self.phase is not Phase.SAVING:
            return []
        self.phase = Phase.FINISHED
        return self._send(now)

    # ---- readiness ------------------------------------------------------------------------------------

    def set_not_ready(self, reason: str, now: Instant) -> list[Output]:
        """The slot may take nothing, for a reason; an empty reason ends that."""
        if reason == self.not_ready:
            return []
        self.not_ready = reason
        return self._send(now) if self.phase is Phase.IDLE else []

    def drain(self, now: Instant) -> list[Output]:
        """Take nothing any more."""
        if self.draining:
            return []
        self.draining = True
        return self._send(now) if self.phase is Phase.IDLE else []

    def stop(self, reason: str) -> list[Output]:
        """The operator wants the job stopped now."""
        if self.phase is not Phase.RUNNING or self.lease is None:
            return []
        self.phase, self.stage = Phase.STOPPING, "stopping"
        return [StopJob(lease=self.lease, reason=reason)]

    # ---- time -----------------------------------------------------------------------------------------

    def ticked(self, now: Instant) -> list[Output]:
        """Do what is due."""
        outputs: list[Output] = []
        if self.phase is Phase.RUNNING and self.must_stop(now) and self.lease is not None:
            silence = seconds_text(now - self._basis)
            self._stopped_itself = f"no answer from the daemon for {silence}: the worker stopped the job"
            outputs += self.stop(self._stopped_itself)
        if self._again is not None and now >= self._again:
            outputs += self._send(now)
        return outputs

    def must_stop(self, now: Instant) -> bool:
        """Whether the daemon may soon grant our job to another."""
        return now >= self._stop_at()

    def next_wake(self) -> Instant | None:
        """When ``ticked`` should be called next."""
        wakes = [] if self._again is None else [self._again]
        if self.phase is Phase.RUNNING:
            wakes.append(self._stop_at())
        return min(wakes, default=None)

    # ---- inside ---------------------------------------------------------------------------------------

    def _stop_at(self) -> Instant:
        # A daemon that was restarted keeps our lease for ``daemon_down`` from its start, which was after basis.
        limit = self.policy.daemon_down if self._down else self.policy.lease_ttl
        return self._basis + limit - self.policy.guard

    def _heard(self, basis: Instant) -> None:
        self._down = False
        self._basis = max(self._basis, basis)

    def _start(self, start: Start, sent: Instant, now: Instant) -> list[Output]:
        if self.phase is not Phase.IDLE or self.draining or self.not_ready:
            return []
        basis = sent + start.held
        if self.too_old(basis, now):
            return []
        self._basis = basis
        self.phase, self.lease, self._stopped_itself = Phase.RUNNING, start.lease, ""
        self.stage, self._stage_since = "starting", now
        return [StartJob(lease=start.lease, spec=start.spec)]

    def too_old(self, basis: Instant, now: Instant) -> bool:
        """Whether a start was under way for so long that its lease may be gone."""
        return now >= basis + self.policy.lease_ttl - self.policy.guard

    def _stop(self, stop: Stop) -> list[Output]:
        return self.stop(stop.reason) if stop.lease == self.lease else []

    def _forget(self) -> list[Output]:
        assert self.lease is not None
        lease, self.lease, self._report, self.stage = self.lease, None, None, ""
        self.phase = Phase.IDLE
        return [DropReport(lease=lease)]

    def _send(self, now: Instant) -> list[Output]:
        """Say what is, in a new call; an older one that is still under way no longer counts."""
        if not self._open or self.phase is Phase.SAVING:
            return []
        self._seq += 1
        self._pending, self._sent, self._again = self._seq, now, None
        return [
            SendSync(
                seq=self._seq,
                accepting=not self.draining and (self.phase is Phase.IDLE or not self.not_ready),
                state=self._state(now),
                deadline=(self.policy.idle_hold if self.phase is Phase.IDLE else self.policy.busy_hold) + _PATIENCE,
            )
        ]

    def _state(self, now: Instant) -> Idle | Running | Finished:
        if self.phase is Phase.IDLE or self.lease is None:
            return Idle(not_ready=self.not_ready)
        if self.phase is Phase.FINISHED and self._report is not None:
            return Finished(lease=self.lease, report=self._report)
        return Running(lease=self.lease, stage=self.stage, in_stage=max(0, now - self._stage_since))
