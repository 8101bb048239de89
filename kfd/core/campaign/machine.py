"""The campaign machine: one campaign's candidates, archive and budget.

Inputs are what happened (a draft arrived, a job settled, a person asked); outputs are commands and work for the
fleet. What to ask next is decided in ``deciding.py``, what a verdict changes in ``steps.py``.
"""

from __future__ import annotations

from dataclasses import replace

from kfd.base.failure import Bug, WrongState
from kfd.base.ids import CandidateId, candidate_id, candidate_of
from kfd.base.instant import Instant
from kfd.base.work import Incident, Report, Stopped, Verdict
from kfd.core.campaign.deciding import Deciding
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
from kfd.core.commands import (
    Packed,
    SaveCampaign,
    SaveReport,
    SaveSpending,
    SaveText,
)
from kfd.core.events import (
    INTERNAL,
    DraftArrived,
    Drafted,
    DraftEvent,
    DraftFaulted,
    DraftMissed,
    DraftRejected,
    MutationArrived,
    MutationEvent,
    MutationMissed,
    MutationRejected,
)
from kfd.core.fleet.model import Fact, Job
from kfd.core.search.budgets import Account
from kfd.core.search.operators import Operator

__all__ = ["Campaign"]


class Campaign(Deciding):
    """One campaign that has not ended: its inputs."""

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
            shape=initial.shape,
            length=len(initial.kernel_text),
            cell=initial.cell,
        )
        self._normals.add(initial.normal)
        self._shapes.add(initial.shape)
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
        candidate, spent = self._used(candidate, event)
        candidate = replace(
            candidate,
            source=drafted.source,
            normal=drafted.normal,
            shape=drafted.shape,
            length=len(drafted.kernel_text),
            cell=drafted.cell,
            space=drafted.space,
        )
        out: list[Output] = [*spent, *(SaveText(candidate=candidate.id, text=text) for text in event.texts)]
        twin = self._twin(drafted)
        if twin is not None:
            out += self._discard(candidate, *twin)
        else:
            self._normals.add(drafted.normal)
            self._shapes.add(drafted.shape)
            candidate = replace(candidate, state=CandidateState.BUILDING)
            out += self._put(candidate)
            out.append(Enqueue(job=build_job(self.spec, candidate, drafted.kernel_text)))
        return out + self.advance(now)

    def _twin(self, drafted: Drafted) -> tuple[DiscardReason, str] | None:
        """Why a source need not be built: it was judged before. A shape that is not known is no other's."""
        if drafted.normal in self._normals:
            return DiscardReason.DUPLICATE, "the same code, comments and spacing aside, was judged before"
        if drafted.shape and drafted.shape in self._shapes:
            return DiscardReason.NEAR_DUPLICATE, "the same code but for the names of its variables was judged before"
        return None

    def _rejected(self, candidate: Candidate, event: DraftRejected, now: Instant) -> list[Output]:
        """An answer holds nothing usable: it costs its place in the budget, nothing is compiled."""
        candidate, spent = self._used(candidate, event)
        out: list[Output] = [*spent, *(SaveText(candidate=candidate.id, text=text) for text in event.texts)]
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
        """The provider failed: ask again later, or pause when only a person can mend it.

        What the failed calls used is spent. Asking again takes a reservation as large as the first one; where that does
        not fit any more, the candidate is given up.
        """
        fact = Fact(
            kind="draft.failed",
            campaign=self.spec.id,
            body=(("candidate", candidate.id), ("fault", event.kind), ("text", event.text)),
        )
        out: list[Output] = [fact]
        if event.input_tokens or event.output_tokens:
            candidate, spent = self._used(candidate, event)
            out += spent
            if not self._spending.can_be(candidate):
                text = f"{event.kind}: {event.text}; the budget does not allow to ask again"
                return [*out, *self._discard(candidate, DiscardReason.BUDGET, text), *self.advance(now)]
            out += self._put(candidate)
        if event.kind == INTERNAL and not self._questions.broke(candidate.id):
            self.record = replace(self.record, incidents=self.record.incidents + 1)
            out.append(SaveCampaign(record=self.record))
            return [*out, *self._discard(candidate, DiscardReason.INCIDENT, event.text), *self.advance(now)]
        if event.retry_after is not None:
            self._questions.later(candidate.id, now + event.retry_after)
            return out
        self._questions.later(candidate.id, now)
        if self.record.state is not CampaignState.RUNNING:
            return out
        return [*out, *self._move(CampaignState.PAUSED, f"{event.kind}: {event.text}", now)]

    def _used(
        self, candidate: Candidate, event: DraftArrived | DraftRejected | DraftFaulted
    ) -> tuple[Candidate, list[SaveSpending]]:
        """The candidate with the tokens that an event tells of added to those of calls that failed; their cost."""
        spent = self._spending.book_tokens(candidate.id, event.model, event.input_tokens, event.output_tokens)
        candidate = replace(
            candidate,
            model=event.model or candidate.model,
            input_tokens=candidate.input_tokens + event.input_tokens,
            output_tokens=candidate.output_tokens + event.output_tokens,
        )
        return candidate, spent

    def mutation_ended(self, event: MutationEvent, now: Instant) -> list[Output]:
        """A mutation of a prompt that was started has ended, one way or another."""
        used = (0, 0) if isinstance(event, MutationMissed) else (event.input_tokens, event.output_tokens)
        model = self._evolution.asked_model(event.mutation)
        if isinstance(event, MutationArrived | MutationRejected):
            model = event.model
        spent = self._spending.settle_call(event.mutation, model, *used)
        return [*spent, *self._evolution.answered(event, self._search, self._next_ordinal, now), *self.advance(now)]

    def job_settled(self, job: Job, report: Report, now: Instant) -> list[Output]:
        """A job of ours has ended."""
        purpose = job.id.rpartition(".")[2]
        if purpose == ADMIT:
            return [*self._admitted(job, report, now), *self.advance(now)]
        if purpose.startswith(VERIFY):
            return self._verified(job, report, now)
        candidate = self._open.get(candidate_of(job.id))
        if candidate is None:
            return []
        out: list[Output] = [SaveReport(job=job.id, candidate=candidate.id, report=report)]
        if purpose != BUILD:
            out += self._spending.book_job(job, report)
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
        self._evolution.hurry(now)
        return [*self._move(state, "", now), *self.advance(now)]

    def cancel(self, reason: str, now: Instant) -> list[Output]:
        """End now: stop drafts and jobs. Raises WrongState when it has ended."""
        if self.record.state in ENDED:
            raise WrongState(
                f"{self.spec.id} has ended ({self.record.state.value})", mend="nothing needs to be cancelled"
            )
        return self._end(CampaignState.CANCELLED, reason or "cancelled", now)

    # ---- views ------------------------------------------------------------------------------------------------------

    @property
    def open_candidates(self) -> tuple[Candidate, ...]:
        """Candidates in flight."""
        return tuple(self._open.values())

    @property
    def account(self) -> Account:
        """What is spent and reserved; to be read and never changed."""
        return self._spending.account

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
        self._spending.check(self._open.values())
        self._evolution.check()
