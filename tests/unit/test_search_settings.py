"""Configuration of the search: every key has an effect, none is unknown, and errors say what to do."""

from __future__ import annotations

from dataclasses import fields, is_dataclass

import pytest

from kfd.core.search.bandit import BanditPolicy
from kfd.core.search.prompt_archive import Region
from kfd.core.search.proposals import SearchPolicy
from kfd.core.search.settings import SettingsError, policy_of

SECTIONS = ("parents", "gradient", "hints", "operators", "prompts", "plateau", "bandit", "sweep")


def keys() -> list[tuple[str, str]]:
    """Every (section, key) that there is."""
    found = []
    for section in SECTIONS:
        policy = BanditPolicy() if section == "bandit" else getattr(SearchPolicy(), section)
        assert is_dataclass(policy)
        found += [(section, one.name) for one in fields(policy)]
    return found


def other(value: object) -> object:
    """A valid value that differs."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value - 1 if value > 1 else value + 1
    if isinstance(value, float):
        return value / 2 + 0.125 if value < 2 else value + 1
    return "someone" if isinstance(value, str) else ["analysis"]


@pytest.mark.parametrize(("section", "key"), keys())
def test_every_key_changes_its_value_and_nothing_else(section: str, key: str) -> None:
    base = getattr(SearchPolicy(), section) or BanditPolicy()
    wanted = other(getattr(base, key))
    policy = policy_of({section: {key: wanted}})
    changed = getattr(policy, section)
    expected = (Region.ANALYSIS,) if key == "pinned" else wanted
    assert getattr(changed, key) == expected
    for one in fields(base):
        if one.name != key:
            assert getattr(changed, one.name) == getattr(base, one.name)


def test_nothing_given_is_the_defaults_and_the_bandit_can_be_switched() -> None:
    assert policy_of({}) == SearchPolicy()
    assert policy_of({"bandit": {}}).bandit == BanditPolicy()
    assert policy_of({"bandit": None}).bandit is None


def test_models_and_inspirations() -> None:
    policy = policy_of({"models": {"large": 3, "small": 0.5}, "inspirations": 4})
    assert policy.models == (("large", 3.0), ("small", 0.5))
    assert policy.inspirations == 4


def test_plain_sampling_is_one_key_and_stands_beside_models_and_plateaus() -> None:
    assert not policy_of({}).best_of_n
    policy = policy_of({"best_of_n": True, "models": {"a": 1}, "plateau": {"patience": 9, "stop": True}})
    assert policy.best_of_n
    assert policy.plateau.patience == 9
    assert not policy_of({"best_of_n": False, "hints": {"limit": 2}}).best_of_n


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"parent": {}}, r"search\.parent; did you mean parents"),
        ({"patch": 0.0}, r"search\.patch; did you mean search\.operators\.patch"),
        ({"parents": {"curiousity": 1}}, r"search\.parents\.curiousity; did you mean curiosity"),
        ({"parents": {"zzz": 1}}, "there are uniform"),
        ({"parents": 3}, "section of keys"),
        ({"parents": {"uniform": "much"}}, r"search\.parents\.uniform is a number"),
        ({"parents": {"uniform": True}}, "is a number"),
        ({"parents": {"uniform": float("nan")}}, "is a number"),
        ({"parents": {"islands": 2.5}}, "whole number"),
        ({"parents": {"uniform": 1e-300}}, r"search\.parents\.uniform is 0 or of a size from 1e-09 to 1e\+09"),
        ({"bandit": {"evaluation_cost": 1.7e308}}, r"search\.bandit\.evaluation_cost is 0 or of a size"),
        ({"models": {"a": 5e-324, "b": 1e308}}, r"search\.models\.a is 0 or of a size"),
        ({"parents": {"uniform": -1}}, r"search\.parents: shares"),
        ({"plateau": {"stop": 1}}, "true or false"),
        ({"prompts": {"pinned": ["everything"]}}, "list of philosophy"),
        ({"prompts": {"model": 3}}, r"search\.prompts\.model is a name"),
        ({"prompts": {"model": "m" * 101}}, r"search\.prompts\.model is a name"),
        (
            {"prompts": {"period": 1, "pinned": ["philosophy", "strategies", "pitfalls", "analysis"]}},
            "leave one to change",
        ),
        ({"prompts": {"mutations": 4}}, r"search\.prompts: .*1 to 3"),
        ({"models": {}}, "1 to 32"),
        ({"models": {"a": 0}}, "leave out"),
        ({"inspirations": 99}, "0 to 16"),
        ({"best_of_n": 1}, r"search\.best_of_n is true or false"),
        ({"best_of": True}, "did you mean best_of_n"),
        ({"best_of_n": True, "hints": {"limit": 2}}, r"search\.hints does nothing beside search\.best_of_n; remove"),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_path(given: dict[str, object], text: str) -> None:
    with pytest.raises(SettingsError, match=text):
        policy_of(given)
