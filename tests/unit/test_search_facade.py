"""The facade: what is asked next, and that restored rows ask the same."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import pytest

from kfd.base.digest import Digest
from kfd.base.ids import CandidateId
from kfd.core.dice import Dice
from kfd.core.search.archive import Cell, Elite
from kfd.core.search.bandit import BanditPolicy
from kfd.core.search.hints import HintPolicy
from kfd.core.search.operators import Operator, OperatorPolicy, open_shares
from kfd.core.search.plateau import PlateauPolicy, Reaction
from kfd.core.search.prompt_archive import PromptPolicy, Region, Variant, variant_id
from kfd.core.search.proposals import NOTHING, Broken, Outcome, Proposal, SearchPolicy, View
from kfd.core.search.search import Search
from kfd.core.search.strategies import Islands, ParentWeights, Strategy, rank_weights, strategy_weights

DICE = Dice(5)
REGIONS = {Region.STRATEGIES: "tile"}
FIRST = Variant(id=variant_id(REGIONS), regions=REGIONS)
PLAIN = SearchPolicy(
    operators=OperatorPolicy(patch=0.4, repair_depth=1, template_every=0, crossover=0.0),
    plateau=PlateauPolicy(patience=0),
    prompts=PromptPolicy(period=0),
    inspirations=2,
)


def elite(ordinal: int, cell: Cell = (0, 0, 0), fitness: float = 0.8) -> Elite:
    return Elite(
        candidate=CandidateId(f"c-{ordinal}"),
        ordinal=ordinal,
        generation=0,
        cell=cell,
        fitness=fitness,
        speedup=1.0,
        low=0.9,
        high=1.1,
        source=f"s{ordinal}",
        artifact=Digest(hash="0" * 64, size=0),
    )


def outcome(proposal: Proposal, ordinal: int, child: Elite | None, *, best: bool = False) -> Outcome:
    return Outcome(
        ordinal=ordinal,
        operator=proposal.operator,
        parent=proposal.parent,
        parent_source=proposal.parent_source,
        parent_cell=proposal.parent_cell,
        parent_fitness=proposal.parent_fitness,
        model=proposal.model,
        prompt=proposal.prompt,
        island=proposal.island,
        hints=tuple(hint.direction for hint in proposal.hints),
        fitness=child.fitness if child is not None else 0.1,
        elite=child,
        kept=child is not None,
        best=best,
        price=0.01,
    )


def asked(search: Search, view: View, ordinal: int) -> Proposal:
    proposal = search.ask(view, ordinal)
    assert proposal is not None
    return proposal


ELITES = (elite(0), elite(1, (1, 0, 0), 0.9), elite(2, (1, 1, 0), 1.1))


def unlucky(policy: SearchPolicy = PLAIN) -> Search:
    """A search that was told of one failure, after which a repair is worth a try."""
    search = Search(policy, DICE, FIRST)
    search.tell(outcome(asked(search, View(elites=ELITES), 0), 0, None))
    return search


def failed(depth: int = 0) -> Broken:
    return Broken(candidate=CandidateId("c-9"), ordinal=9, generation=2, depth=depth, source="s9", fitness=0.1)


# ---- what is asked ---------------------------------------------------------------------------------------------------


def test_asking_twice_gives_the_same_answer_and_needs_no_order() -> None:
    search = Search(PLAIN, DICE, FIRST)
    view = View(elites=ELITES)
    forwards = [search.ask(view, n) for n in range(30)]
    backwards = [search.ask(view, n) for n in reversed(range(30))]
    assert forwards == backwards[::-1]
    assert len({one.parent for one in forwards if one}) > 1


def test_a_campaign_from_nothing_begins_with_a_rewrite() -> None:
    search = Search(PLAIN, DICE, FIRST)
    proposal = asked(search, View(elites=()), 1)
    assert (proposal.operator, proposal.parent, proposal.parent_source) == (Operator.REWRITE, None, NOTHING)
    assert search.ask(View(elites=(), closed={(NOTHING, "rewrite")}), 1) is None


def test_a_failure_is_repaired_before_a_new_sample_and_not_for_ever() -> None:
    search = unlucky()
    proposal = asked(search, View(elites=ELITES, broken=(failed(),)), 3)
    assert (proposal.operator, proposal.parent, proposal.repair_depth) == (Operator.REPAIR, "c-9", 1)
    deep = failed(depth=PLAIN.operators.repair_depth)
    assert asked(search, View(elites=ELITES, broken=(deep,)), 3).operator is not Operator.REPAIR
    shut = View(elites=ELITES, broken=(failed(),), closed={("s9", "repair")})
    assert asked(search, shut, 3).operator is not Operator.REPAIR


def test_repairs_are_asked_for_only_while_they_come_out_right_as_often_as_new_kernels() -> None:
    search = Search(PLAIN, DICE, FIRST)
    view = View(elites=ELITES, broken=(failed(),))
    assert asked(search, view, 3).operator is not Operator.REPAIR
    search = unlucky()

    def tell(operator: Operator, *, right: int, wrong: int) -> None:
        sample = replace(outcome(asked(search, View(elites=ELITES), 1), 1, ELITES[1]), operator=operator)
        for n in range(right):
            search.tell(replace(sample, ordinal=n))
        for n in range(wrong):
            search.tell(replace(sample, ordinal=n, elite=None, fitness=0.0, kept=False))

    def pays() -> bool:
        return asked(search, view, 3).operator is Operator.REPAIR

    assert pays()
    tell(Operator.REWRITE, right=6, wrong=2)
    assert not pays()
    tell(Operator.TUNE, right=0, wrong=99)  # points of a sweep are no answers
    assert not pays()
    tell(Operator.PATCH, right=0, wrong=40)
    assert pays()
    tell(Operator.REPAIR, right=0, wrong=30)
    assert not pays()


def test_the_freshest_failure_is_repaired_and_old_ones_are_left() -> None:
    search = unlucky()
    many = tuple(replace(failed(), candidate=CandidateId(f"f-{n}"), source=f"f{n}") for n in range(40))
    assert asked(search, View(elites=ELITES, broken=many), 3).parent == "f-39"
    answered = {(f"f{n}", "repair") for n in range(25, 40)}
    assert asked(search, View(elites=ELITES, broken=many, closed=answered), 3).parent == "f-24"
    answered |= {("f24", "repair")}
    assert asked(search, View(elites=ELITES, broken=many, closed=answered), 3).operator is not Operator.REPAIR


def test_repairs_are_asked_for_when_nothing_else_is_left() -> None:
    search = Search(PLAIN, DICE, FIRST)
    for n in range(9):
        search.tell(outcome(asked(search, View(elites=ELITES), n), n, ELITES[1]))
    closed = {(one.source, op) for one in ELITES for op in ("rewrite", "patch")}
    many = tuple(replace(failed(), candidate=CandidateId(f"f-{n}"), source=f"f{n}") for n in range(40))
    assert asked(search, View(elites=ELITES, broken=many), 10).operator is not Operator.REPAIR
    assert asked(search, View(elites=ELITES, broken=many, closed=closed), 10).parent == "f-39"
    shut = closed | {(f"f{n}", "repair") for n in range(1, 40)}
    assert asked(search, View(elites=ELITES, broken=many, closed=shut), 10).parent == "f-0"
    assert search.ask(View(elites=ELITES, broken=many, closed=shut | {("f0", "repair")}), 10) is None


def test_closed_questions_are_not_asked_and_in_the_end_nothing_is() -> None:
    search = Search(PLAIN, DICE, FIRST)
    closed = {(one.source, op) for one in ELITES for op in ("rewrite", "patch")} - {("s1", "patch")}
    for n in range(20):
        proposal = asked(search, View(elites=ELITES, closed=closed), n)
        assert (proposal.parent, proposal.operator) == ("c-1", Operator.PATCH)
    assert search.ask(View(elites=ELITES, closed=closed | {("s1", "patch")}), 1) is None


def test_shares_of_operators_and_models_are_followed() -> None:
    policy = replace(PLAIN, models=(("a", 3.0), ("b", 1.0)))
    search = Search(policy, DICE, FIRST)
    proposals = [asked(search, View(elites=ELITES), n) for n in range(400)]
    models = Counter(one.model for one in proposals)
    operators = Counter(one.operator for one in proposals)
    assert 260 < models["a"] < 340
    assert 0.6 - 0.1 < operators[Operator.REWRITE] / 400 < 0.6 + 0.1


def test_a_template_is_due_for_a_best_that_was_never_tuned() -> None:
    policy = replace(PLAIN, operators=OperatorPolicy(template_every=3))
    search = Search(policy, DICE, FIRST)
    view = View(elites=ELITES)
    for n in range(1, 4):
        proposal = asked(search, view, n)
        assert proposal.operator is not Operator.TEMPLATE
        search.tell(outcome(proposal, n, None))
    due = asked(search, view, 4)
    assert (due.operator, due.parent) == (Operator.TEMPLATE, "c-2")
    search.tell(outcome(due, 4, elite(4, (1, 1, 0), 1.1)))
    for n in range(5, 12):
        proposal = asked(search, view, n)
        assert proposal.operator is not Operator.TEMPLATE
        search.tell(outcome(proposal, n, None))


def test_a_point_of_a_sweep_needs_no_template() -> None:
    search = Search(replace(PLAIN, operators=OperatorPolicy(template_every=1)), DICE, FIRST)
    view = View(elites=ELITES)
    search.tell(outcome(asked(search, View(elites=()), 1), 1, None))
    assert asked(search, view, 2).operator is Operator.TEMPLATE
    search.tell(replace(outcome(asked(search, View(elites=()), 1), 2, ELITES[2]), operator=Operator.TUNE))
    assert asked(search, view, 2).operator is not Operator.TEMPLATE


def test_the_margin_lets_other_cells_be_tuned_untuned_ones_first() -> None:
    for margin, expected in ((0.0, "c-2"), (0.25, "c-1")):
        operators = OperatorPolicy(template_every=1, template_margin=margin)
        search = Search(replace(PLAIN, operators=operators), DICE, FIRST)
        view = View(elites=ELITES)
        search.tell(outcome(asked(search, View(elites=()), 1), 1, None))
        first = asked(search, view, 2)
        assert (first.operator, first.parent) == (Operator.TEMPLATE, "c-2")
        search.tell(outcome(first, 2, None))
        # The best cell holds a new kernel, which may be tuned again; a cell that never was comes first.
        newer = (*ELITES[:2], elite(3, (1, 1, 0), 1.12))
        search.tell(outcome(asked(search, View(elites=()), 3), 3, None))
        second = asked(search, View(elites=newer), 4)
        assert (second.operator, second.parent) == (Operator.TEMPLATE, expected if margin else "c-3")


def test_a_long_best_is_simplified_once_in_a_while() -> None:
    search = Search(replace(PLAIN, operators=OperatorPolicy(simplify_every=1, template_every=0)), DICE, FIRST)
    search.tell(outcome(asked(search, View(elites=()), 1), 1, None))
    assert asked(search, View(elites=ELITES, best_length_ratio=1.5), 2).operator is not Operator.SIMPLIFY
    proposal = asked(search, View(elites=ELITES, best_length_ratio=3.0), 2)
    assert proposal.operator is Operator.SIMPLIFY
    search.tell(outcome(proposal, 2, None))
    assert asked(search, View(elites=ELITES, best_length_ratio=3.0), 3).operator is not Operator.SIMPLIFY


def test_crossover_needs_two_cells() -> None:
    policy = OperatorPolicy(rewrite=0.0, patch=0.0, crossover=1.0)
    assert open_shares(policy, 1) == {Operator.REWRITE: 1.0}
    assert open_shares(policy, 2) == {Operator.CROSSOVER: 1.0}


def test_inspirations_are_other_elites_the_best_first() -> None:
    search = Search(PLAIN, DICE, FIRST)
    for n in range(30):
        proposal = asked(search, View(elites=ELITES), n)
        assert proposal.parent not in proposal.inspirations
        assert proposal.inspirations[0] == ("c-1" if proposal.parent == "c-2" else "c-2")
    without = Search(replace(PLAIN, inspirations=0), DICE, FIRST)
    assert asked(without, View(elites=ELITES), 1).inspirations == ()


# ---- what is learnt --------------------------------------------------------------------------------------------------


def steps_up(search: Search, count: int) -> None:
    """Children that go up in memory from (1, 1, 0) and win."""
    for n in range(1, count + 1):
        proposal = asked(search, View(elites=ELITES[2:]), n)
        search.tell(outcome(proposal, n, elite(n + 10, (2, 1, 0), 1.3)))


def test_gradients_become_hints_and_can_be_switched_off() -> None:
    for limit, expected in ((3, {(0, 1)}), (0, set())):
        search = Search(replace(PLAIN, hints=HintPolicy(limit=limit)), DICE, FIRST)
        assert asked(search, View(elites=ELITES[2:]), 1).hints == ()
        steps_up(search, 6)
        assert {hint.direction for hint in asked(search, View(elites=ELITES[2:]), 7).hints} == expected


def test_a_repair_teaches_no_direction() -> None:
    search = unlucky(replace(PLAIN, hints=HintPolicy(limit=3, threshold=0.0)))
    for n in range(1, 8):
        proposal = asked(search, View(elites=ELITES[2:], broken=(failed(),)), n)
        assert proposal.operator is Operator.REPAIR
        search.tell(outcome(proposal, n, elite(n + 10, (2, 1, 0), 1.3)))
    assert asked(search, View(elites=(elite(0),)), 9).hints == ()


def test_a_plateau_widens_the_choice_of_parents_and_says_so() -> None:
    policy = replace(
        PLAIN, parents=ParentWeights(uniform=0.0, fitness=1.0, curiosity=0.0), plateau=PlateauPolicy(patience=5)
    )
    search = Search(policy, DICE, FIRST)
    search.begin(ELITES[2])
    assert asked(search, View(elites=ELITES), 1).strategy == Strategy.FITNESS
    for n in range(1, 6):
        search.tell(outcome(asked(search, View(elites=ELITES), n), n, None))
    assert search.reaction() is Reaction.WIDEN
    proposal = asked(search, View(elites=ELITES), 6)
    assert (proposal.strategy, proposal.reaction) == ("uniform", "widen_exploration")
    search.tell(outcome(proposal, 6, elite(7, (3, 3, 3), 2.0), best=True))
    assert search.reaction() is None


@pytest.mark.parametrize(
    ("share", "roofline", "stops"),
    [(0.95, None, False), (0.95, 0.949, False), (0.95, 0.95, True), (0.0, 1.0, False), (1.0, None, False)],
)
def test_the_roofline_ends_the_search_only_where_it_is_known(share: float, roofline: float | None, stops: bool) -> None:
    assert SearchPolicy().plateau.roofline_share == 0.0, "nobody's campaign ends early unasked"
    search = Search(replace(PLAIN, plateau=PlateauPolicy(roofline_share=share)), DICE, FIRST)
    search.begin(ELITES[2])
    assert (search.stop_reason(roofline) is not None) == stops


def test_the_meta_prompter_is_asked_at_its_period_and_variants_are_used() -> None:
    search = Search(replace(PLAIN, prompts=PromptPolicy(period=4, min_children=1)), DICE, FIRST)
    for n in range(1, 5):
        assert search.prompt_due(n) == ()
        search.tell(outcome(asked(search, View(elites=ELITES), n), n, None))
    assert [one.id for one in search.prompt_due(5)] == [FIRST.id]
    search.tell(outcome(asked(search, View(elites=ELITES), 5), 5, None))
    assert search.prompt_due(6) == ()
    regions = {Region.STRATEGIES: "vectorise"}
    assert search.prompt_evolved(Variant(id=variant_id(regions), regions=regions, parent=FIRST.id))
    used = Counter(asked(search, View(elites=ELITES), n).prompt for n in range(6, 106))
    assert len(used) == 2


def test_restored_rows_ask_the_same() -> None:
    policy = SearchPolicy(
        parents=ParentWeights(uniform=0.3, fitness=0.3, curiosity=0.3, island=0.3, migration_interval=7),
        bandit=BanditPolicy(),
        models=(("a", 1.0), ("b", 1.0)),
        operators=OperatorPolicy(crossover=0.3, template_every=9),
        plateau=PlateauPolicy(patience=6),
    )
    search, rows = Search(policy, DICE, FIRST), list[Outcome | Variant]()
    search.begin(ELITES[0])
    for n in range(1, 60):
        for parent in search.prompt_due(n):
            regions = {Region.STRATEGIES: f"v{n} of {parent.id}"}
            made = Variant(id=variant_id(regions), regions=regions, parent=parent.id)
            search.prompt_evolved(made)
            rows.append(made)
        proposal = asked(search, View(elites=ELITES), n)
        child = elite(100 + n, (n % 4, n % 3, n % 2), 0.6 + 0.01 * (n % 17)) if n % 3 else None
        told = outcome(proposal, n, child)
        search.tell(told)
        rows.append(told)
    again = Search.restore(policy, DICE, FIRST, rows, initial=ELITES[0])
    expected = [search.ask(View(elites=ELITES), n) for n in range(60, 160)]
    assert [again.ask(View(elites=ELITES), n) for n in range(60, 160)] == expected
    assert again.prompts == search.prompts
    assert again.reaction() == search.reaction()
    assert again.prompt_due(60) == search.prompt_due(60)


# ---- parents ---------------------------------------------------------------------------------------------------------


def test_ranks_keep_their_order_whatever_the_scale() -> None:
    small = [elite(n, (n, 0, 0), fitness) for n, fitness in enumerate((-1.0, -100.0, -1000.0))]
    large = [elite(n, (n, 0, 0), fitness) for n, fitness in enumerate((1000.0, 1.1, 1.0))]
    assert rank_weights(small, 1.0) == rank_weights(large, 1.0) == [1.0, 0.5, pytest.approx(1 / 3)]
    assert rank_weights(small, 0.0) == [1.0, 1.0, 1.0]


def test_curiosity_prefers_strong_gradients_and_tires_of_barren_parents() -> None:
    weights = ParentWeights(pressure=0.0)
    pair = (elite(0), elite(1, (1, 0, 0)))
    steep = strategy_weights(Strategy.CURIOSITY, pair, weights, {(0, 0, 0): 1.0}, {})
    assert steep[0] > 2 * steep[1]
    tired = strategy_weights(Strategy.CURIOSITY, pair, weights, {(0, 0, 0): 1.0}, {"c-0": 99})
    assert tired[0] < tired[1]


def test_points_of_a_sweep_do_not_tire_their_template() -> None:
    parents = ParentWeights(uniform=0.0, fitness=0.0, curiosity=1.0, pressure=0.0)
    search = Search(replace(PLAIN, parents=parents), DICE, FIRST)
    view = View(elites=ELITES)
    before = [asked(search, view, n).parent for n in range(40)]
    told = replace(outcome(asked(search, view, 1), 1, None), parent=CandidateId("c-2"), parent_cell=(1, 1, 0))
    for n in range(30):
        search.tell(replace(told, ordinal=n, operator=Operator.TUNE))
    assert [asked(search, view, n).parent for n in range(40)] == before
    for n in range(30):
        search.tell(replace(told, ordinal=n, operator=Operator.REPAIR))
    assert [asked(search, view, n).parent for n in range(40)].count("c-2") < before.count("c-2")


def test_islands_breed_in_turn_and_lines_stay_at_home_without_migration() -> None:
    policy = replace(
        PLAIN,
        parents=ParentWeights(uniform=0.0, fitness=0.0, curiosity=0.0, island=1.0, islands=3, migration_interval=0),
        operators=OperatorPolicy(repair_depth=0, template_every=0),
    )
    search = Search(policy, DICE, FIRST)
    search.begin(ELITES[0])
    home = {"c-0": {0, 1, 2}}
    elites = {ELITES[0].cell: ELITES[0]}
    born: Counter[int] = Counter()
    for n in range(1, 61):
        proposal = asked(search, View(elites=tuple(elites.values())), n)
        assert proposal.parent is not None
        assert proposal.island in home[proposal.parent]
        # Distinct cells, so that the global archive keeps all of them.
        child = elite(n, (n % 4, n // 4 % 4, n // 16), 0.8 + 0.001 * n)
        elites[child.cell] = child
        home[child.candidate] = {proposal.island}
        born[proposal.island] += 1
        search.tell(outcome(proposal, n, child))
    assert born == {0: 20, 1: 20, 2: 20}


def islands_only(**changes: object) -> SearchPolicy:
    parents = ParentWeights(uniform=0.0, fitness=0.0, curiosity=0.0, island=1.0, islands=3, migration_interval=0)
    operators = OperatorPolicy(repair_depth=0, template_every=0)
    return replace(PLAIN, parents=parents, operators=operators, **changes)  # type: ignore[arg-type]


def test_a_child_of_an_island_is_shown_nothing_of_others_until_they_migrate() -> None:
    for interval in (0, 30):
        policy = islands_only(inspirations=3)
        policy = replace(policy, parents=replace(policy.parents, migration_interval=interval))
        search = Search(policy, DICE, FIRST)
        search.begin(ELITES[0])
        home = {"c-0": {0, 1, 2}}
        elites = {ELITES[0].cell: ELITES[0]}
        foreign = shown = 0
        for n in range(1, 61):
            proposal = asked(search, View(elites=tuple(elites.values())), n)
            for one in (proposal.parent, *proposal.inspirations):
                assert one is not None
                foreign += proposal.island not in home[one]
            shown += len(proposal.inspirations)
            # Four cells for sixty children of three islands: each displaces what others hold there.
            child = elite(n, (n % 4, 0, 0), 0.8 + 0.001 * n)
            elites[child.cell] = child
            home[child.candidate] = {proposal.island}
            search.tell(outcome(proposal, n, child))
        assert shown > 60
        assert (foreign > 0) == (interval > 0)


def test_an_island_without_kernels_begins_from_nothing() -> None:
    search = Search(islands_only(), DICE, FIRST)
    first = asked(search, View(elites=()), 1)
    search.tell(outcome(first, 1, ELITES[0]))
    view = View(elites=ELITES[:1])
    assert [asked(search, view, n).parent for n in (4, 5, 6)] == ["c-0", None, None]
    shut = View(elites=ELITES[:1], closed={(NOTHING, "rewrite")})
    assert [asked(search, shut, n).parent for n in (4, 5, 6)] == ["c-0"] * 3


def test_weights_choose_the_strategy() -> None:
    for name in ("uniform", "fitness", "curiosity", "island"):
        only = ParentWeights(
            uniform=float(name == "uniform"),
            fitness=float(name == "fitness"),
            curiosity=float(name == "curiosity"),
            island=float(name == "island"),
        )
        search = Search(replace(PLAIN, parents=only), DICE, FIRST)
        search.begin(ELITES[0])
        assert asked(search, View(elites=ELITES), 1).strategy == name


def test_migration_shows_each_best_to_the_right_neighbour() -> None:
    islands = Islands(ParentWeights(islands=3, migration_interval=2))
    islands.add(elite(1, (1, 0, 0)), 0)
    assert not islands.evaluated()
    assert islands.evaluated()
    assert islands.sizes == (1, 1, 0)


def test_a_restart_empties_the_weakest_island() -> None:
    islands = Islands(ParentWeights(islands=2))
    islands.add(elite(1, (1, 0, 0), 0.9), 0)
    islands.add(elite(2, (2, 0, 0), 0.7), 1)
    assert islands.restart_worst(elite(3, (3, 0, 0), 1.5)) == 1
    assert [one.candidate for one in islands.on(1)] == ["c-3"]


@pytest.mark.parametrize(
    "wrong", [{"fitness": math.nan}, {"parent_fitness": math.inf}, {"price": math.nan}, {"price": -0.01}]
)
def test_an_outcome_of_impossible_numbers_cannot_be_made(wrong: dict[str, float]) -> None:
    told = outcome(asked(Search(PLAIN, DICE, FIRST), View(elites=ELITES), 1), 1, ELITES[1])
    with pytest.raises(ValueError, match=r"finite|not negative"):
        replace(told, **wrong)  # type: ignore[arg-type]


def test_points_of_a_sweep_are_no_crowd() -> None:
    search = Search(PLAIN, DICE, FIRST)
    told = outcome(asked(search, View(elites=ELITES), 1), 1, ELITES[1])
    for n in range(80):
        search.tell(replace(told, ordinal=n, operator=Operator.TUNE))
    assert search.crowd is None
    for n in range(40):
        assert search.crowd is None
        search.tell(replace(told, ordinal=100 + n))
    assert search.crowd is not None


# ---- configuration ---------------------------------------------------------------------------------------------------


def test_policies_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="one is positive"):
        ParentWeights(uniform=0.0, fitness=0.0, curiosity=0.0)
    with pytest.raises(ValueError, match="islands are 1"):
        ParentWeights(islands=0)
    with pytest.raises(ValueError, match="one is positive"):
        OperatorPolicy(rewrite=0.0, patch=0.0)
    with pytest.raises(ValueError, match="each one once"):
        SearchPolicy(models=(("a", 1.0), ("a", 1.0)))
    with pytest.raises(ValueError, match="leave out"):
        SearchPolicy(models=(("a", 0.0),))
    with pytest.raises(ValueError, match="0 to 16"):
        SearchPolicy(inspirations=17)
    with pytest.raises(ValueError, match="1 to 3 mutations"):
        PromptPolicy(mutations=4)
