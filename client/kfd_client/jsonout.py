"""From messages to JSON: every field by its name in the contract, numbers as numbers."""

from __future__ import annotations

import json
import math
from typing import Any

from google.protobuf.message import Message

__all__ = ["json_line", "to_json"]


def to_json(message: Message) -> dict[str, Any]:
    """A message as plain values; absent messages are null. An event's body becomes the object that it is."""
    plain: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if field.is_repeated:
            plain[field.name] = [to_json(item) if isinstance(item, Message) else item for item in value]
        elif isinstance(value, Message):
            plain[field.name] = to_json(value) if message.HasField(field.name) else None
        else:
            # JSON has no word for infinity or NaN.
            plain[field.name] = None if isinstance(value, float) and not math.isfinite(value) else value
    if message.DESCRIPTOR.name == "Event":
        plain["body"] = _body(plain["body"])
    return plain


def _body(text: str) -> Any:
    try:
        return json.loads(text) if text else {}
    except ValueError:
        return text


def json_line(value: Message | dict[str, Any]) -> str:
    """One line of ASCII: nothing in it can reach a terminal as a control character."""
    plain = to_json(value) if isinstance(value, Message) else value
    return json.dumps(plain, ensure_ascii=True, allow_nan=False)
