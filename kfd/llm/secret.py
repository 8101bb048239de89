"""Keys: read once, never shown."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from kfd.base.failure import CallerError

__all__ = ["Secret", "mask", "read_key"]

_MAX_KEY_BYTES = 16 << 10
_LOOKS_LIKE_KEY = re.compile(
    r"\b(?:sk|pk|rk|key|xai|gsk|hf|nvapi)[-_][A-Za-z0-9_-]{8,}|(?i:bearer)\s+[A-Za-z0-9._~+/=-]{8,}"
)


class Secret:
    """A text that shows itself only when asked to."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The text, for the one place that sends it."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(***)"

    __str__ = __repr__

    def __reduce__(self) -> str:
        raise TypeError("a secret is not pickled")


def read_key(name: str, key_file: Path | None, key_env: str | None, environment: Mapping[str, str]) -> Secret | None:
    """Key of model ``name``. Raises CallerError when it is configured but cannot be had, before anything is
    asked."""
    if key_env is not None:
        value = environment.get(key_env, "").strip()
        if not value:
            raise CallerError(
                f"model {name}: the environment variable {key_env} is not set", mend=f"Set {key_env} and start again."
            )
        return Secret(value)
    if key_file is None:
        return None
    try:
        if os.stat(key_file).st_mode & 0o077:
            raise CallerError(
                f"model {name}: {key_file} can be read by others", mend=f"Type `chmod 600 {key_file}` and start again."
            )
        with open(key_file, encoding="utf-8") as file:
            value = file.read(_MAX_KEY_BYTES).strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise CallerError(
            f"model {name}: the key file {key_file} cannot be read: {reason}", mend="Correct key_file and start again."
        ) from None
    if not value or "\n" in value:
        raise CallerError(f"model {name}: {key_file} does not hold one key", mend="Put the key alone into the file.")
    return Secret(value)


def mask(text: str, secrets: tuple[Secret, ...] = (), cap: int = 500) -> str:
    """Text of an error without secrets, control characters and length."""
    for secret in secrets:
        if secret.reveal():
            text = text.replace(secret.reveal(), "***")
    text = _LOOKS_LIKE_KEY.sub("***", text[: cap * 4])
    text = "".join(letter if letter.isprintable() else " " for letter in text)
    return text if len(text) <= cap else f"{text[:cap]}..."
