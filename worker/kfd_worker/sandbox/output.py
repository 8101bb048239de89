"""Keeping the head and the tail of an endless stream, and making it fit for people."""

from __future__ import annotations

import re

__all__ = ["HeadTail", "readable"]


class HeadTail:
    """Keeps at most ``limit`` bytes of what is fed: the first half and the last half."""

    def __init__(self, limit: int) -> None:
        self._head_limit = limit - limit // 2
        self._tail_limit = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0
        """Bytes fed so far."""

    def feed(self, data: bytes) -> None:
        """Take some bytes; memory stays below twice the limit whatever comes."""
        self.total += len(data)
        room = self._head_limit - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if data and self._tail_limit:
            self._tail += data[-self._tail_limit :]
            if len(self._tail) > 2 * self._tail_limit:
                del self._tail[: -self._tail_limit]

    @property
    def dropped(self) -> int:
        """Bytes that were fed and are not kept."""
        return self.total - len(self._head) - min(len(self._tail), self._tail_limit)

    def value(self) -> bytes:
        """What is kept, with a line in between that says how much is missing."""
        tail = bytes(self._tail[-self._tail_limit :]) if self._tail_limit else b""
        if not self.dropped:
            return bytes(self._head) + tail
        return bytes(self._head) + f"\n[... {self.dropped} bytes dropped ...]\n".encode() + tail


# Escape sequences a terminal would obey (CSI, OSC and two-character forms).
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_CONTROL = {code: None for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"}
# Characters that reorder or hide text on a screen.
_CONTROL.update(dict.fromkeys([*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0xFEFF]))


def readable(data: bytes, limit: int = 64 << 10, line: int = 1000) -> str:
    """Text of untrusted bytes: valid UTF-8, no control or escape characters, long lines cut, bounded."""
    text = _ESCAPES.sub("", data[: 4 * limit].decode("utf-8", "replace")).translate(_CONTROL)
    lines = (one if len(one) <= line else f"{one[:line]} [... line cut ...]" for one in text.split("\n"))
    return "\n".join(lines)[:limit]
