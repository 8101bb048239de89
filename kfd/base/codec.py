"""Frozen dataclasses to JSON-able values and back, by their type hints.

For values that are stored or cross a local socket. Understands dataclasses, enums, Digest, bytes (hex), tuples,
optionals and unions of dataclasses (told apart by class name under ``@``). Decoding checks types and raises
ValueError: what is read back may be damaged.
"""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, TypeVar, cast

from kfd.base.digest import Digest

__all__ = ["decode", "encode"]

T = TypeVar("T")


def encode(value: object) -> Any:
    """JSON-able form of a value. Non-finite floats become strings, so that the text is valid JSON everywhere."""
    kind = type(value)
    encoder = _ENCODERS.get(kind)
    if encoder is None:
        encoder = _ENCODERS[kind] = _encoder(kind)
    return encoder(value)


_ENCODERS: dict[type, Callable[[Any], Any]] = {}
"""How values of a type are encoded: decided once, since reports are encoded all the time."""


def _encoder(kind: type) -> Callable[[Any], Any]:
    if issubclass(kind, Enum):
        return _enum_value
    if kind in (type(None), bool, int, str):
        return _itself
    if issubclass(kind, float):
        return _encode_float
    if issubclass(kind, bytes):
        return bytes.hex
    if issubclass(kind, Digest):
        return str
    if issubclass(kind, tuple | list):
        return _encode_items
    if is_dataclass(kind):
        name, names = kind.__name__, _names(kind)

        def encode_dataclass(value: Any) -> dict[str, Any]:
            body: dict[str, Any] = {"@": name}
            for field_name in names:
                item = getattr(value, field_name)
                body[field_name] = encode(item)
            return body

        return encode_dataclass
    raise TypeError(f"cannot encode a {kind.__name__}")


def _itself(value: Any) -> Any:
    return value


def _enum_value(value: Enum) -> Any:
    return value.value


def _encode_float(value: float) -> float | str:
    return value if math.isfinite(value) else repr(value)


def _encode_items(value: tuple[Any, ...] | list[Any]) -> list[Any]:
    return [encode(item) for item in value]


def decode(kind: type[T], data: Any) -> T:
    """Read what ``encode`` wrote as a ``kind``. Raises ValueError for anything else."""
    try:
        return cast(T, _decode(kind, data))
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"not a {kind.__name__}: {error}") from error


@cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


@cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _decode(hint: Any, data: Any) -> Any:  # noqa: C901 - one branch a kind of type
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return _decode_union(typing.get_args(hint), data)
    if origin is tuple:
        if not isinstance(data, list):
            raise ValueError(f"expected a list, got {type(data).__name__}")
        args = typing.get_args(hint)
        if len(args) == 2 and args[1] is Ellipsis:
            return tuple(_decode(args[0], item) for item in data)
        return tuple(_decode(arg, item) for arg, item in zip(args, data, strict=True))
    if hint is float:
        if isinstance(data, str) and data in ("nan", "inf", "-inf"):
            return float(data)
        if isinstance(data, bool) or not isinstance(data, int | float):
            raise ValueError(f"expected a number, got {data!r:.80}")
        return float(data)
    if hint is bytes:
        return bytes.fromhex(data)
    if hint is Digest:
        return Digest.parse(data)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint(data)
    if isinstance(hint, type) and is_dataclass(hint):
        return _decode_dataclass(hint, data)
    kind = getattr(hint, "__supertype__", hint)  # NewType
    if kind in (str, int, bool):
        if not isinstance(data, kind) or (kind is int and isinstance(data, bool)):
            raise ValueError(f"expected a {kind.__name__}, got {data!r:.80}")
        return data
    raise TypeError(f"cannot decode a {hint}")


def _decode_dataclass(kind: type, data: Any) -> Any:
    if not isinstance(data, dict) or data.get("@") != kind.__name__:
        raise ValueError(f"expected a {kind.__name__}")
    hints = _hints(kind)
    unknown = set(data) - set(hints) - {"@"}
    if unknown:
        raise ValueError(f"{kind.__name__} has no {sorted(unknown)[0]!r}")
    return kind(**{name: _decode(hints[name], item) for name, item in data.items() if name != "@"})


def _decode_union(options: tuple[Any, ...], data: Any) -> Any:
    if data is None:
        if type(None) in options:
            return None
        raise ValueError("a value is missing")
    options = tuple(option for option in options if option is not type(None))
    if isinstance(data, dict) and "@" in data:
        for option in options:
            if isinstance(option, type) and option.__name__ == data["@"]:
                return _decode(option, data)
        raise ValueError(f"no such kind here: {data['@']!r:.80}")
    if len(options) != 1:
        raise ValueError("cannot tell which kind of value this is")
    return _decode(options[0], data)
