"""The configuration's document, made from the models so that it cannot differ from them."""

from __future__ import annotations

import types
import typing
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from kfd.daemon.config import Config

__all__ = ["document"]

_HEAD = """# Configuration of the daemon

`kfd serve --config FILE` reads TOML. Unknown keys are refused with the nearest known one. This page is made from the
configuration's models (`python -m kfd.daemon.configdoc > docs/configuration.md`; a test keeps it fresh).
"""


def document() -> str:
    """The whole page as Markdown."""
    lines = [_HEAD]
    _section(lines, Config, "")
    return "\n".join(lines).rstrip() + "\n"


def _section(lines: list[str], model: type[BaseModel], name: str) -> None:
    plain: list[tuple[str, FieldInfo]] = []
    nested: list[tuple[str, type[BaseModel], bool]] = []
    for key, field in model.model_fields.items():
        inner, is_list = _model_of(field.annotation)
        if inner is None:
            plain.append((key, field))
        else:
            nested.append((f"{name}.{key}" if name else key, inner, is_list))
    if plain:
        lines += [f"## `[{name}]`", "", (model.__doc__ or "").strip().partition("\n")[0], ""]
        lines += ["| key | type | default | meaning |", "| --- | --- | --- | --- |"]
        lines += [_row(key, field) for key, field in plain]
        lines.append("")
    for path, inner, is_list in nested:
        _section(lines, inner, f"[{path}]" if is_list else path)


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
    return f'"{value}"' if isinstance(value, str) else str(value)


def _type(annotation: Any) -> str:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Literal:
        return " or ".join(f"`{argument}`" for argument in arguments)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_type(argument) for argument in arguments if argument is not type(None))
    if origin is not None:
        return f"list of {_type(arguments[0])}" if arguments else str(origin)
    names = {str: "text", int: "integer", float: "number", bool: "yes or no", Path: "path"}
    return names.get(annotation, getattr(annotation, "__name__", str(annotation)))


if __name__ == "__main__":
    print(document(), end="")
