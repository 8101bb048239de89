"""What a campaign asks next, and what its rows call for.

``advance`` is the one place that decides what to ask next; it serves normal running and the time after a restart
alike, so recovery is not a second code path.
"""

from __future__ import annotations

from collections.abc import Iterable

from kfd.base.failure import Bug
from kfd.base.ids import CandidateId, candidate_id
from kfd.base.instant import Instant
from kfd.core.campaign import learning
from kfd.core.campaign.lineage import migrant_of
from kfd.core.campaign.mutation import first_variant
from kfd.core.campaign.ports import Output
from kfd.core.campaign.state import (
    ENDED,
    CampaignState,
    Candidate,
    CandidateState,
    admit_job,
    build_job,
)
from kfd.core.campaign.steps import Steps, purpose_of
from kfd.core.campaign.tuning import point_of
from kfd.core.commands import DraftRequest, StartDraft
from kfd.core.fleet.model import NEVER, Job
from kfd.core.search.archive import Elite
from kfd.core.search.budgets import Amount
from kfd.core.search.operators import Operator
from kfd.core.search.proposals import Proposal
from kfd.core.search.tuning import Values

__all__ = ["Deciding"]


class Deciding(Steps):
    """Adds to the steps of a campaign what is asked and when it ends."""

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
        stop = self._search.stop_reason(self.record.roofline)
        refused: str | None = None
        if stop is None:
            out += self._mutate(now)
            asked, refused = self._ask_all(now)
            out += asked
        if self._watch.left(now) <= 0:
            out += self._give_up_drafts()
        if not self._open:
            if self._is_spent(now):
                out += self._finish(self._spent_reason(), now)
            elif stop is not None:
                out += self._finish(stop, now)
            elif refused is not None:
                proposal = self.proposal() if self.point() is None else None
                out.append(self._spending.reached(refused, self._cost_of(proposal)))
                out += self._finish(f"budget: {refused}", now)
            elif self.proposal() is None:
                out += self._finish("nothing left to ask", now)
        return out

    def _ask_all(self, now: Instant) -> tuple[list[Output], str | None]:
        """Ask until enough is in flight, nothing is left to ask, or a budget (in words) is in the way of the next."""
        out: list[Output] = []
        while len(self._open) < self.spec.in_flight and not self._is_spent(now):
            another = self._another()
            if another is None:
                break
            if isinstance(another, str):
                dropped = self._make_room(another) if not self._open else []
                if not dropped:
                    return out, another
                out += dropped
                continue
            out += another
        return out, None

    def _make_room(self, refused: str) -> list[Output]:
        """Give up mutations, whose reservations may be in the way of the only candidate: prompts change for candidates,
        and an open one must not end a campaign that could go on."""
        return [*self._evolution.stop(f"budget: {refused}", self._search, self._next_ordinal, self._spending.release)]

    def _another(self) -> list[Output] | str | None:
        """The next candidate: another target's elite, a sweep's point, else what the search proposes; the budget in its
        way, in words."""
        migrant = self._lineage.next(self.offered(), self._questions.used)
        point = self.point() if migrant is None else None
        proposal = self.proposal() if migrant is None and point is None else None
        if migrant is None and point is None and proposal is None:
            return None
        refused = self._spending.refusal(candidate_id(self.spec.id, self._next_ordinal), self._cost_of(proposal))
        if refused is not None:
            return refused
        if migrant is not None:
            return self._take(migrant)
        if point is not None:
            return self._tune(*point)
        return None if proposal is None else self._ask(proposal)

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
        due = min(self._questions.next_due(), self._evolution.next_due(now))
        return min(due, now + left if is_timed else NEVER)

    @property
    def _is_baselined(self) -> bool:
        """Whether the task is proved and the initial kernel, if there is one, is measured."""
        return self.record.admitted and (self._initial is None or not self._initial.is_open)

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
        id_ = candidate_id(self.spec.id, self._next_ordinal)
        candidate = learning.asked_for(proposal, id_, self._next_ordinal, nth, self._told)
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

    def _mutate(self, now: Instant) -> list[Output]:
        """Have prompts changed, for candidates that are still to be asked for. Nothing waits for it."""
        if self._is_spent(now):
            return []
        return [*self._evolution.start(self._search, now, self._is_paid)]

    def _is_paid(self, key: str, model: str) -> bool:
        """Whether a model call that is no draft could be reserved."""
        return self._spending.reserve_call(key, model) is None

    def _take(self, elite: Elite) -> list[Output]:
        """An elite of another target: tried here like any other candidate, but nobody is asked."""
        nth = self._questions.charge((elite.source, Operator.MIGRATE.value))
        id_ = candidate_id(self.spec.id, self._next_ordinal)
        variant = first_variant(self.spec).id
        candidate = migrant_of(elite, id_, self._next_ordinal, nth, self._told, variant)
        self._next_ordinal += 1
        return [*self._put(candidate), self._start(candidate)]

    def exports(self) -> list[Elite]:
        """What the other campaigns of the group may take."""
        return self._lineage.exports(self.archive, self._initial.id if self._initial is not None else None)

    def _start(self, candidate: Candidate) -> StartDraft:
        self._questions.begin(candidate.id)
        best = None if candidate.asked.strategy in learning.UNTOLD else self.archive.best()
        return StartDraft(
            request=DraftRequest(
                campaign=self.spec,
                candidate=candidate.id,
                ordinal=candidate.ordinal,
                operator=candidate.operator,
                parent=candidate.origin or candidate.parent,
                parent_source=candidate.parent_source,
                nth=candidate.nth,
                inspirations=candidate.inspirations,
                best=best.candidate if best is not None else None,
                hints=candidate.asked.words,
                algorithm=candidate.asked.parent_cell[1],
                values=candidate.values,
                model=learning.model_of(candidate),
                model_choice=self._dice.roll("model", candidate.ordinal),
                regions=self._evolution.regions(candidate.asked.variant),
            )
        )

    def _cost_of(self, proposal: Proposal | None) -> Amount:
        """What a proposal, or a sweep's point where there is none, may cost.

        The search says whom to ask, budgets only whether: they never change a decision, so that a replay needs no
        account. What does not fit beside what is in flight may fit when that has ended.
        """
        operator = Operator.TUNE if proposal is None else proposal.operator
        return self._spending.draft(operator, "" if proposal is None else learning.model_name(proposal.model))

    def _is_spent(self, now: Instant) -> bool:
        return self._questions.is_spent or self._watch.left(now) <= 0

    def _spent_reason(self) -> str:
        if self._questions.is_spent:
            return f"budget: {self.spec.budget_candidates} candidates"
        return "budget: time"
