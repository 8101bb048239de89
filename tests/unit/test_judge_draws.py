"""Laws of the judge's answers to random draws: the asked-for distribution, never twice, nothing else changed."""

from __future__ import annotations

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from kfd_worker.judge.draws import FAMILIES, Draws, Family, Pools  # noqa: E402

COUNT = 200_000


def served(seed: int = 1) -> Draws:
    return Draws(Pools(seed).fill)


def generator(seed: int = 0) -> Any:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("count", [5000, COUNT, (1 << 20) + 17])
def test_pool_normals_have_mean_0_deviation_1_and_normal_tails(count: int) -> None:
    with served():
        made = torch.randn(count, generator=generator())
    assert abs(float(made.mean())) < 6 / math.sqrt(count) * 2
    assert abs(float(made.std()) - 1) < 0.05
    beyond = float((made.abs() > 2).float().mean())
    assert 0.5 * 0.0455 < beyond < 1.5 * 0.0455


def test_pool_uniforms_fill_the_unit_interval_evenly() -> None:
    with served():
        made = torch.rand(COUNT, generator=generator())
    assert float(made.min()) >= 0
    assert float(made.max()) < 1
    counts = torch.histc(made, 20, 0, 1)
    assert float((counts / COUNT - 0.05).abs().max()) < 0.01


def test_two_draws_share_no_stretch_and_no_value_by_place() -> None:
    draws = served()
    with draws:
        first = torch.randn(COUNT, generator=generator())
        second = torch.randn(COUNT, generator=generator())
    assert float((first == second).float().mean()) < 0.001
    correlation = float(torch.corrcoef(torch.stack([first, second]))[0, 1])
    assert abs(correlation) < 0.02
    # A shifted copy would be found by the first value of the one in the other.
    for value in first[:20]:
        at = (second == value).nonzero().flatten()
        assert not any(torch.equal(second[i : i + 8], first[:8]) for i in at.tolist())


def test_the_same_secret_gives_the_same_draws_and_another_secret_others() -> None:
    made = []
    for seed in (1, 1, 2):
        with served(seed):
            made.append(torch.randn(COUNT, generator=generator()))
    assert torch.equal(made[0], made[1])
    assert not torch.equal(made[0], made[2])


def test_every_way_to_draw_is_answered_with_its_own_scale() -> None:
    draws = served()
    with draws:
        ways = [
            torch.randn(100, 100, generator=generator()),
            torch.randn((100, 100), generator=generator()),
            torch.randn(size=(100, 100)),
            torch.normal(0.0, 1.0, (100, 100), generator=generator()),
            torch.empty(100, 100).normal_(generator=generator()),
            torch.randn_like(torch.empty(100, 100)),
        ]
        shifted = torch.normal(5.0, 0.5, (100, 100), generator=generator())
        spread = torch.empty(100, 100).uniform_(-3.0, 7.0, generator=generator())
    for one in ways:
        assert one.shape == (100, 100)
        assert abs(float(one.std()) - 1) < 0.1
    assert abs(float(shifted.mean()) - 5) < 0.1
    assert abs(float(shifted.std()) - 0.5) < 0.05
    assert float(spread.min()) >= -3
    assert float(spread.max()) <= 7
    assert abs(float(spread.mean()) - 2) < 0.3


def test_small_draws_and_other_types_come_from_the_tasks_own_generator() -> None:
    expected = [
        torch.randn(7, generator=generator(3)),
        torch.randn(5000, generator=generator(3), dtype=torch.float64),
        torch.randint(0, 9, (5000,), generator=generator(3)),
    ]
    with served():
        made = [
            torch.randn(7, generator=generator(3)),
            torch.randn(5000, generator=generator(3), dtype=torch.float64),
            torch.randint(0, 9, (5000,), generator=generator(3)),
        ]
    assert all(map(torch.equal, made, expected))


@pytest.mark.parametrize("name", list(FAMILIES))
def test_families_answer_normal_and_uniform_draws_within_their_domain(name: str) -> None:
    family = Family(name, 5)
    with Draws(family.fill, least=1):
        normal, uniform = torch.randn(3000, generator=generator()), torch.rand(3000, generator=generator())
    assert family.served == 2
    assert bool(torch.isfinite(normal).all())
    # What asked for [0, 1) gets nothing else: a logarithm or an arc cosine behind it stays defined.
    assert float(uniform.min()) >= 0
    assert float(uniform.max()) < 1


def test_families_differ_as_their_names_say() -> None:
    made = {}
    for name in FAMILIES:
        with Draws(Family(name, 5).fill, least=1):
            made[name] = torch.randn(5000, generator=generator())
    assert float(made["uniform"].abs().max()) <= 1
    assert float(made["large"].abs().max()) > 1e4
    assert float(made["heavy tail"].abs().max()) > 20 * float(made["heavy tail"].abs().median())
    assert set(made["integers"].tolist()) == {-2.0, -1.0, 0.0, 1.0, 2.0}
    ties = made["ties"]
    assert int((ties == ties.max()).sum()) > 500
    assert bool(((ties != 0) & (ties.abs() < 1e-38)).any())
