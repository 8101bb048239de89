"""The configuration's document, made from the models so that it cannot differ from them."""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
import typing
from dataclasses import fields, is_dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from kfd.core.search.bandit import BanditPolicy
from kfd.daemon.config import SEARCH, Config

__all__ = ["document"]

_HEAD = """# Configuration of the daemon

`kfd serve --config FILE` reads TOML. Unknown keys are refused with the nearest known one. This page is made from the
configuration's models (`python -m kfd.daemon.configdoc > docs/configuration.md`; a test keeps it fresh).
"""

_TABLE = ("| key | type | default | meaning |", "| --- | --- | --- | --- |")

_SEARCH_INTRO = (
    "What is asked next, and of whom. Defaults and their reasons: `docs/search.md`. Sections are switched on by being\n"
    "there: `[campaign.search.bandit]` alone gives the bandit with its defaults."
)
_MODELS = "Models to ask and their shares, unless a campaign names its own: `models = { large = 3, small = 1 }`."


def document() -> str:
    """The whole page as Markdown."""
    lines = [_HEAD]
    _section(lines, Config, "")
    return "\n".join(lines).rstrip() + "\n"


def _section(lines: list[str], model: type[BaseModel], name: str) -> None:
    plain: list[tuple[str, FieldInfo]] = []
    nested: list[tuple[str, type[BaseModel], bool]] = []
    for key, field in model.model_fields.items():
        if (name, key) == ("campaign", "search"):
            continue
        inner, is_list = _model_of(field.annotation)
        if inner is None:
            plain.append((key, field))
        else:
            nested.append((f"{name}.{key}" if name else key, inner, is_list))
    if plain:
        lines += [f"## `[{name}]`", "", (model.__doc__ or "").strip().partition("\n")[0], ""]
        lines += _TABLE
        lines += [_row(key, field) for key, field in plain]
        lines.append("")
    if name == "campaign":
        _search(lines)
    for path, inner, is_list in nested:
        _section(lines, inner, f"[{path}]" if is_list else path)


def _search(lines: list[str]) -> None:
    """``[campaign.search]``: the policies of the core with what their fields say of themselves."""
    lines += ["## `[campaign.search]`", "", _SEARCH_INTRO, "", *_TABLE]
    meanings = _meanings(type(SEARCH))
    lines += [_policy_row(key, getattr(SEARCH, key), meanings[key]) for key in ("inspirations", "axes", "best_of_n")]
    lines += [f"| `models` | names and shares | all models by their weight | {_MODELS} |", ""]
    for name in ("parents", "operators", "sweep", "hints", "gradient", "bandit", "prompts", "plateau"):
        policy = getattr(SEARCH, name) or BanditPolicy()
        _policy(lines, f"campaign.search.{name}", policy)


def _policy(lines: list[str], name: str, policy: object) -> None:
    if not is_dataclass(policy):
        raise TypeError(f"{name} is no section")
    lines += [f"## `[{name}]`", "", (type(policy).__doc__ or "").strip().partition("\n")[0], "", *_TABLE]
    meanings = _meanings(type(policy))
    lines += [_policy_row(one.name, getattr(policy, one.name), meanings[one.name]) for one in fields(policy)]
    lines.append("")


def _policy_row(key: str, default: object, meaning: str) -> str:
    text = " ".join(meaning.replace("``", "`").split())
    return f"| `{key}` | {_type(type(default))} | `{_shown(default)}` | {text} |"


def _meanings(policy: type) -> dict[str, str]:
    """What stands below each field of a class. A field that says nothing is missing, and so an error above."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(policy))).body
    body = tree.body if isinstance(tree, ast.ClassDef) else []
    found: dict[str, str] = {}
    for field, text in pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr):
            found[field.target.id] = str(ast.literal_eval(text.value))
    return found


def _model_of(annotation: Any) -> tuple[type[BaseModel] | None, bool]:
    for candidate in (annotation, *typing.get_args(annotation)):
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return candidate, candidate is not annotation
    return None, False


def _row(key: str, field: FieldInfo) -> str:
    default = "required" if field.is_required() else f"`{_shown(field.get_default(call_default_factory=True))}`"
    meaning = " ".join((field.description or "").replace("``", "`").split())
    return f"| `{key}` | {_type(field.annotation)} | {default} | {meaning} |"


def _shown(value: Any) -> str:
    if value is None:
        return "unset"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return str(list(value))
    return f'"{value}"' if isinstance(value, str) else str(value)


def _type(annotation: Any) -> str:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Literal:
        return " or ".join(f"`{argument}`" for argument in arguments)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_type(argument) for argument in arguments if argument is not type(None))
    if origin is not None:
        return f"list of {_type(arguments[0])}" if arguments else str(origin)
    names = {tuple: "list of names", str: "text", int: "integer", float: "number", bool: "yes or no", Path: "path"}
    return names.get(annotation, getattr(annotation, "__name__", str(annotation)))


if __name__ == "__main__":
    print(document(), end="")
