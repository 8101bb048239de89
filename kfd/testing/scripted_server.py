"""A model server that does what a script says, over real HTTP on loopback.

In a test::

    async with ScriptedServer([answer("..."), status(429, retry_after="1"), answer("...")]) as server:
        client = AsyncOpenAI(base_url=server.url, api_key="x")

On its own: ``python -m kfd.testing.scripted_server --script FILE.json --port 0`` prints ``URL
http://127.0.0.1:PORT/v1``. The file holds ``{"steps": [...], "default": {...}, "by_model": {"NAME": [...]},
"repeat": false}``; a step is an object with the fields of ``Step``. Steps are used up in the order of the
requests; then comes the default.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

__all__ = ["Request", "Script", "ScriptedServer", "Step", "answer", "main", "script_of", "status"]

_MAX_HEAD = 64 << 10
_MAX_BODY = 16 << 20
_MAX_REQUESTS = 100_000

KINDS = (
    "answer",
    "status",
    "stall_headers",
    "stall_stream",
    "drip",
    "reset",
    "reset_stream",
    "empty",
    "garbage",
    "bad_json",
    "stream_error",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What one request gets."""

    kind: str = "answer"
    """answer; status; stall_headers, stall_stream: silence before or within; drip: a piece every
    ``interval_s``; reset, reset_stream: the connection is cut before or within; empty: no text; garbage:
    bytes that are no HTTP;
    bad_json: HTTP with a broken body; stream_error: an error object instead of a piece."""
    text: str = ""
    finish_reason: str | None = "stop"
    usage: bool = True
    pieces: int = 4
    """Into how many pieces a streamed text is cut."""
    delay_s: float = 0.0
    """Before the headers."""
    interval_s: float = 0.05
    status: int = 500
    code: str = "server_error"
    message: str = "scripted"
    headers: Mapping[str, str] = field(default_factory=dict)


def answer(text: str, **fields: Any) -> Step:
    """A step that answers."""
    return Step(kind="answer", text=text, **fields)


def status(number: int, *, retry_after: str | None = None, code: str = "", message: str = "scripted") -> Step:
    """A step that fails with an HTTP status."""
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    return Step(kind="status", status=number, code=code or f"http_{number}", message=message, headers=headers)


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it came."""

    index: int
    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]

    @property
    def model(self) -> str:
        """The model that was asked for."""
        return str(self.body.get("model", ""))

    @property
    def prompt(self) -> str:
        """The last message."""
        messages = self.body.get("messages") or [{}]
        return str(messages[-1].get("content", ""))


Chooser = Callable[[Request], Step]


@dataclass(slots=True)
class Script:
    """Steps in order of requests, per model where a model has its own; then the default."""

    steps: Sequence[Step] = ()
    default: Step = field(default_factory=lambda: Step(kind="status", status=500, code="script_is_over"))
    by_model: Mapping[str, Sequence[Step]] = field(default_factory=dict)
    repeat: bool = False
    """Begin again when the steps are used up."""
    _used: dict[str, int] = field(default_factory=dict)

    def __call__(self, request: Request) -> Step:
        """The step for a request."""
        own = request.model in self.by_model
        steps = self.by_model[request.model] if own else self.steps
        key = request.model if own else ""
        at = self._used.get(key, 0)
        self._used[key] = at + 1
        if self.repeat and steps:
            at %= len(steps)
        return steps[at] if at < len(steps) else self.default


def script_of(data: Mapping[str, Any]) -> Script:
    """A script from JSON. Raises ValueError for unknown fields and kinds."""
    unknown = set(data) - {"steps", "default", "by_model", "repeat"}
    if unknown:
        raise ValueError(f"unknown key {min(unknown)!r} in the script")
    script = Script(
        steps=[_step(step) for step in data.get("steps", [])],
        by_model={name: [_step(step) for step in steps] for name, steps in data.get("by_model", {}).items()},
        repeat=bool(data.get("repeat", False)),
    )
    if "default" in data:
        script.default = _step(data["default"])
    return script


def _step(data: Mapping[str, Any]) -> Step:
    try:
        step = Step(**data)
    except TypeError as error:
        raise ValueError(f"a step of the script is wrong: {error}") from None
    if step.kind not in KINDS:
        raise ValueError(f"unknown kind {step.kind!r}; there are {', '.join(KINDS)}")
    return step


class ScriptedServer:
    """The server. ``requests`` keeps every request; ``url`` is the base URL for clients."""

    def __init__(self, script: Chooser | Sequence[Step] | Step, *, port: int = 0) -> None:
        if isinstance(script, Step):
            script = Script(default=script)
        self._choose: Chooser = Script(steps=script) if isinstance(script, Sequence) else script
        self._port = port
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.requests: list[Request] = []
        self.url = ""
        self.in_flight = 0
        self.most_in_flight = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self._port, limit=_MAX_HEAD)
        port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}/v1"
        return self

    async def __aexit__(self, *_exception: object) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        # Transports close in the loop's next rounds.
        for _round in range(3):
            await asyncio.sleep(0)
        if self._server is not None:
            await self._server.wait_closed()

    @property
    def count(self) -> int:
        """Requests so far."""
        return len(self.requests)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Our own task, not asyncio's: that one reports its cancellation as an error.
        task = asyncio.get_running_loop().create_task(self._talk(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
                while await self._one(reader, writer):
                    pass
        finally:
            # Also when the server ends in the middle of a stall: a writer that nobody closes is a leak.
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Serve one request; whether the connection is kept."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.split("\r\n")
        headers = {key.lower(): value.strip() for key, _, value in (line.partition(":") for line in lines) if key}
        length = int(headers.get("content-length", "0"))
        if length > _MAX_BODY or len(self.requests) >= _MAX_REQUESTS:
            return False
        raw = await reader.readexactly(length)
        body = json.loads(raw) if raw else {}
        request = Request(len(self.requests), first.split(" ")[1], headers, body)
        self.requests.append(request)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            return await self._play(self._choose(request), request, writer)
        finally:
            self.in_flight -= 1

    async def _play(self, step: Step, request: Request, writer: asyncio.StreamWriter) -> bool:
        if step.delay_s:
            await asyncio.sleep(step.delay_s)
        if step.kind == "stall_headers":
            await asyncio.Event().wait()
        if step.kind == "reset":
            return _reset(writer)
        if step.kind == "garbage":
            writer.write(b"\x00\xff\x80 no such protocol \r\n\r\n" * 8)
            await writer.drain()
            return False
        if step.kind == "status":
            error = {"error": {"message": step.message, "type": step.code, "code": step.code}}
            return await _send(writer, step.status, json.dumps(error).encode(), step.headers)
        if step.kind == "bad_json" and not request.body.get("stream"):
            return await _send(writer, 200, b'{"choices": [{"mess', step.headers)
        if not request.body.get("stream"):
            return await _send(writer, 200, json.dumps(_whole(step, request)).encode(), step.headers)
        return await self._stream(step, request, writer)

    async def _stream(self, step: Step, request: Request, writer: asyncio.StreamWriter) -> bool:
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"
            + b"".join(f"{key}: {value}\r\n".encode() for key, value in step.headers.items())
            + b"\r\n"
        )
        events = [json.dumps(event) for event in _events(step, request)]
        half = len(events) // 2
        for at, event in enumerate(events):
            data = event
            if at == half and step.kind == "stall_stream":
                await writer.drain()
                await asyncio.Event().wait()
            if at == half and step.kind == "reset_stream":
                await writer.drain()
                return _reset(writer)
            if at == half and step.kind == "bad_json":
                data = event[: len(event) // 2]
            if at == half and step.kind == "stream_error":
                data = json.dumps({"error": {"message": step.message, "type": step.code, "code": step.code}})
            await _chunk(writer, f"data: {data}\n\n".encode())
            if step.kind == "drip":
                await asyncio.sleep(step.interval_s)
        await _chunk(writer, b"data: [DONE]\n\n")
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True


def _reset(writer: asyncio.StreamWriter) -> bool:
    writer.transport.abort()
    return False


async def _chunk(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
    await writer.drain()


async def _send(writer: asyncio.StreamWriter, number: int, body: bytes, headers: Mapping[str, str]) -> bool:
    head = {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}
    lines = "".join(f"{key}: {value}\r\n" for key, value in head.items())
    writer.write(f"HTTP/1.1 {number} Scripted\r\n{lines}\r\n".encode() + body)
    await writer.drain()
    return True


def _usage(step: Step, request: Request) -> dict[str, int]:
    said = json.dumps(request.body.get("messages", ""))
    tokens = {"prompt_tokens": len(said) // 4, "completion_tokens": len(step.text) // 4}
    return {**tokens, "total_tokens": sum(tokens.values())}


def _text(step: Step) -> str:
    return "" if step.kind == "empty" else step.text


def _whole(step: Step, request: Request) -> dict[str, Any]:
    message = {"role": "assistant", "content": _text(step)}
    completion: dict[str, Any] = {
        "id": f"scripted-{request.index}",
        "object": "chat.completion",
        "created": 0,
        "model": request.model,
        "choices": [{"index": 0, "message": message, "finish_reason": step.finish_reason}],
    }
    return {**completion, "usage": _usage(step, request)} if step.usage else completion


def _events(step: Step, request: Request) -> list[dict[str, Any]]:
    base = {"id": f"scripted-{request.index}", "object": "chat.completion.chunk", "created": 0, "model": request.model}
    text, pieces = _text(step), max(1, step.pieces)
    size = max(1, -(-len(text) // pieces))
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": text[at : at + size]} for at in range(0, len(text), size)]
    events = [{**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    events.append({**base, "choices": [{"index": 0, "delta": {}, "finish_reason": step.finish_reason}]})
    if step.usage:
        events.append({**base, "choices": [], "usage": _usage(step, request)})
    return events


async def _serve(script: Script, port: int) -> None:
    async with ScriptedServer(script, port=port) as server:
        print(f"URL {server.url}", flush=True)
        await asyncio.Event().wait()


def main(arguments: list[str] | None = None) -> int:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description="An OpenAI-compatible server on loopback that follows a script.")
    parser.add_argument("--script", required=True, type=Path, help="JSON file with the script")
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1; 0 takes a free one")
    options = parser.parse_args(arguments)
    try:
        script = script_of(json.loads(options.script.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        print(f"cannot read the script {options.script}: {error}", file=sys.stderr)
        return 2
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve(script, options.port))
    return 0


if __name__ == "__main__":
    sys.exit(main())
