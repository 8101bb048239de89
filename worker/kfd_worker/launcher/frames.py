"""Length-prefixed JSON over a stream socket, for asyncio. Bounded in both directions."""

from __future__ import annotations

import asyncio
import json
import struct
from typing import Any

__all__ = ["MAX_FRAME", "read_frame", "write_frame"]

MAX_FRAME = 16 << 20
_LENGTH = struct.Struct("<I")


async def read_frame(reader: asyncio.StreamReader) -> dict[str, Any] | None:
    """The next frame; None when the other side is gone, in whatever way. Raises ValueError for a bad frame."""
    try:
        (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
        if length > MAX_FRAME:
            raise ValueError(f"a frame of {length} bytes; {MAX_FRAME} are allowed")
        frame = json.loads(await reader.readexactly(length))
    except (asyncio.IncompleteReadError, OSError):
        return None
    if not isinstance(frame, dict):
        raise ValueError("a frame must be an object")  # noqa: TRY004 - bad data, not a bad call
    return frame


def write_frame(writer: asyncio.StreamWriter, frame: dict[str, Any]) -> None:
    """Queue a frame. Raises ValueError when it is too long; a gone peer is noticed by reading."""
    body = json.dumps(frame, allow_nan=False).encode()
    if len(body) > MAX_FRAME:
        raise ValueError(f"a frame of {len(body)} bytes; {MAX_FRAME} are allowed")
    if not writer.is_closing():
        writer.write(_LENGTH.pack(len(body)) + body)
