"""What a campaign has spent, what it has reserved, and whether something more may be begun.

``Spending`` puts a campaign's rows beside the pure account (``kfd.core.search.budgets``). The laws:

- *Reserved before spending.* A draft is started only when its bound fits beside everything spent and reserved: all
  model calls that it may make (``terms.draft_bound``), one run and one confirmation of what comes of it. So nothing is
  asked for whose evaluation could not be paid. Further confirmations are reserved when they come; one that does not fit
  is not made, and the candidate displaces nobody by it.
- *The end is paid for.* The admission of the task and all fresh measurements of winners that the end of a campaign may
  take are reserved from the beginning.
- *Reservations follow from rows.* What is reserved is a function of the open candidates and of the campaign's record,
  here and after a restart alike; what is spent is the sum of the rows of ``SaveSpending``. Nothing else is kept.
- *Booked in full.* A provider that counts more than it was allowed is booked as it counts; nothing is begun after that.

What is not in the books, because nobody here can know it: a call that was in flight when the daemon ended (it is asked
again under the reservation that it had), and one that was stopped before it ended (time is up, cancelled).

Other model calls (a mutation of a prompt) take part by a key of their own: ``reserve_call`` and ``settle_call``. They
are reserved when they begin, and so again when a restarted daemon makes them again.
"""

from __future__ import annotations

from collections.abc import Iterable

from kfd.base.failure import Bug
from kfd.base.instant import Span
from kfd.base.work import Report, Stage
from kfd.core.campaign import learning
from kfd.core.campaign.state import CampaignRecord, CampaignSpec, CampaignState, Candidate, CandidateState
from kfd.core.commands import SaveSpending
from kfd.core.fleet.model import Fact, Job
from kfd.core.search.budgets import ZERO, Account, Amount, Limits, call_bound
from kfd.core.search.operators import Operator
from kfd.core.search.terms import Bound, cost_of, draft_bound, terms_of

__all__ = ["MAX_VERIFICATIONS", "Spending", "call_bound_of", "device_cost", "limits_of"]

MAX_VERIFICATIONS = 4
"""Winners that may fail their fresh measurement before the campaign ends without one."""

_BOOKED_MICRO_MONEY, _BOOKED_TOKENS = 1 << 41, 1 << 40
"""What one settlement books at most, so that sums stay whole numbers of the store whatever a provider claims."""

_WORDS = {"micro_money": "money", "tokens": "tokens", "device_ns": "device time"}
_UNITS = {"micro_money": "millionths", "tokens": "tokens", "device_ns": "ns"}
_ENDS = "(end)"
_ON_DEVICE = (Stage.CHECK.value, Stage.BENCHMARK.value)


def limits_of(spec: CampaignSpec) -> Limits:
    """The limits of the account. Candidates and active time have counters of their own."""
    return Limits(micro_money=spec.budget_micro_money, tokens=spec.budget_tokens, device_ns=spec.budget_device_ns)


def call_bound_of(spec: CampaignSpec, model: str) -> Bound:
    """Tokens that one draft may use, all its calls together. ``model``: configured name, empty for any."""
    return draft_bound(terms_of(spec.terms, model), spec.asks_again)


def device_cost(job: Job, report: Report, limit: Span) -> Span:
    """Device time of a settled job of a run slot: what the attempt that ended it spent in checking and benchmarking.

    Never more than the job's limit: what goes beyond is the judge's own work. A report that says nothing of its stages
    is charged the whole limit, for unknown is not zero; a job that was never granted costs nothing. Attempts that were
    lost with their worker are incidents of ours and not charged.
    """
    if job.attempt == 0:
        return 0
    if not report.stages_ns:
        return limit
    return min(limit, sum(ns for stage, ns in report.stages_ns if stage in _ON_DEVICE))


class Spending:
    """The account of one campaign that has not ended."""

    def __init__(self, spec: CampaignSpec, record: CampaignRecord, candidates: list[Candidate], spent: Amount) -> None:
        """``candidates``: those that are open; ``spent``: the sum of all costs that were saved."""
        self._spec = spec
        self._account = Account(limits_of(spec), spent)
        self._run = spec.run_limits.wall_ns
        self.watch(record)
        for candidate in candidates:
            self.note(candidate)

    @property
    def account(self) -> Account:
        """For views and checks; only this class changes it."""
        return self._account

    # ---- reservations that follow from rows -------------------------------------------------------------------------

    def watch(self, record: CampaignRecord) -> None:
        """The campaign's row changed: keep what its admission and its end may cost."""
        jobs = 0 if record.admitted else 1
        if not self._spec.validate_only:
            jobs += MAX_VERIFICATIONS - record.verifications
            jobs += record.state is CampaignState.VERIFYING
        self._hold(_ENDS, Amount(device_ns=jobs * self._run))

    def note(self, candidate: Candidate) -> None:
        """A candidate's row changed: keep what it may still cost."""
        self._hold(candidate.id, self.reserved(candidate))

    def reserved(self, candidate: Candidate) -> Amount:
        """What an open candidate may still cost."""
        match candidate.state:
            case CandidateState.DRAFTING:
                return self.draft(candidate.operator, learning.model_of(candidate))
            case CandidateState.BUILDING | CandidateState.RUNNING:
                runs = 1 if candidate.operator is Operator.INITIAL else 2
            case CandidateState.CONFIRMING:
                runs = 1
            case CandidateState.JUDGED | CandidateState.DISCARDED:
                return ZERO
        return Amount(device_ns=runs * self._run)

    def draft(self, operator: Operator, model: str) -> Amount:
        """What a new candidate may cost: its model calls, a run and a confirmation."""
        runs = Amount(device_ns=2 * self._run)
        return runs if operator in learning.UNASKED else runs.plus(self._call(model, self._spec.asks_again))

    def refusal(self, key: str, most: Amount) -> str | None:
        """The budget that is in the way of a reservation, in words; None when it fits."""
        name = self._account.refusal(key, most)
        return None if name is None else _WORDS[name]

    def reached(self, refused: str, wanted: Amount) -> Fact:
        """``budget.reached``: which budget ends the campaign, and why it does although something may be left of it."""
        name = next(name for name, words in _WORDS.items() if words == refused)
        body = (
            ("budget", refused),
            ("limit", getattr(self._account.limits, name)),
            ("spent", getattr(self._account.spent, name)),
            ("kept_for_the_end", getattr(self._account.reserved, name)),
            ("next_may_cost", getattr(wanted, name)),
            ("unit", _UNITS[name]),
        )
        return Fact(kind="budget.reached", campaign=self._spec.id, body=body)

    def can_be(self, candidate: Candidate) -> bool:
        """Whether a candidate's row may become this: what it may then still cost fits."""
        return self.refusal(candidate.id, self.reserved(candidate)) is None

    def check(self, candidates: Iterable[Candidate]) -> None:
        """Raise Bug when the reservations are not those that the rows call for."""
        held = dict(self._account.reservations)
        for candidate in candidates:
            if held.get(candidate.id, ZERO) != self.reserved(candidate):
                raise Bug(f"{candidate.id} holds a reservation that its row does not call for")

    # ---- costs ------------------------------------------------------------------------------------------------------

    def book(self, key: str, cost: Amount) -> list[SaveSpending]:
        """Add a cost; the command that saves it, none for no cost."""
        return self._saved(key, self._account.book(_storable(cost)))

    def book_tokens(self, key: str, model: str, input_tokens: int, output_tokens: int) -> list[SaveSpending]:
        """Add what a model said that it used, at the price of the campaign's terms."""
        return self.book(key, cost_of(terms_of(self._spec.terms, model), input_tokens, output_tokens))

    def book_job(self, job: Job, report: Report) -> list[SaveSpending]:
        """Add the device time of a settled job of a run slot."""
        return self.book(job.id, Amount(device_ns=device_cost(job, report, self._run)))

    # ---- model calls that are no drafts -----------------------------------------------------------------------------

    def reserve_call(self, key: str, model: str) -> str | None:
        """Reserve one call to a model under a key. None when granted, else the budget in the way, in words. Raises
        ValueError for a key that holds a reservation."""
        name = self._account.reserve(key, self._call(model, 0))
        return None if name is None else _WORDS[name]

    def settle_call(self, key: str, model: str, input_tokens: int, output_tokens: int) -> list[SaveSpending]:
        """Replace a reservation by what the call used; a key that holds none has been settled and books nothing."""
        cost = cost_of(terms_of(self._spec.terms, model), input_tokens, output_tokens)
        return self._saved(key, self._account.settle(key, _storable(cost)))

    def release(self, key: str) -> None:
        """A call is not waited for any more: what it used will not be known."""
        self._account.release(key)

    def _call(self, model: str, asks_again: int) -> Amount:
        terms = terms_of(self._spec.terms, model)
        bound = draft_bound(terms, asks_again)
        price = None if terms is None else terms.price
        # Raises for an unknown price under a budget of money: submission refuses that, and it is not free.
        return call_bound(bound.input_tokens, bound.output_tokens, price, self._account.limits)

    def _hold(self, key: str, most: Amount) -> None:
        if most == ZERO:
            self._account.release(key)
        else:
            self._account.hold(key, most)

    def _saved(self, key: str, cost: Amount) -> list[SaveSpending]:
        return [] if cost == ZERO else [SaveSpending(campaign=self._spec.id, key=key, cost=cost)]


def _storable(cost: Amount) -> Amount:
    return Amount(
        micro_money=min(cost.micro_money, _BOOKED_MICRO_MONEY),
        tokens=min(cost.tokens, _BOOKED_TOKENS),
        device_ns=cost.device_ns,
    )
