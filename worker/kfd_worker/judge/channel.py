"""The judge's line to the launcher: length-prefixed JSON, descriptors beside it. Blocking."""

from __future__ import annotations

import json
import socket
import struct
from typing import Any

__all__ = ["LENGTH", "MAX_MESSAGE", "receive", "send"]

LENGTH = struct.Struct("<I")
MAX_MESSAGE = 16 << 20
_MAX_FDS = 8


def send(channel: socket.socket, message: dict[str, Any], fds: tuple[int, ...] = ()) -> None:
    """Send one message. Raises OSError when the other side is gone, ValueError when it is too long."""
    body = json.dumps(message, allow_nan=False).encode()
    if len(body) > MAX_MESSAGE:
        raise ValueError(f"a message of {len(body)} bytes; {MAX_MESSAGE} are allowed")
    header = LENGTH.pack(len(body))
    if fds:
        socket.send_fds(channel, [header], list(fds))
        channel.sendall(body)
    else:
        channel.sendall(header + body)


def receive(channel: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """The next message and its descriptors; None when the other side has hung up between messages."""
    header, fds, _, _ = socket.recv_fds(channel, LENGTH.size, _MAX_FDS)
    if not header:
        return None
    header += _exactly(channel, LENGTH.size - len(header))
    (length,) = LENGTH.unpack(header)
    if length > MAX_MESSAGE:
        raise ValueError(f"a message of {length} bytes; {MAX_MESSAGE} are allowed")
    message = json.loads(_exactly(channel, length))
    if not isinstance(message, dict):
        raise ValueError("a message must be an object")  # noqa: TRY004 - bad data, not a bad call
    return message, list(fds)


def _exactly(channel: socket.socket, length: int) -> bytes:
    parts = bytearray()
    while len(parts) < length:
        piece = channel.recv(min(length - len(parts), 1 << 20))
        if not piece:
            raise EOFError("the other side hung up in the middle of a message")
        parts += piece
    return bytes(parts)
