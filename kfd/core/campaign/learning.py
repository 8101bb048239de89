"""Between a campaign and its search: what the search is shown, what it is told, what a candidate remembers of it.

Pure functions. What the search is told is made from the candidate's row alone, in normal running and after a restart
alike, so that a restored search cannot differ from the one that was killed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from kfd.base.ids import CandidateId
from kfd.base.work import CHECKED_ONLY, VerdictCode
from kfd.core.campaign import judging
from kfd.core.campaign.mutation import Mutation, accepted, first_variant, variant_of
from kfd.core.campaign.ports import Loaded
from kfd.core.campaign.state import Asked, CampaignSpec, Candidate
from kfd.core.dice import Dice
from kfd.core.search.archive import Elite
from kfd.core.search.fitness import LEAST_CORRECT
from kfd.core.search.operators import Operator
from kfd.core.search.prompt_archive import Variant
from kfd.core.search.proposals import ANY_MODEL, Broken, Outcome, Proposal, View
from kfd.core.search.search import BEST_OF_N, Search
from kfd.core.search.strategies import Strategy
from kfd.core.search.terms import priced, terms_of

__all__ = [
    "PERIODIC",
    "UNASKED",
    "UNTOLD",
    "asked",
    "asked_for",
    "champions",
    "is_repairable",
    "model_name",
    "model_of",
    "outcome_of",
    "price_of",
    "restored",
    "view",
]

UNASKED = (Operator.INITIAL, Operator.TUNE, Operator.MIGRATE)
"""Nobody's answers: nothing is there that a model could mend."""

PERIODIC = (Operator.TEMPLATE, Operator.SIMPLIFY)
"""Asked for once in a period."""

UNTOLD = (Strategy.ISLAND.value, BEST_OF_N)
"""Strategies whose children are shown nothing but what was chosen for them, the best of all not either."""

_INPUT_PRICE, _OUTPUT_PRICE = 1e-6, 4e-6
"""Money for one token where the model's price is unknown: the usual proportion of the two, in the unit of
``bandit.evaluation_cost``."""


def restored(loaded: Loaded) -> Search:
    """The search of a campaign as its rows leave it."""
    spec = loaded.spec
    rows = _in_order(loaded.outcomes, loaded.mutations)
    return Search.restore(spec.search, Dice(spec.seed), first_variant(spec), rows, _initial(loaded))


def _in_order(outcomes: Sequence[Outcome], mutations: Iterable[Mutation]) -> Iterator[Outcome | Variant]:
    """Outcomes as they were told, with each new prompt variant in its place between them."""
    waiting = deque(accepted(mutations))
    for told, outcome in enumerate(outcomes):
        while waiting and waiting[0][0].at <= told:
            yield variant_of(waiting.popleft()[1])
        yield outcome
    yield from (variant_of(mutation) for _, mutation in waiting)


def champions(loaded: Loaded) -> list[Elite]:
    """Every best that a campaign has had, as its rows tell. Demotions come after the last answer and change nothing."""
    initial = _initial(loaded)
    later = [told.elite for told in loaded.outcomes if told.best and told.elite is not None]
    return later if initial is None else [initial, *later]


def _initial(loaded: Loaded) -> Elite | None:
    """The task's own kernel, where it was measured and is correct."""
    initial = loaded.initial
    if initial is None or initial.outcome != VerdictCode.OK or loaded.spec.target == CHECKED_ONLY:
        return None
    return judging.as_elite(initial, judging.baseline_speedup(initial, loaded.spec.baseline))


def view(
    elites: Iterable[Elite],
    broken: Sequence[Broken],
    closed: Collection[tuple[str, str]],
    initial: int,
    told: int,
    last_asked: Mapping[Operator, int],
) -> View:
    """What the search is shown. ``initial``: characters of the task's own kernel, 0 when there is none."""
    held = list(elites)
    best = max(held, key=lambda elite: (elite.fitness, -elite.ordinal), default=None)
    ratio = best.length / initial if best is not None and initial else 1.0
    return View(elites=held, broken=broken, closed=closed, best_length_ratio=ratio, told=told, last_asked=last_asked)


def asked(proposal: Proposal, told: int) -> Asked:
    """What a candidate remembers of its proposal. ``told``: how many candidates the search knew of."""
    return Asked(
        at=told,
        model=proposal.model,
        variant=proposal.prompt,
        strategy=proposal.strategy,
        reaction=proposal.reaction,
        island=proposal.island,
        hints=tuple(hint.direction for hint in proposal.hints),
        parent_cell=proposal.parent_cell,
        parent_fitness=proposal.parent_fitness,
    )


def asked_for(proposal: Proposal, id_: CandidateId, ordinal: int, nth: int, told: int) -> Candidate:
    """The candidate that a proposal asks for. ``nth``: how often the same was answered before; ``told``: how many
    candidates the search knew of."""
    return Candidate(
        id=id_,
        ordinal=ordinal,
        operator=proposal.operator,
        parent=proposal.parent,
        parent_source=proposal.parent_source,
        inspirations=proposal.inspirations,
        nth=nth,
        generation=proposal.generation,
        repair_depth=proposal.repair_depth,
        asked=asked(proposal, told),
    )


def model_name(model: str) -> str:
    """A model of the search by its configured name; empty lets the generator choose."""
    return "" if model == ANY_MODEL else model


def model_of(candidate: Candidate) -> str:
    """The model to ask by its configured name; empty lets the generator choose."""
    return model_name(candidate.asked.model)


def is_repairable(spec: CampaignSpec, candidate: Candidate) -> bool:
    """Whether a judged failure may be asked to be mended: its text can help and its line of repairs is not too deep."""
    return (
        candidate.outcome in {code.value for code in judging.REPAIRABLE}
        and candidate.operator not in UNASKED
        and candidate.repair_depth < spec.search.operators.repair_depth
    )


def price_of(spec: CampaignSpec, model: str, input_tokens: int, output_tokens: int) -> float:
    """What a candidate's calls cost, in money: at its model's price where that is known."""
    known = priced(terms_of(spec.terms, model), input_tokens, output_tokens)
    return input_tokens * _INPUT_PRICE + output_tokens * _OUTPUT_PRICE if known is None else known


def outcome_of(candidate: Candidate, spec: CampaignSpec) -> Outcome:
    """What the search is told of a candidate, from its row. Raises ValueError for one that it is not told of."""
    told, ask = candidate.told, candidate.asked
    if told is None:
        raise ValueError(f"the search was told nothing of {candidate.id}")
    elite = None
    if told.fitness >= LEAST_CORRECT:
        # The fitness as it was told: that of a winner that was demoted since is gone from its row.
        speed = judging.baseline_speedup(candidate, spec.baseline)
        elite = judging.as_elite(candidate, speed, fitness=told.fitness)
    return Outcome(
        ordinal=candidate.ordinal,
        operator=candidate.operator,
        parent=candidate.parent,
        parent_source=candidate.parent_source,
        parent_cell=ask.parent_cell,
        parent_fitness=ask.parent_fitness,
        model=ask.model,
        prompt=ask.variant,
        island=ask.island,
        hints=ask.hints,
        fitness=told.fitness,
        elite=elite,
        kept=told.kept,
        best=told.best,
        price=price_of(spec, candidate.model, candidate.input_tokens, candidate.output_tokens),
    )
