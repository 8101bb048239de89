"""The steps of a campaign: what one verdict, one discarded answer, one ended campaign changes.

``Steps`` holds the state; ``deciding.Deciding`` adds what is asked next, ``machine.Campaign`` the inputs. Every step
returns its outputs and leaves the state consistent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from kfd.base.digest import Digest
from kfd.base.failure import Bug
from kfd.base.ids import CandidateId, candidate_id, candidate_of, job_id
from kfd.base.instant import Instant
from kfd.base.roofline import roofline_share
from kfd.base.work import AdmitResult, Incident, Report, RunResult, Speedup, Stopped, Verdict, VerdictCode
from kfd.core.campaign import judging, learning
from kfd.core.campaign.evolution import Evolution
from kfd.core.campaign.lineage import Lineage
from kfd.core.campaign.ports import CancelJob, Enqueue, Loaded, Output
from kfd.core.campaign.questions import Questions
from kfd.core.campaign.spending import MAX_VERIFICATIONS, Spending
from kfd.core.campaign.state import (
    ADMIT,
    BUILD,
    CONFIRM,
    ENDED,
    RUN,
    VERIFY,
    CampaignState,
    Candidate,
    CandidateState,
    DiscardReason,
    Told,
    run_job,
    run_result_of,
)
from kfd.core.campaign.stopwatch import Stopwatch
from kfd.core.campaign.tuning import Tuning, points_at_once
from kfd.core.commands import (
    DemoteCandidate,
    SaveCampaign,
    SaveCandidate,
    SaveElite,
    SaveReport,
    StopDraft,
)
from kfd.core.dice import Dice
from kfd.core.fleet.model import Fact, Job
from kfd.core.search.archive import Archive, Elite
from kfd.core.search.crowding import Crowd
from kfd.core.search.operators import Operator

__all__ = ["WORKING", "Steps", "purpose_of"]

WORKING = frozenset({CampaignState.BASELINING, CampaignState.RUNNING})
"""States in which the campaign's time runs."""

MAX_CONFIRMATIONS = 3
"""Side by side measurements of one candidate: the champion may change meanwhile."""


def purpose_of(candidate: Candidate) -> str:
    """What the job of an open candidate that has an answer is for."""
    if candidate.state is CandidateState.CONFIRMING:
        return f"{CONFIRM}{candidate.confirmations}"
    return BUILD if candidate.state is CandidateState.BUILDING else RUN


class Steps:
    """State of one campaign that has not ended, and the steps that change it."""

    def __init__(self, loaded: Loaded, now: Instant) -> None:
        self.spec = loaded.spec
        self.record = loaded.record
        self.archive = Archive(loaded.elites, loaded.record.best, learning.champions(loaded))
        self._dice = Dice(loaded.spec.seed)
        self._open = {candidate.id: candidate for candidate in loaded.open_candidates}
        self._initial = loaded.initial
        self._broken = list(loaded.broken)
        self._normals = set(loaded.normals)
        self._shapes = set(loaded.shapes)
        self._questions = Questions(loaded.spec.budget_candidates, loaded.answered, loaded.closed)
        self._spending = Spending(loaded.spec, loaded.record, loaded.open_candidates, loaded.spent)
        self._search = learning.restored(loaded)
        self._evolution = Evolution(loaded.spec, loaded.mutations)
        self._told = loaded.told
        self._last_asked = dict(loaded.last_asked)
        at_once = points_at_once(loaded.spec.in_flight)
        self._tuning = Tuning(loaded.spec.search.sweep, self._dice, loaded.spec.baseline, at_once, loaded.tuning)
        self._lineage = Lineage(loaded.migrants)
        self.offered: Callable[[], Iterable[Elite]] = tuple
        """Elites of the other campaigns of the group; the engine sets it."""
        self._watch = Stopwatch(loaded.record.active_ns, loaded.spec.budget_ns, now)
        self._watch.set(now, running=loaded.record.state in WORKING)
        self._next_ordinal = loaded.next_ordinal
        self._held = False

    @property
    def is_ended(self) -> bool:
        """Whether nothing more will come of it."""
        return self.record.state in ENDED

    def keep_time(self, now: Instant) -> list[Output]:
        """Write the time spent so far, so that a crash forgets little of it."""
        self.record = replace(self.record, active_ns=self._watch.read(now))
        return [SaveCampaign(record=self.record)]

    # ---- a candidate ------------------------------------------------------------------------------------------------

    def _put(self, candidate: Candidate) -> list[Output]:
        if candidate.is_open:
            self._open[candidate.id] = candidate
        else:
            self._open.pop(candidate.id, None)
        if candidate.state is not CandidateState.DRAFTING:
            self._questions.end(candidate.id)
        if candidate.operator is Operator.INITIAL:
            self._initial = candidate
        self._tuning.note(candidate)
        self._lineage.note(candidate)
        self._spending.note(candidate)
        return [SaveCandidate(campaign=self.spec.id, candidate=candidate)]

    def _built(self, candidate: Candidate, report: Report) -> list[Output]:
        artifact = getattr(report.detail, "artifact", None)
        if not isinstance(artifact, Digest):
            raise Bug(f"{candidate.id} was built without an artifact")
        candidate = replace(
            candidate,
            state=CandidateState.RUNNING,
            artifact=artifact,
            cell=judging.built_cell(candidate, report),
            extra=judging.built_extra(self.spec, candidate, report, self._initial),
        )
        return [*self._put(candidate), Enqueue(job=self._run_job(candidate, artifact, RUN))]

    def _run_job(self, candidate: Candidate, artifact: Digest, purpose: str) -> Job:
        is_initial = candidate.operator is Operator.INITIAL
        beside = None if is_initial or self._initial is None else self._initial.artifact
        return run_job(self.spec, candidate.id, artifact, beside, purpose, candidate.rival_artifact)

    def _measured(
        self, candidate: Candidate, verdict: Verdict, result: RunResult | None, purpose: str, now: Instant
    ) -> list[Output]:
        """A run has ended. One that would displace anything is measured again first, side by side with whom it would
        displace: the better of many noisy measurements is biased upwards, and two jobs are two conditions. So the
        second one is what the archive is told, and its interval against the rival is what decides."""
        is_ok = verdict.code is VerdictCode.OK
        beaten: CandidateId | None = None
        if not is_ok and purpose.startswith(CONFIRM):
            text = f"correct at first, then {verdict.code.value}: {verdict.text}"
            verdict = Verdict(code=VerdictCode.SUSPECT, text=text)
        elif is_ok and candidate.operator is not Operator.INITIAL:
            tried, speed = judging.judged(self.spec, candidate, verdict, result)
            elite = None if speed is None else judging.as_elite(tried, speed)
            lost_to: CandidateId | None = None
            if purpose.startswith(CONFIRM):
                beaten, lost_to = (candidate.rival, None) if self._won(tried, elite) else (None, candidate.rival)
            rival = None if elite is None else self.archive.rival(elite, lost_to)
            if rival is not None and rival.candidate != beaten and candidate.confirmations < MAX_CONFIRMATIONS:
                confirming = self._confirming(replace(candidate, speedups=tried.speedups), rival)
                if self._spending.can_be(confirming):
                    return self._confirm(confirming)
        return self._judge(candidate, verdict, result, now, beaten)

    def _won(self, tried: Candidate, elite: Elite | None) -> bool:
        """Whether a candidate that was measured beside its rival may displace it: faster, or shorter and no slower."""
        is_initial = self._initial is not None and tried.rival == self._initial.id
        if judging.beats_rival(tried, is_initial=is_initial):
            return True
        is_equal = elite is not None and judging.equals_rival(tried, is_initial=is_initial)
        return is_equal and elite is not None and self.archive.may_shorten(elite, tried.rival)

    def _confirming(self, candidate: Candidate, rival: Elite) -> Candidate:
        return replace(
            candidate,
            state=CandidateState.CONFIRMING,
            rival=rival.candidate,
            rival_artifact=rival.artifact,
            confirmations=candidate.confirmations + 1,
        )

    def _confirm(self, candidate: Candidate) -> list[Output]:
        artifact = candidate.artifact
        if artifact is None:
            raise Bug(f"{candidate.id} ran without an artifact")
        return [*self._put(candidate), Enqueue(job=self._run_job(candidate, artifact, purpose_of(candidate)))]

    def _judge(
        self,
        candidate: Candidate,
        verdict: Verdict,
        result: RunResult | None,
        now: Instant,
        beaten: CandidateId | None = None,
    ) -> list[Output]:
        candidate, speed = judging.judged(self.spec, candidate, verdict, result)
        is_initial = candidate.operator is Operator.INITIAL
        improved: list[Output] = []
        evolving: list[Output] = []
        if speed is not None:
            improved = self._archive(candidate, speed, beaten, result)
        elif learning.is_repairable(self.spec, candidate):
            self._broken.append(judging.as_broken(candidate))
        is_elite = bool(improved)
        champion = self.archive.best()
        is_best = is_elite and champion is not None and champion.candidate == candidate.id
        if is_initial and speed is not None:
            self._search.begin(judging.as_elite(candidate, speed))
        elif not is_initial and verdict.code is not VerdictCode.SUSPECT:
            was = self._search.crowd
            candidate, evolving = self._tell(candidate, kept=is_elite, best=is_best)
            improved += self._crowded(was)
        fact = judging.judged_fact(self.spec, candidate, speed, is_elite=is_elite)
        out: list[Output] = [*self._put(candidate), fact, *improved, *evolving]
        if is_initial and verdict.code is not VerdictCode.OK:
            text = f"the initial kernel is not correct on this fleet: {verdict.code.value}: {verdict.text}"
            return out + self._end(CampaignState.FAILED, text, now)
        return out

    def _crowded(self, was: Crowd | None) -> list[Output]:
        """Told once in a campaign, restarts included: a search restored from its rows knows that it was seen."""
        seen = self._search.crowd
        return [] if was is not None or seen is None else [judging.crowded(self.spec, seen)]

    def _archive(
        self, candidate: Candidate, speed: Speedup, beaten: CandidateId | None, result: RunResult | None
    ) -> list[Output]:
        before = self.archive.best()
        elite = judging.as_elite(candidate, speed)
        added = self.archive.add(elite, beaten=beaten)
        if not added.status:
            return []
        out: list[Output] = [
            SaveElite(campaign=self.spec.id, cell=elite.niche, candidate=candidate.id),
            judging.cell_improved(self.spec, elite, added),
        ]
        best = self.archive.best()
        if best is not None and (before is None or best.candidate != before.candidate):
            share = roofline_share(result) if result is not None else None
            self.record = replace(self.record, best=best.candidate, roofline=share)
            out.append(SaveCampaign(record=self.record))
            if candidate.operator is not Operator.INITIAL:
                out.append(judging.best_improved(self.spec, best, speed))
        return out

    def _tell(self, candidate: Candidate, *, kept: bool = False, best: bool = False) -> tuple[Candidate, list[Output]]:
        """The search learns what became of a candidate; the row remembers what it was told, and in which order.

        Prompts may be due to change then.
        """
        self._told += 1
        told = Told(nth=self._told, fitness=candidate.fitness or 0.0, kept=kept, best=best)
        candidate = replace(candidate, told=told)
        if candidate.outcome == DiscardReason.NO_RECORDING:
            return candidate, []
        before = self._search.lead
        self._search.tell(learning.outcome_of(candidate, self.spec))
        shift = judging.bandit_shifted(self.spec, before, self._search.lead)
        return candidate, [*shift, *self._evolution.told(self._search)]

    def _discard(self, candidate: Candidate, reason: str, text: str) -> list[Output]:
        candidate = replace(candidate, state=CandidateState.DISCARDED, outcome=str(reason), text=text)
        evolving: list[Output] = []
        if reason not in (DiscardReason.INCIDENT, DiscardReason.CANCELLED, DiscardReason.BUDGET):
            candidate, evolving = self._tell(candidate)
        out: list[Output] = [*self._put(candidate), *evolving]
        if reason not in (DiscardReason.NO_RECORDING, DiscardReason.CANCELLED):
            out.append(
                Fact(
                    kind="candidate.discarded",
                    campaign=self.spec.id,
                    body=(("candidate", candidate.id), ("reason", str(reason)), ("text", text)),
                )
            )
        return out

    def _give_up_drafts(self) -> list[Output]:
        """Time is up: nobody waits for answers any more (a person may never answer)."""
        out: list[Output] = []
        for candidate in [c for c in self._open.values() if c.state is CandidateState.DRAFTING]:
            out.append(StopDraft(candidate=candidate.id))
            out += self._discard(candidate, DiscardReason.CANCELLED, "the time budget was spent before an answer came")
        return out

    # ---- the campaign -----------------------------------------------------------------------------------------------

    def _move(self, state: CampaignState, reason: str, now: Instant) -> list[Output]:
        worked = self._watch.set(now, running=state in WORKING)
        self.record = replace(self.record, state=state, reason=reason, active_ns=worked)
        self._spending.watch(self.record)
        fact = Fact(
            kind=f"campaign.{state.value}",
            campaign=self.spec.id,
            body=(("reason", reason),),
        )
        return [SaveCampaign(record=self.record), fact]

    def _admitted(self, job: Job, report: Report, now: Instant) -> list[Output]:
        """A worker has tried wrong answers on the task. One that accepts any, or cannot be proved, ends here."""
        first = candidate_id(self.spec.id, 0)
        out: list[Output] = [SaveReport(job=job.id, candidate=first, report=report)]
        out += self._spending.book_job(job, report)
        match report.outcome:
            case Verdict(code=VerdictCode.OK):
                self.record = replace(self.record, admitted=True)
                self._spending.watch(self.record)
                noise = report.detail.noise_floor if isinstance(report.detail, AdmitResult) else None
                fact = Fact(kind="task.admitted", campaign=self.spec.id, body=(("noise_floor", noise),))
                return [*out, SaveCampaign(record=self.record), fact]
            case Verdict(text=text):
                fact = Fact(kind="task.refused", campaign=self.spec.id, body=(("text", text),))
                return [*out, fact, *self._end(CampaignState.FAILED, f"the task is refused: {text}", now)]
            case Incident(code=code, text=text):
                text = f"the task could not be proved ({code.value}): {text}"
                return [*out, *self._end(CampaignState.FAILED, text, now)]
            case Stopped(reason=reason):
                return [*out, *self._end(CampaignState.FAILED, f"the task was not proved: {reason}", now)]

    def _finish(self, reason: str, now: Instant) -> list[Output]:
        """Measure the winner afresh, then end."""
        best = self.archive.best()
        if best is None:
            return self._end(CampaignState.FINISHED, f"{reason}; no correct candidate", now)
        if self.record.verifications >= MAX_VERIFICATIONS:
            note = f"{MAX_VERIFICATIONS} winners did not stand up to a fresh measurement"
            return self._end(CampaignState.FINISHED, f"{reason}; {note}", now)
        self.record = replace(
            self.record,
            best=best.candidate,
            verifications=self.record.verifications + 1,
        )
        out = self._move(CampaignState.VERIFYING, reason, now)
        return [*out, Enqueue(job=self._verify_job(best))]

    def _verify_job(self, best: Elite) -> Job:
        is_initial = self._initial is not None and best.candidate == self._initial.id
        beside = None if is_initial or self._initial is None else self._initial.artifact
        purpose = f"{VERIFY}{self.record.verifications}"
        return run_job(self.spec, best.candidate, best.artifact, beside, purpose)

    def _verified(self, job: Job, report: Report, now: Instant) -> list[Output]:
        best = self.record.best
        if self.record.state is not CampaignState.VERIFYING or best is None or candidate_of(job.id) != best:
            return []
        out: list[Output] = [SaveReport(job=job.id, candidate=best, report=report)]
        out += self._spending.book_job(job, report)
        result = run_result_of(report)
        match report.outcome:
            case Verdict(code=VerdictCode.OK) if result is not None and result.speedups:
                self.record = replace(self.record, final_speedups=result.speedups, verify_note="")
            case Verdict(code=code, text=text):
                return out + self._demote(best, f"{code.value}: {text}", now)
            case Incident(code=code, text=text):
                note = f"not re-measured ({code.value}): {text}"
                self.record = replace(self.record, verify_note=note, incidents=self.record.incidents + 1)
            case Stopped(reason=reason):
                self.record = replace(self.record, verify_note=f"not re-measured: {reason}")
        return out + self._end(CampaignState.FINISHED, self.record.reason, now)

    def _demote(self, best: CandidateId, text: str, now: Instant) -> list[Output]:
        """The winner failed its fresh measurement: it is no winner; try the next one."""
        self.archive.remove(best)
        reason = self.record.reason
        self.record = replace(self.record, best=None, roofline=None)
        fact = Fact(
            kind="candidate.demoted",
            campaign=self.spec.id,
            body=(("candidate", best), ("text", text)),
        )
        demote = DemoteCandidate(campaign=self.spec.id, candidate=best, text=text)
        return [demote, fact, *self._finish(reason, now)]

    def _end(self, state: CampaignState, reason: str, now: Instant) -> list[Output]:
        out: list[Output] = []
        for candidate in list(self._open.values()):
            if candidate.state is CandidateState.DRAFTING:
                out.append(StopDraft(candidate=candidate.id))
            else:
                out.append(CancelJob(job=job_id(candidate.id, purpose_of(candidate)), reason=reason))
            out += self._discard(candidate, DiscardReason.CANCELLED, reason)
        out += self._evolution.stop(reason, self._search, self._next_ordinal, self._spending.release)
        if not self.record.admitted:
            out.append(CancelJob(job=job_id(candidate_id(self.spec.id, 0), ADMIT), reason=reason))
        if self.record.state is CampaignState.VERIFYING and state is CampaignState.CANCELLED and self.record.best:
            verify = job_id(self.record.best, f"{VERIFY}{self.record.verifications}")
            out.append(CancelJob(job=verify, reason=reason))
        return [*out, *self._move(state, reason, now)]
