"""The bandit, the prompt archive, budgets and plateaus."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from kfd.core.dice import Dice
from kfd.core.search.bandit import MAX_ARMS, Arm, Bandit, BanditPolicy, Credit
from kfd.core.search.budgets import ZERO, Account, Amount, Limits, call_bound
from kfd.core.search.plateau import PlateauPolicy, Progress, Reaction, reaction, stop_reason
from kfd.core.search.prompt_archive import (
    MAX_REGION,
    Edit,
    EditError,
    PromptArchive,
    PromptPolicy,
    Region,
    Variant,
    mutated,
    variant_id,
)

DICE = Dice(11)
LARGE = Arm(model="large", operator="rewrite", prompt="p")
SMALL = Arm(model="small", operator="rewrite", prompt="p")


def variant(text: str) -> Variant:
    regions = {Region.STRATEGIES: text, Region.PITFALLS: "none yet"}
    return Variant(id=variant_id(regions), regions=regions)


def drawn(bandit: Bandit, count: int = 600) -> Counter[Arm]:
    return Counter(bandit.choose((LARGE, SMALL), (1.0, 1.0), DICE, ordinal) for ordinal in range(count))


# ---- bandit ----------------------------------------------------------------------------------------------------------


def test_an_equal_gain_at_a_lower_price_is_preferred() -> None:
    bandit = Bandit(BanditPolicy())
    assert 0.4 < drawn(bandit)[SMALL] / 600 < 0.6
    for _ in range(40):
        bandit.pulled(LARGE, gain=0.1, price=0.05)
        bandit.pulled(SMALL, gain=0.1, price=0.005)
    assert drawn(bandit)[SMALL] > 2 * drawn(bandit)[LARGE]


def test_the_loser_keeps_its_floor_and_a_zero_share_is_never_chosen() -> None:
    bandit = Bandit(BanditPolicy(floor=0.2))
    for _ in range(200):
        bandit.pulled(LARGE, gain=0.0, price=0.05)
        bandit.pulled(SMALL, gain=0.2, price=0.005)
    assert drawn(bandit)[LARGE] >= 40
    chosen = {bandit.choose((LARGE, SMALL), (1.0, 0.0), DICE, n) for n in range(50)}
    assert chosen == {LARGE}
    with pytest.raises(ValueError, match="positive share"):
        bandit.choose((LARGE,), (0.0,), DICE, 1)


def test_the_lead_goes_to_who_is_clearly_worth_more_and_not_to_and_fro() -> None:
    bandit = Bandit(BanditPolicy(prior=4.0))
    assert bandit.lead(None) is None
    for _ in range(3):
        bandit.pulled(LARGE, gain=0.1, price=0.0)
        assert bandit.lead(None) is None, "three pulls are too few"
    bandit.pulled(LARGE, gain=0.1, price=0.0)
    lead = bandit.lead(None)
    assert lead == LARGE
    for _ in range(30):
        bandit.pulled(SMALL, gain=0.102, price=0.0)
        lead = bandit.lead(lead)
        assert lead == LARGE, "a little more is not clearly more"
    for _ in range(60):
        bandit.pulled(SMALL, gain=0.2, price=0.0)
        lead = bandit.lead(lead)
    assert lead == SMALL
    assert bandit.lead(LARGE) == SMALL
    losing = Bandit(BanditPolicy(), [Credit(arm=LARGE, pulls=50, gain=0.0, cost=1.0)])
    assert losing.lead(None) is None, "who gains nothing does not lead"


def test_credits_are_restored_by_name_whatever_the_order_of_configuration() -> None:
    bandit = Bandit(BanditPolicy())
    bandit.pulled(SMALL, gain=0.3, price=0.01)
    bandit.pulled(LARGE, gain=0.1, price=0.02)
    restored = Bandit(BanditPolicy(), reversed(bandit.credits))
    assert restored.credits == bandit.credits
    assert restored.worth((SMALL, LARGE)) == bandit.worth((LARGE, SMALL))[::-1]
    assert drawn(restored) == drawn(bandit)


def test_a_new_arm_inherits_from_its_names() -> None:
    bandit = Bandit(BanditPolicy())
    for _ in range(20):
        bandit.pulled(LARGE, gain=0.5, price=0.01)
        bandit.pulled(SMALL, gain=0.0, price=0.01)
    good, bad = (Arm(model=name, operator="rewrite", prompt="new") for name in ("large", "small"))
    better, worse = bandit.worth((good, bad))
    assert better > worse


def test_each_key_of_the_bandit_does_what_it_says() -> None:
    def worth(policy: BanditPolicy, gains: tuple[float, ...]) -> float:
        bandit = Bandit(policy)
        for gain in gains:
            bandit.pulled(SMALL, gain=0.2, price=0.01)
            bandit.pulled(LARGE, gain=gain, price=0.03)
        large, small = bandit.worth((LARGE, SMALL))
        return large / small

    # A strong prior levels; a fast decay forgets the bad beginning; dear evaluations make prices of calls matter less.
    assert worth(BanditPolicy(prior=100), (0.0,) * 5) > worth(BanditPolicy(prior=1), (0.0,) * 5)
    late = (0.0,) * 10 + (0.4,) * 10
    assert worth(BanditPolicy(decay=0.8), late) > worth(BanditPolicy(decay=1.0), late)
    even = (0.2,) * 30
    assert worth(BanditPolicy(evaluation_cost=1.0), even) > worth(BanditPolicy(evaluation_cost=0.001), even)


def test_the_least_used_names_are_forgotten_and_the_rest_kept() -> None:
    bandit = Bandit(BanditPolicy())
    for _ in range(3):
        bandit.pulled(LARGE, gain=0.1, price=0.01)
    for n in range(MAX_ARMS + 10):
        bandit.pulled(Arm(model="large", operator="patch", prompt=str(n)), gain=0.0, price=0.01)
    assert len(bandit.credits) == MAX_ARMS
    assert LARGE in [credit.arm for credit in bandit.credits]


def test_harm_counts_as_nothing_and_nonsense_is_refused() -> None:
    bandit = Bandit(BanditPolicy())
    assert bandit.pulled(LARGE, gain=-5.0, price=0.0).gain == 0.0
    for gain, price in ((math.nan, 0.0), (0.0, math.inf), (0.0, -1.0)):
        with pytest.raises(ValueError, match="finite"):
            bandit.pulled(LARGE, gain=gain, price=price)
    with pytest.raises(ValueError, match="two credits"):
        Bandit(BanditPolicy(), [Credit(arm=LARGE, pulls=1, gain=0, cost=1)] * 2)


# ---- prompts ---------------------------------------------------------------------------------------------------------


def test_an_edit_replaces_a_unique_passage_of_its_region() -> None:
    parent = variant("use tiles; use vectors")
    edit = Edit(region=Region.STRATEGIES, search="use tiles", replace="use shared tiles")
    child = mutated(parent, [edit], frozenset())
    assert child.regions[Region.STRATEGIES] == "use shared tiles; use vectors"
    assert (child.parent, child.generation) == (parent.id, 1)
    assert child.id == variant_id(child.regions) != parent.id


@pytest.mark.parametrize(
    ("region", "search", "replacement", "text"),
    [
        (Region.STRATEGIES, "absent", "x", "not found"),
        (Region.STRATEGIES, "use", "x", "more than once"),
        (Region.STRATEGIES, "", "x", "only an empty region"),
        (Region.STRATEGIES, "use tiles", "use tiles", "change nothing"),
        (Region.STRATEGIES, "use tiles", "x" * (MAX_REGION + 1), "longer than"),
        (Region.PITFALLS, "none yet", "x", "pinned"),
    ],
)
def test_an_edit_that_cannot_be_applied_says_why(region: Region, search: str, replacement: str, text: str) -> None:
    edit = Edit(region=region, search=search, replace=replacement)
    with pytest.raises(EditError, match=text):
        mutated(variant("use tiles; use vectors"), [edit], frozenset({Region.PITFALLS}))


def test_no_edit_is_an_error_and_an_empty_region_may_be_filled() -> None:
    parent = variant("a")
    with pytest.raises(EditError, match="at least one"):
        mutated(parent, [], frozenset())
    filled = mutated(parent, [Edit(region=Region.ANALYSIS, search="", replace="think")], frozenset())
    assert filled.regions[Region.ANALYSIS] == "think"


def test_the_update_is_due_after_the_period_and_asks_for_at_most_three() -> None:
    variants = [variant(str(n)) for n in range(5)]
    archive = PromptArchive(PromptPolicy(period=10, mutations=3, min_children=1), variants)
    for n in range(10):
        assert not archive.is_due()
        archive.judged(variants[n % 5].id, 0.1 * (n % 5))
    assert archive.is_due()
    assert [one.id for one in archive.parents(DICE, 1)] == [variants[n].id for n in (4, 3, 2)]
    archive.judged(variants[0].id, 0.0)
    assert not archive.is_due()


def test_period_zero_is_off() -> None:
    first = variant("a")
    archive = PromptArchive(PromptPolicy(period=0), [first], judged=1000)
    assert PromptArchive(PromptPolicy(period=10), [first], judged=1000).is_due()
    assert not archive.is_due()


def test_credit_goes_by_gains_not_by_the_luckiest_child() -> None:
    steady, lucky = variant("steady"), variant("lucky")
    archive = PromptArchive(PromptPolicy(), [steady, lucky])
    for n in range(20):
        archive.judged(steady.id, 0.2)
        archive.judged(lucky.id, 0.5 if n == 0 else -1.0)
    by_id = {one.id: one for one in archive.variants}
    assert archive.credit(by_id[steady.id]) > archive.credit(by_id[lucky.id])
    chosen = Counter(archive.choose(DICE, n).id for n in range(400))
    assert chosen[steady.id] > 2 * chosen[lucky.id] > 0


def test_exploration_and_prior_level_the_draw_between_prompts() -> None:
    def share(policy: PromptPolicy) -> float:
        good, bad = variant("good"), variant("bad")
        archive = PromptArchive(policy, [good, bad])
        for _ in range(30):
            archive.judged(good.id, 0.3)
            archive.judged(bad.id, 0.0)
        return sum(archive.choose(DICE, n).id == good.id for n in range(500)) / 500

    assert share(PromptPolicy(explore=0.0)) > share(PromptPolicy(explore=1.0)) + 0.2
    assert share(PromptPolicy(explore=0.0)) > share(PromptPolicy(explore=0.0, prior=1000.0)) + 0.1


def test_the_archive_is_bounded_and_keeps_the_first() -> None:
    first = variant("first")
    archive = PromptArchive(PromptPolicy(size=4, min_children=1), [first])
    archive.judged(first.id, 0.0)
    for n in range(20):
        new = variant(f"v{n}")
        assert archive.add(new)
        assert not archive.add(new)
        archive.judged(new.id, 0.01 * n)
    assert len(archive.variants) == 4
    assert archive.variants[0].id == first.id
    kept = {one.regions[Region.STRATEGIES] for one in archive.variants[1:]}
    assert kept == {"v17", "v18", "v19"}


def test_prompts_are_restored_from_rows_and_a_dropped_one_is_not_missed() -> None:
    archive = PromptArchive(PromptPolicy(), [variant("a"), variant("b")])
    archive.judged("gone", 0.3)
    archive.judged(variant("b").id, 0.3)
    again = PromptArchive(PromptPolicy(), archive.variants, archive.children)
    assert again.variants == archive.variants
    assert [again.choose(DICE, n) for n in range(50)] == [archive.choose(DICE, n) for n in range(50)]
    with pytest.raises(ValueError, match="finite"):
        archive.judged("gone", math.inf)


# ---- budgets ---------------------------------------------------------------------------------------------------------


def test_reservations_count_before_they_are_spent() -> None:
    account = Account(Limits(micro_money=100, tokens=3))
    assert account.reserve("a", Amount(micro_money=60, tokens=1)) is None
    assert account.reserve("b", Amount(micro_money=60, tokens=1)) == "micro_money"
    assert account.committed == Amount(micro_money=60, tokens=1)
    account.settle("a", Amount(micro_money=30, tokens=1))
    assert account.reserve("b", Amount(micro_money=60, tokens=1)) is None
    assert account.spent == Amount(micro_money=30, tokens=1)


def test_settling_twice_books_once_and_a_key_is_reserved_once() -> None:
    account = Account(Limits())
    account.reserve("a", Amount(tokens=5))
    with pytest.raises(ValueError, match="already"):
        account.reserve("a", Amount(tokens=5))
    assert account.settle("a", Amount(tokens=4)) == Amount(tokens=4)
    assert account.settle("a", Amount(tokens=4)) == ZERO
    assert account.spent.tokens == 4
    account.reserve("b", Amount(tokens=9))
    account.release("b")
    assert account.committed.tokens == 4


def test_an_account_is_restored_with_its_open_reservations() -> None:
    account = Account(Limits(tokens=10))
    account.reserve("a", Amount(tokens=7))
    again = Account(Limits(tokens=10), account.spent, account.reservations)
    assert again.reserve("b", Amount(tokens=4)) == "tokens"
    with pytest.raises(ValueError, match="two reservations"):
        Account(Limits(), ZERO, [("a", ZERO), ("a", ZERO)])


def test_a_call_is_bounded_from_above_and_an_unknown_price_is_not_zero() -> None:
    limited = Limits(micro_money=10)
    assert call_bound(1, 1, (1, 1), limited) == Amount(micro_money=1, tokens=2)
    assert call_bound(1_000_000, 500_000, (3, 15), limited).micro_money == 11
    with pytest.raises(ValueError, match="price is unknown"):
        call_bound(1, 1, None, limited)
    assert call_bound(1, 1, None, Limits(tokens=5)) == Amount(tokens=2)
    with pytest.raises(ValueError, match="not negative"):
        Amount(tokens=-1)


# ---- plateau ---------------------------------------------------------------------------------------------------------


def test_reactions_come_one_after_another_and_end_with_a_better_best() -> None:
    policy = PlateauPolicy(patience=10)
    start = Progress().after(0.7, 5, policy)
    seen = [reaction(start, evaluations, policy) for evaluations in (14, 15, 25, 35, 45, 55)]
    assert seen == [None, Reaction.WIDEN, Reaction.SWITCH, Reaction.RESTART, Reaction.META, Reaction.WIDEN]
    assert start.after(0.704, 20, policy) == start
    assert reaction(start.after(0.71, 20, policy), 25, policy) is None


def test_the_search_stops_after_the_last_reaction_or_at_the_roofline() -> None:
    policy = PlateauPolicy(patience=10, stop=True, roofline_share=0.9)
    start = Progress(best=0.7, at=0)
    assert stop_reason(start, 49, policy) is None
    assert "50 evaluations" in (stop_reason(start, 50, policy) or "")
    assert stop_reason(start, 50, PlateauPolicy(patience=10)) is None
    assert stop_reason(start, 1, policy, roofline=0.89) is None
    assert "91%" in (stop_reason(start, 1, policy, roofline=0.91) or "")
    assert reaction(start, 10_000, PlateauPolicy(patience=0)) is None
