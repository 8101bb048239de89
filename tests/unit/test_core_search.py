"""Laws of fitness, archive and dice."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfd.base.digest import Digest
from kfd.base.ids import CandidateId
from kfd.base.work import VerdictCode
from kfd.core.dice import Dice
from kfd.core.search.archive import AddStatus, Archive, Cell, Elite
from kfd.core.search.fitness import fitness


def elite(ordinal: int, speedup: float = 1.0, cell: Cell = (0, 0, 0), half: float = 0.02, **changes: object) -> Elite:
    values: dict[str, object] = {
        "candidate": CandidateId(f"c-{ordinal}"),
        "ordinal": ordinal,
        "generation": 1,
        "cell": cell,
        "fitness": 0.5 + 0.5 * math.log2(1 + speedup / 2),
        "speedup": speedup,
        "low": speedup * (1 - half),
        "high": speedup * (1 + half),
        "source": f"s{ordinal}",
        "artifact": Digest("0" * 64, 1),
    }
    return Elite(**(values | changes))  # type: ignore[arg-type]


def test_fitness_is_one_at_the_target_and_goes_on_rising() -> None:
    assert fitness(VerdictCode.OK, 2.0, 2.0) == 1.0
    assert fitness(VerdictCode.OK, 5.0, 2.0) > fitness(VerdictCode.OK, 2.1, 2.0) > 1.0  # type: ignore[operator]


def test_every_failure_ranks_below_the_slowest_correct_kernel() -> None:
    slowest = fitness(VerdictCode.OK, 1e-9, 2.0)
    for code in VerdictCode:
        if code not in (VerdictCode.OK, VerdictCode.SUSPECT):
            worst = fitness(code, None, 2.0)
            assert worst is not None
            assert slowest is not None
            assert worst < slowest
    assert fitness(VerdictCode.SUSPECT, None, 2.0) is None


@pytest.mark.parametrize("speedup", [None, 0.0, -1.0, math.nan, math.inf])
def test_a_correct_candidate_without_a_real_speedup_is_refused(speedup: float | None) -> None:
    with pytest.raises(ValueError, match="positive speedup"):
        fitness(VerdictCode.OK, speedup, 2.0)


def test_an_empty_cell_takes_anybody_and_an_incumbent_stays_within_noise() -> None:
    archive = Archive()
    assert archive.add(elite(1, 1.0)).status is AddStatus.NEW
    assert not archive.add(elite(2, 1.02)).status
    assert [e.ordinal for e in archive] == [1]


def test_a_clear_gain_displaces_the_incumbent_and_tells_whom() -> None:
    archive = Archive([elite(1, 1.0)])
    new = elite(2, 1.2)
    rival = archive.rival(new)
    assert rival is not None
    assert rival.candidate == "c-1"
    result = archive.add(new, beaten=rival.candidate)
    assert result.status is AddStatus.IMPROVED
    assert result.replaced == "c-1"
    assert result.improvement > 0
    best = archive.best()
    assert best is not None
    assert best.ordinal == 2


@pytest.mark.parametrize(
    "bad",
    [
        {"cell": (0, 0, 4)},
        {"cell": (-1, 0, 0)},
        {"fitness": math.nan},
        {"low": math.nan},
        {"low": 1.5},
        {"low": 0.0},
    ],
)
def test_an_impossible_elite_cannot_be_made(bad: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"cell|finite|enclose"):
        elite(1, **bad)  # type: ignore[arg-type]


cells = st.tuples(*[st.integers(0, 3)] * 3)
entries = st.lists(st.tuples(cells, st.floats(0.1, 50), st.floats(0.001, 0.2)), max_size=60)


@given(entries)
def test_the_archive_keeps_one_elite_a_cell_and_never_gets_slower(
    rows: list[tuple[Cell, float, float]],
) -> None:
    archive = Archive()
    best_seen: dict[Cell, float] = {}
    for ordinal, (cell, speed, half) in enumerate(rows):
        before = best_seen.get(cell, 0.0)
        new = elite(ordinal, speed, cell, half)
        rival = archive.rival(new)
        # The side by side measurement says what the first ones said.
        archive.add(new, beaten=rival.candidate if rival is not None else None)
        now = next(e.speedup for e in archive if e.cell == cell)
        assert now >= before
        best_seen[cell] = now
    assert len(archive) == len(best_seen) == len({e.cell for e in archive})


@given(st.integers(), st.text(max_size=10), st.integers(0, 1 << 40))
def test_dice_give_the_same_number_for_the_same_question(seed: int, purpose: str, ordinal: int) -> None:
    roll = Dice(seed).roll(purpose, ordinal)
    assert 0.0 <= roll < 1.0
    assert roll == Dice(seed).roll(purpose, ordinal)


def test_dice_are_fair_and_independent_of_order() -> None:
    dice = Dice(7)
    rolls = [dice.roll("x", i) for i in range(4000)]
    assert 0.47 < sum(rolls) / len(rolls) < 0.53
    picks = [dice.pick("ab", (1.0, 3.0), "y", i) for i in range(4000)]
    assert 0.70 < picks.count("b") / len(picks) < 0.80


def test_an_option_without_weight_is_never_picked() -> None:
    dice = Dice(1)
    assert {dice.pick("abc", (0.0, 1.0, 0.0), "z", i) for i in range(500)} == {"b"}
    with pytest.raises(ValueError, match="nothing to pick"):
        dice.pick("ab", (0.0, 0.0), "z", 0)


def test_without_a_win_side_by_side_nothing_is_displaced_however_high_the_number() -> None:
    archive = Archive([elite(1, 1.0)])
    assert archive.add(elite(2, 9.0)).status is AddStatus.NOT_ADDED
    assert archive.add(elite(3, 9.0, (1, 0, 0))).status is AddStatus.NEW
    best = archive.best()
    assert best is not None
    assert best.ordinal == 1  # an empty cell is no proof of being the best


def test_the_champion_is_the_first_rival_and_the_cells_elite_the_next() -> None:
    archive = Archive([elite(1, 2.0), elite(2, 1.0, (1, 0, 0))], champion=CandidateId("c-1"))
    new = elite(3, 3.0, (1, 0, 0))
    first = archive.rival(new)
    assert first is not None
    assert first.ordinal == 1
    then = archive.rival(new, lost_to=first.candidate)
    assert then is not None
    assert then.ordinal == 2
    assert archive.rival(elite(4, 1.5, (2, 0, 0))) is None


def test_the_champion_is_kept_over_a_restart_and_replaced_when_it_goes() -> None:
    archive = Archive([elite(1, 5.0), elite(2, 1.0, (1, 0, 0))], champion=CandidateId("c-2"))
    best = archive.best()
    assert best is not None
    assert best.ordinal == 2
    archive.remove(best.candidate)
    best = archive.best()
    assert best is not None
    assert best.ordinal == 1


# ---- shorter kernels -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("speedup", "length", "may"),
    [(0.99, 80, True), (1.0, 81, False), (0.9, 10, False), (1.01, 0, False), (0.96, 80, False)],
)
def test_a_shorter_kernel_within_noise_is_a_rival_of_its_cells_elite(speedup: float, length: int, may: bool) -> None:
    archive = Archive([elite(1, 1.0, length=100)])
    new = elite(2, speedup, length=length)
    assert archive.may_shorten(new, CandidateId("c-1")) == may
    rival = archive.rival(new)
    assert (rival is not None) == may
    assert archive.rival(new, lost_to=CandidateId("c-1")) is None


def test_a_shorter_kernel_displaces_only_in_its_own_cell_and_whom_it_was_measured_beside() -> None:
    archive = Archive([elite(1, 1.0, length=100)])
    assert archive.rival(elite(2, 1.0, (1, 0, 0), length=10)) is None
    assert not archive.may_shorten(elite(2, 1.0, length=10), CandidateId("c-9"))
    new = elite(2, 1.0, length=10)
    assert archive.add(new, beaten=CandidateId("c-1")).status is AddStatus.IMPROVED
    assert archive.best() == new


def shortened(archive: Archive, cell: Cell, steps: int) -> int:
    """Offer ever shorter kernels, each 1 % slower than its cell's elite: within noise. How many were taken."""
    taken = 0
    for n in range(steps):
        old = next(one for one in archive if one.cell == cell)
        new = elite(100 + n, old.speedup * 0.99, cell, length=int(old.length * 0.79))
        if archive.rival(new) is not None:
            archive.add(new, beaten=old.candidate)
            taken += 1
    return taken


def test_fifty_shorter_kernels_in_a_row_never_take_the_best_below_what_was_proved() -> None:
    archive = Archive([elite(1, 2.0, length=10**9)])
    assert 0 < shortened(archive, (0, 0, 0), 50) < 5
    best = archive.best()
    assert best is not None
    assert best.speedup >= 2.0 * 0.98
    # Restored from its rows it goes on refusing: the floor is that of every champion, not of the last one.
    champions = [elite(1, 2.0, length=10**9), best]
    again = Archive(list(archive), champion=best.candidate, champions=champions)
    assert shortened(again, (0, 0, 0), 50) == 0
    assert shortened(Archive([elite(1, 2.0), elite(2, 1.0, (1, 0, 0), length=10**9)]), (1, 0, 0), 50) == 50


def test_a_faster_champion_raises_the_floor() -> None:
    archive = Archive([elite(1, 1.0, length=100)])
    archive.add(elite(2, 2.0, length=100), beaten=CandidateId("c-1"))
    assert not archive.may_shorten(elite(3, 1.95, length=10), CandidateId("c-2"))
    assert archive.may_shorten(elite(3, 1.97, length=10), CandidateId("c-2"))
