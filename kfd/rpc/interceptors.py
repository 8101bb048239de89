"""At the door: who may come in, and how an error leaves."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc
import structlog

from kfd.base.failure import BadInput, CallerError, Exhausted, NotAllowed, NotFound, WrongState

__all__ = ["Door", "abort_with"]

_CODES: tuple[tuple[type[CallerError], grpc.StatusCode], ...] = (
    (NotFound, grpc.StatusCode.NOT_FOUND),
    (WrongState, grpc.StatusCode.FAILED_PRECONDITION),
    (NotAllowed, grpc.StatusCode.PERMISSION_DENIED),
    (Exhausted, grpc.StatusCode.RESOURCE_EXHAUSTED),
    (BadInput, grpc.StatusCode.INVALID_ARGUMENT),
    (CallerError, grpc.StatusCode.INVALID_ARGUMENT),
)

_OPEN_METHODS = frozenset({"/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch"})


def _plain(text: str) -> str:
    """Text that HTTP metadata can carry: printable ASCII on one line."""
    return "".join(ch if " " <= ch <= "~" else "?" for ch in text)[:1000]


async def abort_with(context: Any, error: CallerError) -> None:
    """End a call with a caller's error: status, message, and in the trailing metadata what to do."""
    code = next(code for kind, code in _CODES if isinstance(error, kind))
    trailing = [("kfd-reason", error.reason), ("kfd-mend", _plain(error.mend))]
    if isinstance(error, BadInput) and error.file:
        trailing += [("kfd-file", _plain(error.file)), ("kfd-line", str(error.line))]
    context.set_trailing_metadata(tuple(trailing))
    await context.abort(code, str(error)[:4000])


class Door(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]
    """Only callers with the bearer token come in (health checks need none), and what handlers raise leaves as a status:
    callers' errors with a mend, ours with an id that greps in the log.

    One interceptor, and one wrapped handler for each method: every further link costs each call its part of a
    millisecond, and calls are most of what the daemon does.
    """

    def __init__(self, token: str) -> None:
        self._expected = f"Bearer {token}".encode()
        self._log = structlog.get_logger("kfd.rpc")
        self._handlers: dict[str, Any] = {}

        async def refuse(_request: Any, context: Any) -> None:
            error = NotAllowed("the token is missing or wrong")
            error.mend = "give --token-file the file that the daemon wrote (STATE_DIR/token)"
            context.set_trailing_metadata((("kfd-reason", error.reason), ("kfd-mend", error.mend)))
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, str(error))

        self._refuse = grpc.unary_unary_rpc_method_handler(refuse)

    async def intercept_service(self, continuation: Callable[[Any], Awaitable[Any]], handler_call_details: Any) -> Any:
        """Let a call pass to its wrapped handler, or refuse it before its handler sees it."""
        method = handler_call_details.method
        if method not in _OPEN_METHODS:
            given = next((v for k, v in handler_call_details.invocation_metadata if k == "authorization"), "")
            data = given if isinstance(given, bytes) else given.encode("utf-8", "replace")
            if not hmac.compare_digest(data, self._expected):
                return self._refuse
        known = self._handlers.get(method)
        if known is not None:
            return known
        handler = await continuation(handler_call_details)
        if handler is None:
            # Names of methods that do not exist are a caller's, and without end: none of them is kept.
            return None
        self._handlers[method] = wrapped = self._wrapped(handler, method)
        return wrapped

    def _wrapped(self, handler: Any, method: str) -> Any:
        if handler.unary_unary is not None:
            return handler._replace(unary_unary=self._unary(handler.unary_unary, method))
        if handler.stream_unary is not None:
            return handler._replace(stream_unary=self._unary(handler.stream_unary, method))
        if handler.unary_stream is not None:
            return handler._replace(unary_stream=self._stream(handler.unary_stream, method))
        return handler

    def _unary(self, behaviour: Callable[..., Any], method: str) -> Callable[..., Any]:
        async def call(request: Any, context: Any) -> Any:
            try:
                return await behaviour(request, context)
            except CallerError as error:
                await abort_with(context, error)
            except (grpc.aio.AbortError, grpc.aio.BaseError):
                raise
            except Exception as error:  # noqa: BLE001 - the boundary: nothing of ours leaves as a traceback
                await self._fault(context, error, method)

        return call

    def _stream(self, behaviour: Callable[..., Any], method: str) -> Callable[..., Any]:
        async def call(request: Any, context: Any) -> AsyncIterator[Any]:
            try:
                async for item in behaviour(request, context):
                    yield item
            except CallerError as error:
                await abort_with(context, error)
            except (grpc.aio.AbortError, grpc.aio.BaseError):
                raise
            except Exception as error:  # noqa: BLE001 - as above
                await self._fault(context, error, method)

        return call

    async def _fault(self, context: Any, error: Exception, method: str) -> None:
        name = secrets.token_hex(4)
        self._log.error("call.failed", id=name, method=method, error=repr(error), exc_info=error)
        context.set_trailing_metadata(
            (("kfd-reason", "INTERNAL"), ("kfd-mend", f"look for {name} in the daemon's log"))
        )
        await context.abort(grpc.StatusCode.INTERNAL, f"internal fault {name}")
