"""Calls to the daemon: a deadline on each, the token with each, and errors that say what to do."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import grpc

from kfd.api.v1 import admin_pb2_grpc, blob_pb2_grpc, control_pb2_grpc
from kfd.base.plain import plain_line
from kfd_client.exits import Exit, Failure
from kfd_client.settings import find_daemon

__all__ = ["Session", "failure_of", "is_lost", "is_timeout"]

_Answer = TypeVar("_Answer")

_CLOSE_S = 1.0

_OPTIONS = (
    ("grpc.max_receive_message_length", 32 << 20),
    ("grpc.max_send_message_length", 4 << 20),
    ("grpc.enable_http_proxy", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2000),
)

_CODES: Mapping[grpc.StatusCode, Exit] = {
    grpc.StatusCode.UNAVAILABLE: Exit.UNREACHABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED: Exit.UNREACHABLE,
    grpc.StatusCode.UNAUTHENTICATED: Exit.NOT_ALLOWED,
    grpc.StatusCode.PERMISSION_DENIED: Exit.NOT_ALLOWED,
    grpc.StatusCode.NOT_FOUND: Exit.NOT_FOUND,
    grpc.StatusCode.INVALID_ARGUMENT: Exit.USAGE,
    grpc.StatusCode.OUT_OF_RANGE: Exit.USAGE,
    grpc.StatusCode.FAILED_PRECONDITION: Exit.WRONG_STATE,
    grpc.StatusCode.ABORTED: Exit.WRONG_STATE,
    grpc.StatusCode.ALREADY_EXISTS: Exit.WRONG_STATE,
    grpc.StatusCode.RESOURCE_EXHAUSTED: Exit.BUDGET,
}


class Session:
    """A channel and its stubs."""

    def __init__(self, address: str, token_file: str, timeout_s: float) -> None:
        place = find_daemon(address, token_file, os.environ)
        self.address = place.address
        self.timeout_s = timeout_s
        self._metadata = (("authorization", f"Bearer {place.token}"),) if place.token else ()
        self._channel = grpc.insecure_channel(place.address, options=_OPTIONS)
        self.control = control_pb2_grpc.ControlServiceStub(self._channel)
        self.blobs = blob_pb2_grpc.BlobServiceStub(self._channel)
        self.admin = admin_pb2_grpc.AdminServiceStub(self._channel)

    def close(self) -> None:
        """Close the channel, without waiting for long.

        gRPC waits for calls that Ctrl-C has torn out of its hands, and for those it waits forever.
        """
        closing = threading.Thread(target=self._channel.close, daemon=True, name="kfd close")
        closing.start()
        closing.join(_CLOSE_S)

    def call(self, method: Callable[..., _Answer], request: Any, timeout_s: float | None = None) -> _Answer:
        """One unary call. Raises Failure."""
        try:
            return method(request, timeout=timeout_s or self.timeout_s, metadata=self._metadata)
        except grpc.RpcError as error:
            raise failure_of(error, self.address, timeout_s or self.timeout_s) from None

    def raw(self, method: Callable[..., _Answer], request: Any, timeout_s: float) -> _Answer:
        """One call whose errors the caller reads itself. Raises grpc.RpcError."""
        return method(request, timeout=timeout_s, metadata=self._metadata)

    def stream(self, method: Callable[..., Any], request: Any, timeout_s: float) -> Iterator[Any]:
        """One streaming call, which lasts ``timeout_s`` at most. Raises grpc.RpcError while it is read."""
        answers: Iterator[Any] = method(request, timeout=timeout_s, metadata=self._metadata)
        return answers


def is_lost(error: grpc.RpcError) -> bool:
    """Whether the connection broke, so that the same call may be tried again."""
    return _code(error) in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)


def is_timeout(error: grpc.RpcError) -> bool:
    """Whether the call's own deadline ended it."""
    return _code(error) is grpc.StatusCode.DEADLINE_EXCEEDED


def _code(error: Any) -> grpc.StatusCode:
    # What gRPC raises is an RpcError that is a Call too; the type does not say so.
    code = error.code() if hasattr(error, "code") else None
    return code if isinstance(code, grpc.StatusCode) else grpc.StatusCode.UNKNOWN


def _trailing(error: Any) -> dict[str, str]:
    pairs = (error.trailing_metadata() or ()) if hasattr(error, "trailing_metadata") else ()
    return {key: value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value) for key, value in pairs}


def failure_of(error: grpc.RpcError, address: str, timeout_s: float) -> Failure:
    """A gRPC error in words, with the daemon's own advice when it gave some."""
    code = _code(error)
    details: Any = getattr(error, "details", str)
    said = plain_line(str(details() or ""), 2000)
    trailing = _trailing(error)
    mend = plain_line(trailing.get("kfd-mend", ""), 1000)
    line = trailing.get("kfd-line", "")
    known = "kfd-reason" in trailing
    if code is grpc.StatusCode.UNAVAILABLE and not known:
        said, mend = f"no daemon answers at {address}", "Start one with `kfd serve`, or check --address."
    elif code is grpc.StatusCode.DEADLINE_EXCEEDED and not known:
        said = f"the daemon at {address} did not answer within {timeout_s:g} s"
        mend = "Try again with a larger --timeout; look into the daemon's log if it stays so."
    elif code is grpc.StatusCode.UNIMPLEMENTED:
        said = f"the daemon at {address} does not know this command"
        mend = "Update the daemon: it is older than this client."
    return Failure(
        said or f"the call failed ({code.name})",
        code=_CODES.get(code, Exit.FAILED),
        mend=mend or _advice(code),
        file=plain_line(trailing.get("kfd-file", ""), 300),
        line=int(line) if line.isdigit() and len(line) < 10 else 0,
    )


def _advice(code: grpc.StatusCode) -> str:
    exit_code = _CODES.get(code, Exit.FAILED)
    return {
        Exit.NOT_FOUND: "List what there is: `kfd-client list`.",
        Exit.NOT_ALLOWED: "Give --token-file the file that the daemon wrote (STATE_DIR/token).",
        Exit.WRONG_STATE: "See its state: `kfd-client status ID`.",
        Exit.USAGE: "See `kfd-client COMMAND --help`.",
        Exit.BUDGET: "Try again later, or free space on the daemon's disk.",
    }.get(exit_code, "Look into the daemon's log.")
