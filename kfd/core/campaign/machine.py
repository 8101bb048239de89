"""The campaign machine: one campaign's candidates, archive and budget.

Inputs are what happened (a draft arrived, a job settled, a person asked); outputs are commands and work for the
fleet. ``advance`` is the one place that decides what to ask next; it serves normal running and the time after a
restart alike, so recovery is not a second code path.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kfd.base.failure import Bug, WrongState
from kfd.base.ids import CandidateId, candidate_id, candidate_of
from kfd.base.instant import Instant
from kfd.base.work import Incident, Report, Stopped, Verdict
from kfd.core.campaign import learning
from kfd.core.campaign.ports import Enqueue, Output
from kfd.core.campaign.state import (
    ADMIT,
    BUILD,
    ENDED,
    VERIFY,
    CampaignState,
    Candidate,
    CandidateState,
    DiscardReason,
    admit_job,
    build_job,
    is_built,
    run_result_of,
)
from kfd.core.campaign.steps import Steps, purpose_of
from kfd.core.campaign.tuning import point_of
from kfd.core.commands import (
    DraftRequest,
    Packed,
    SaveCampaign,
    SaveReport,
    SaveText,
    StartDraft,
)
from kfd.core.events import DraftArrived, Drafted, DraftEvent, DraftFaulted, DraftMissed, DraftRejected
from kfd.core.fleet.model import NEVER, Fact, Job
from kfd.core.search.operators import Operator
from kfd.core.search.proposals import Proposal
from kfd.core.search.tuning import Values

__all__ = ["Campaign"]


class Campaign(Steps):
    """One campaign that has not ended: inputs and deciding."""

    # ---- inputs ---------------------------------------------------------------------------------------

    def begin(self, initial: Drafted | None, text: Packed | None, now: Instant) -> list[Output]:
        """Start a fresh campaign: measure the initial kernel first, or generate from nothing."""
        out: list[Output] = [
            Fact(
                kind="campaign.submitted",
                campaign=self.spec.id,
                body=(("name", self.spec.name), ("task", self.spec.task_name), ("target", self.spec.target)),
            )
        ]
        out.append(Enqueue(job=admit_job(self.spec)))
        if initial is None:
            return out
        candidate = Candidate(
            id=candidate_id(self.spec.id, 0),
            ordinal=0,
            operator=Operator.INITIAL,
            parent=None,
            parent_source="",
            inspirations=(),
            nth=0,
            generation=0,
            repair_depth=0,
            state=CandidateState.BUILDING,
            source=initial.source,
            normal=initial.normal,
            length=len(initial.kernel_text),
            cell=initial.cell,
        )
        self._normals.add(initial.normal)
        self._initial = candidate
        self._next_ordinal = 1
        if text is not None:
            out.append(SaveText(candidate=candidate.id, text=text))
        return [
            *out,
            *self._put(candidate),
            Enqueue(job=build_job(self.spec, candidate, initial.kernel_text)),
        ]

    def hold(self, held: bool) -> None:
        """Ask for nothing new while the disk is full (``held``); what is in flight goes on."""
        self._held = held

    def draft_ended(self, event: DraftEvent, now: Instant) -> list[Output]:
        """A draft that was started has ended, one way or another."""
        candidate = self._open.get(event.candidate)
        if candidate is None or candidate.state is not CandidateState.DRAFTING:
            return []
        match event:
            case DraftArrived():
                return self._arrived(candidate, event, now)
            case DraftRejected():
                return self._rejected(candidate, event, now)
            case DraftMissed():
                return self._missed(candidate, event, now)
            case DraftFaulted():
                return self._faulted(candidate, event, now)

    def fail(self, reason: str, now: Instant) -> list[Output]:
        """End because of a fault of ours."""
        return self._end(CampaignState.FAILED, reason, now)

    def _arrived(self, candidate: Candidate, event: DraftArrived, now: Instant) -> list[Output]:
        """An answer holds a kernel: screen it, then have it built."""
        drafted = event.drafted
        candidate = replace(
            candidate,
            model=event.model,
            input_tokens=event.input_tokens,
            output_tokens=event.output_tokens,
            source=drafted.source,
            normal=drafted.normal,
            length=len(drafted.kernel_text),
            cell=drafted.cell,
            space=drafted.space,
        )
        out: list[Output] = [SaveText(candidate=candidate.id, text=text) for text in event.texts]
        if drafted.normal in self._normals:
            reason = "the same code, comments and spacing aside, was judged before"
            out += self._discard(candidate, DiscardReason.DUPLICATE, reason)
        else:
            self._normals.add(drafted.normal)
            candidate = replace(candidate, state=CandidateState.BUILDING)
            out += self._put(candidate)
            out.append(Enqueue(job=build_job(self.spec, candidate, drafted.kernel_text)))
        return out + self.advance(now)

    def _rejected(self, candidate: Candidate, event: DraftRejected, now: Instant) -> list[Output]:
        """An answer holds nothing usable: it costs its place in the budget, nothing is compiled."""
        candidate = replace(
            candidate,
            model=event.model,
            input_tokens=event.input_tokens,
            output_tokens=event.output_tokens,
        )
        out: list[Output] = [SaveText(candidate=candidate.id, text=text) for text in event.texts]
        return [*out, *self._discard(candidate, event.reason, event.detail), *self.advance(now)]

    def _missed(self, candidate: Candidate, event: DraftMissed, now: Instant) -> list[Output]:
        """No answer exists: remember not to ask this again. Not charged to the budget."""
        self._questions.miss(candidate)
        fact = Fact(
            kind="draft.missed",
            campaign=self.spec.id,
            body=(("candidate", candidate.id), ("operator", candidate.operator.value), ("text", event.text)),
        )
        return [*self._discard(candidate, DiscardReason.NO_RECORDING, event.text), fact, *self.advance(now)]

    def _faulted(self, candidate: Candidate, event: DraftFaulted, now: Instant) -> list[Output]:
        """The provider failed: ask again later, or pause when only a person can mend it."""
        fact = Fact(
            kind="draft.failed",
            campaign=self.spec.id,
            body=(("candidate", candidate.id), ("fault", event.kind), ("text", event.text)),
        )
        if event.retry_after is not None:
            self._questions.later(candidate.id, now + event.retry_after)
            return [fact]
        self._questions.later(candidate.id, now)
        if self.record.state is not CampaignState.RUNNING:
            return [fact]
        return [fact, *self._move(CampaignState.PAUSED, f"{event.kind}: {event.text}", now)]

    def job_settled(self, job: Job, report: Report, now: Instant) -> list[Output]:
        """A job of ours has ended."""
        purpose = job.id.rpartition(".")[2]
        if purpose == ADMIT:
            return [*self._admitted(report, now), *self.advance(now)]
        if purpose.startswith(VERIFY):
            return self._verified(job, report, now)
        candidate = self._open.get(candidate_of(job.id))
        if candidate is None:
            return []
        out: list[Output] = [SaveReport(job=job.id, candidate=candidate.id, report=report)]
        candidate = replace(candidate, worker=job.worker or "")
        match report.outcome:
            case Verdict() as verdict:
                if purpose == BUILD and is_built(verdict, report):
                    out += self._built(candidate, report)
                else:
                    out += self._measured(candidate, verdict, run_result_of(report), purpose, now)
            case Incident(code=code, text=text):
                self.record = replace(self.record, incidents=self.record.incidents + 1)
                out += [SaveCampaign(record=self.record)]
                out += self._discard(candidate, DiscardReason.INCIDENT, f"{code.value}: {text}")
                if candidate.operator is Operator.INITIAL:
                    text = f"the initial kernel could not be measured ({code.value}): {text}"
                    return out + self._end(CampaignState.FAILED, text, now)
            case Stopped(reason=reason):
                out += self._discard(candidate, DiscardReason.CANCELLED, reason)
        return out + self.advance(now)

    def pause(self, reason: str, now: Instant) -> list[Output]:
        """Ask for nothing new; what is in flight goes on. Raises WrongState."""
        if self.record.state not in (CampaignState.RUNNING, CampaignState.BASELINING):
            raise WrongState(
                f"{self.spec.id} is {self.record.state.value}", mend="only a running campaign can be paused"
            )
        return self._move(CampaignState.PAUSED, reason, now)

    def resume(self, now: Instant) -> list[Output]:
        """Go on asking. Raises WrongState."""
        if self.record.state is not CampaignState.PAUSED:
            raise WrongState(
                f"{self.spec.id} is {self.record.state.value}", mend="only a paused campaign can be resumed"
            )
        state = CampaignState.RUNNING if self._is_baselined else CampaignState.BASELINING
        self._questions.hurry(now)
        return [*self._move(state, "", now), *self.advance(now)]

    def cancel(self, reason: str, now: Instant) -> list[Output]:
        """End now: stop drafts and jobs. Raises WrongState when it has ended."""
        if self.record.state in ENDED:
            raise WrongState(
                f"{self.spec.id} has ended ({self.record.state.value})", mend="nothing needs to be cancelled"
            )
        return self._end(CampaignState.CANCELLED, reason or "cancelled", now)

    # ---- deciding -------------------------------------------------------------------------------------

    def advance(self, now: Instant) -> list[Output]:
        """Whatever can be asked or ended now."""
        out: list[Output] = []
        if self.record.state is CampaignState.BASELINING and self._is_baselined:
            if self.spec.validate_only:
                return self._end(CampaignState.FINISHED, "validated: the task and its kernel are in order", now)
            out += self._move(CampaignState.RUNNING, "", now)
        if self.record.state is not CampaignState.RUNNING or self._held:
            return out
        stop = self._search.stop_reason()
        while stop is None and len(self._open) < self.spec.in_flight and not self._is_spent(now):
            point = self.point()
            proposal = self.proposal() if point is None else None
            if point is not None:
                out += self._tune(*point)
            elif proposal is not None:
                out += self._ask(proposal)
            else:
                break
        if self._watch.left(now) <= 0:
            out += self._give_up_drafts()
        if not self._open:
            if self._is_spent(now):
                out += self._finish(self._spent_reason(), now)
            elif stop is not None:
                out += self._finish(stop, now)
            elif self.proposal() is None:
                out += self._finish("nothing left to ask", now)
        return out

    def owed(self, now: Instant) -> list[Output]:
        """Drafts that should be running and are not: after a restart all of them, else those due again."""
        out: list[Output] = []
        if self.record.state is CampaignState.PAUSED or self.record.state in ENDED:
            return out
        for candidate in self._open.values():
            if candidate.state is CandidateState.DRAFTING and self._questions.is_due(candidate.id, now):
                out.append(self._start(candidate))
        return out

    def jobs(self, sources: dict[CandidateId, str]) -> Iterable[Job]:
        """The jobs that this campaign's rows call for; ``sources`` holds the texts of those being built."""
        if not self.record.admitted:
            yield admit_job(self.spec)
        for candidate in self._open.values():
            if candidate.state is CandidateState.BUILDING:
                yield build_job(self.spec, candidate, sources[candidate.id])
            elif candidate.artifact is not None:
                yield self._run_job(candidate, candidate.artifact, purpose_of(candidate))
        if self.record.state is CampaignState.VERIFYING and self.record.best is not None:
            best = self.archive.best()
            if best is None or best.candidate != self.record.best:
                raise Bug(f"{self.spec.id} verifies {self.record.best}, which is not its best")
            yield self._verify_job(best)

    def next_wake(self, now: Instant) -> Instant:
        """When ``owed`` or ``advance`` may have something new without any event."""
        if self.record.state is CampaignState.PAUSED or self.record.state in ENDED:
            return NEVER
        left = self._watch.left(now)
        is_timed = self.record.state is CampaignState.RUNNING and left > 0
        return min(self._questions.next_due(), now + left if is_timed else NEVER)

    @property
    def _is_baselined(self) -> bool:
        """Whether the task is proved and the initial kernel, if there is one, is measured."""
        return self.record.admitted and (self._initial is None or not self._initial.is_open)

    @property
    def open_candidates(self) -> tuple[Candidate, ...]:
        """Candidates in flight."""
        return tuple(self._open.values())

    @property
    def drafting(self) -> tuple[CandidateId, ...]:
        """Candidates that wait for an answer."""
        return tuple(c.id for c in self._open.values() if c.state is CandidateState.DRAFTING)

    def check(self) -> None:
        """Raise Bug when the state contradicts itself."""
        if self.is_ended and self._open:
            raise Bug(f"{self.spec.id} has ended with {len(self._open)} open candidates")
        if any(not candidate.is_open for candidate in self._open.values()):
            raise Bug(f"{self.spec.id} keeps a judged candidate open")
        self._questions.check(self._open)

    # ---- asking -----------------------------------------------------------------------------------------------------

    def proposal(self) -> Proposal | None:
        """What would be asked next; None when nothing is left to ask. Changes nothing."""
        length = self._initial.length if self._initial is not None else 0
        view = learning.view(self.archive, self._broken, self._questions.closed, length, self._told, self._last_asked)
        return self._search.ask(view, self._next_ordinal)

    def point(self) -> tuple[Candidate, Values] | None:
        """The template that is swept and the values of its next point, which goes before any proposal."""
        return self._tuning.next()

    def _ask(self, proposal: Proposal) -> list[Output]:
        nth = self._questions.charge((proposal.parent_source, proposal.operator.value))
        candidate = Candidate(
            id=candidate_id(self.spec.id, self._next_ordinal),
            ordinal=self._next_ordinal,
            operator=proposal.operator,
            parent=proposal.parent,
            parent_source=proposal.parent_source,
            inspirations=proposal.inspirations,
            nth=nth,
            generation=proposal.generation,
            repair_depth=proposal.repair_depth,
            asked=learning.asked(proposal, self._told),
        )
        self._next_ordinal += 1
        if proposal.operator in learning.PERIODIC:
            self._last_asked[proposal.operator] = self._told
        if proposal.operator is Operator.REPAIR:
            self._broken = [failure for failure in self._broken if failure.candidate != proposal.parent]
        return [*self._put(candidate), self._start(candidate)]

    def _tune(self, template: Candidate, values: Values) -> list[Output]:
        """The next point of a sweep: a candidate like any other, but nobody is asked."""
        nth = self._questions.charge((template.source, Operator.TUNE.value))
        id_ = candidate_id(self.spec.id, self._next_ordinal)
        candidate = point_of(template, values, id_, self._next_ordinal, nth, self._told)
        self._next_ordinal += 1
        return [*self._put(candidate), self._start(candidate)]

    def _start(self, candidate: Candidate) -> StartDraft:
        self._questions.begin(candidate.id)
        best = self.archive.best()
        return StartDraft(
            request=DraftRequest(
                campaign=self.spec,
                candidate=candidate.id,
                ordinal=candidate.ordinal,
                operator=candidate.operator,
                parent=candidate.parent,
                parent_source=candidate.parent_source,
                nth=candidate.nth,
                inspirations=candidate.inspirations,
                best=best.candidate if best is not None else None,
                hints=candidate.asked.words,
                values=candidate.values,
                model=learning.model_of(candidate),
                model_choice=self._dice.roll("model", candidate.ordinal),
            )
        )

    def _is_spent(self, now: Instant) -> bool:
        return self._questions.is_spent or self._watch.left(now) <= 0

    def _spent_reason(self) -> str:
        if self._questions.is_spent:
            return f"budget: {self.spec.budget_candidates} candidates"
        return "budget: time"
