"""The search's policy from a configuration: plain nested mappings, checked key by key.

``{"parents": {"curiosity": 0.5}, "bandit": {}, "models": {"large": 3, "small": 1}}``. A section that is not given keeps
its defaults; ``bandit: {}`` switches the bandit on with its defaults and ``bandit: null`` off. Every error names the
key's full path and what may stand there.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from kfd.core.search.axes import ExtraAxis
from kfd.core.search.bandit import BanditPolicy
from kfd.core.search.prompt_archive import Region
from kfd.core.search.proposals import SearchPolicy

__all__ = ["SettingsError", "policy_of"]

MAX_MODELS = 32
MAX_NAME = 100
LEAST_NUMBER, MOST_NUMBER = 1e-9, 1e9
"""Sizes of a number that is not 0: products and powers of a few of them neither vanish nor overflow."""

_BESIDE_BEST_OF_N = ("axes", "best_of_n", "models", "plateau")
"""What still means something when every question is the same."""

P = TypeVar("P")


class SettingsError(ValueError):
    """A key or value that cannot be used."""


def policy_of(given: Mapping[str, object], defaults: SearchPolicy | None = None) -> SearchPolicy:
    """The policy that a ``search`` section asks for. Raises SettingsError."""
    base = defaults if defaults is not None else SearchPolicy()
    known = [one.name for one in fields(SearchPolicy)]
    made: dict[str, Any] = {}
    for key, value in given.items():
        _check_known(key, known, "search", _sections_of(key, base))
        path = f"search.{key}"
        if key == "models":
            made[key] = _models(value)
        elif key == "axes":
            made[key] = _axes(path, value)
        elif key == "inspirations":
            made[key] = _whole_number(path, value)
        elif key == "best_of_n":
            made[key] = _value(path, value, base.best_of_n)
        elif key == "bandit":
            made[key] = None if value is None else _section(path, value, base.bandit or BanditPolicy())
        else:
            made[key] = _section(path, value, getattr(base, key))
    policy = _built("search", lambda: replace(base, **made))
    useless = [key for key in given if key not in _BESIDE_BEST_OF_N]
    if policy.best_of_n and useless:
        raise SettingsError(f"search.{useless[0]} does nothing beside search.best_of_n; remove one of them")
    return policy


def _sections_of(key: object, policy: SearchPolicy) -> list[str]:
    """Sections that have such a key, for one that was put beside them."""
    sections = [(one.name, getattr(policy, one.name) or BanditPolicy()) for one in fields(policy)]
    return [
        name for name, section in sections if is_dataclass(section) and key in {one.name for one in fields(section)}
    ]


def _check_known(key: object, known: list[str], where: str, sections: Sequence[str] = ()) -> None:
    if key in known:
        return
    if sections:
        raise SettingsError(f"unknown key {where}.{key}; did you mean {where}.{sections[0]}.{key}?")
    near = difflib.get_close_matches(str(key)[:80], known, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}."
    raise SettingsError(f"unknown key {where}.{str(key)[:80]}; {hint}")


def _section(path: str, given: object, default: P) -> P:
    """A frozen dataclass with some of its fields changed."""
    if not isinstance(given, Mapping):
        raise SettingsError(f"{path} is a section of keys and values, not {_shown(given)}")
    found = {one.name: one for one in fields(default)}  # type: ignore[arg-type]  # only policies come here
    made: dict[str, Any] = {}
    for key, value in given.items():
        _check_known(key, list(found), path)
        made[key] = _value(f"{path}.{key}", value, getattr(default, key))
    return _built(path, lambda: replace(default, **made))  # type: ignore[type-var]  # only policies come here


def _value(path: str, value: object, default: object) -> object:
    """A value of the default's kind."""
    if isinstance(default, bool):
        if not isinstance(value, bool):
            raise SettingsError(f"{path} is true or false, not {_shown(value)}")
        return value
    if isinstance(default, int):
        return _whole_number(path, value)
    if isinstance(default, float):
        return _number(path, value)
    if isinstance(default, str):
        return _name(path, value)
    return _regions(path, value)


def _whole_number(path: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > 1_000_000_000:
        raise SettingsError(f"{path} is a whole number, not {_shown(value)}")
    return value


def _number(path: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise SettingsError(f"{path} is a number, not {_shown(value)}")
    if value and not LEAST_NUMBER <= abs(value) <= MOST_NUMBER:
        raise SettingsError(f"{path} is 0 or of a size from {LEAST_NUMBER:g} to {MOST_NUMBER:g}, not {_shown(value)}")
    return float(value)


def _name(path: str, value: object) -> str:
    if not isinstance(value, str) or len(value) > MAX_NAME:
        raise SettingsError(f"{path} is a name of at most {MAX_NAME} characters, not {_shown(value)}")
    return value


def _regions(path: str, value: object) -> tuple[Region, ...]:
    """``prompts.pinned``: a list of regions."""
    names = [region.value for region in Region]
    if not isinstance(value, list | tuple) or not all(item in names for item in value):
        raise SettingsError(f"{path} is a list of {', '.join(names)}, not {_shown(value)}")
    return tuple(region for region in Region if region.value in value)


def _axes(path: str, value: object) -> tuple[ExtraAxis, ...]:
    """``search.axes``: a list of further axes, each once."""
    known = {axis.value: axis for axis in ExtraAxis}
    given = value if isinstance(value, list | tuple) else ()
    found = tuple(known[item] for item in given if isinstance(item, str) and item in known)
    if not isinstance(value, list | tuple) or len(found) != len(given) or len(set(found)) != len(found):
        raise SettingsError(f"{path} is a list of {', '.join(known)}, each at most once, not {_shown(value)}")
    return found


def _models(value: object) -> tuple[tuple[str, float], ...]:
    if not isinstance(value, Mapping) or not 1 <= len(value) <= MAX_MODELS:
        raise SettingsError(f"search.models maps 1 to {MAX_MODELS} model names to shares, not {_shown(value)}")
    return tuple((str(name), _number(f"search.models.{str(name)[:80]}", share)) for name, share in value.items())


def _built(path: str, make: Callable[[], P]) -> P:
    """What ``make`` makes; a policy's own complaint gets its path."""
    try:
        return make()
    except SettingsError:
        raise
    except ValueError as error:
        raise SettingsError(f"{path}: {error}") from None


def _shown(value: object) -> str:
    return repr(value)[:80]
