"""Any OpenAI-compatible endpoint as a generator.

One deadline holds a logical call: waiting for a free place, all attempts and the pauses between them. The
client's own retries are off, so that nothing multiplies. ``openai`` is imported when the generator is made,
not with this module.
"""

from __future__ import annotations

import asyncio
import importlib
import os
from bisect import bisect_right
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from kfd.base.instant import SECOND, Instant
from kfd.llm.config import LlmConfig, ModelConfig
from kfd.llm.metering import Meter
from kfd.llm.policy import Failure, GiveUp, RetryPolicy, classify, decide, retry_after
from kfd.llm.port import Answer, Ask, Miss, ProviderFault
from kfd.llm.secret import Secret, mask, read_key
from kfd.llm.streams import Collected

__all__ = ["OpenAiGenerator"]

_MAX_BODY = 16 << 20
"""Bytes of one response; beyond it the connection is dropped."""

_GRACE_S = 5.0
"""Seconds after the end of the text in which the usage must come."""


@dataclass(slots=True)
class _Route:
    """One model: its client and its places."""

    config: ModelConfig
    client: Any
    key: Secret | None
    places: asyncio.Semaphore


class OpenAiGenerator:
    """Laws: those of ``Generator``. ``now`` reads a monotonic clock in nanoseconds, ``sleep`` takes seconds,
    ``dice`` gives a number in [0, 1) for jitter. Raises CallerError when a key is missing, before anything
    is asked.
    """

    name = "openai"

    def __init__(
        self,
        config: LlmConfig,
        *,
        now: Callable[[], Instant],
        sleep: Callable[[float], Awaitable[None]],
        dice: Callable[[], float],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._config = config
        self._now, self._sleep, self._dice = now, sleep, dice
        self._policy = RetryPolicy(
            max_attempts=config.max_attempts,
            backoff=round(config.backoff_s * SECOND),
            backoff_cap=round(config.backoff_cap_s * SECOND),
            retry_after_cap=round(config.retry_after_cap_s * SECOND),
        )
        variables = os.environ if environment is None else environment
        keys = {model.name: read_key(model.name, model.key_file, model.key_env, variables) for model in config.models}
        self._secrets = tuple(key for key in keys.values() if key is not None)
        self._routes = {model.name: self._route(model, keys[model.name]) for model in config.models}
        self._weights = list(accumulate(model.weight for model in config.models))

    async def answer(self, ask: Ask) -> Answer | Miss:
        """Answer one question. Raises ProviderFault when all attempts that the deadline allows have
        failed."""
        route = self._chosen(ask)
        start = self._now()
        call = Meter(
            ask=ask,
            until=start + round(self._config.deadline_s * SECOND),
            limit=ask.max_output_tokens or route.config.max_tokens,
            thinks_unseen=route.config.reasoning_effort is not None,
        )
        try:
            async with asyncio.timeout(self._config.deadline_s), route.places:
                call.waited += self._now() - start
                return await self._attempts(route, ask, call)
        except TimeoutError:
            call.broke(sent=True)
            text = f"{route.config.name}: no answer within {self._config.deadline_s:g} s"
            raise ProviderFault("stall", text, retry_after_ns=self._policy.backoff, usage=call.usage()) from None

    async def close(self) -> None:
        """Release connections."""
        for route in self._routes.values():
            await route.client.close()

    def _chosen(self, ask: Ask) -> _Route:
        if ask.model:
            route = self._routes.get(ask.model)
            if route is None:
                raise ProviderFault("bad_request", f"no model is called {mask(ask.model)}", retry_after_ns=None)
            return route
        if not self._weights or not self._weights[-1]:
            raise ProviderFault("bad_request", "no model is configured", retry_after_ns=None)
        at = bisect_right(self._weights, ask.choice * self._weights[-1])
        return list(self._routes.values())[min(at, len(self._routes) - 1)]

    async def _attempts(self, route: _Route, ask: Ask, call: Meter) -> Answer:
        while True:
            call.attempts += 1
            result = await self._attempt(route, ask, call)
            if not isinstance(result, Failure):
                return Answer(
                    text=result.text,
                    finish_reason=result.finish_reason,
                    model=route.config.name,
                    usage=call.usage(),
                )
            text = f"{route.config.name}: {mask(result.text, self._secrets)}"
            step = decide(result, call.attempts, call.until - self._now(), self._policy, self._dice())
            if isinstance(step, GiveUp):
                raise ProviderFault(result.kind, text, retry_after_ns=step.retry_after, usage=call.usage())
            if not call.may_begin():
                text += "; another attempt could use more tokens than are reserved"
                raise ProviderFault(
                    result.kind, text, retry_after_ns=max(step.span, self._policy.backoff), usage=call.usage()
                )
            call.waited += step.span
            await self._sleep(step.span / SECOND)

    async def _attempt(self, route: _Route, ask: Ask, call: Meter) -> Collected | Failure:
        import openai

        collected = call.begin()
        failure: Failure | None = None
        sent = True
        try:
            await self._receive(route, ask, collected)
        except openai.APITimeoutError as error:
            sent = not _is_unsent(error)
            failure = Failure("stall", f"silent for {self._config.idle_s:g} s", retry=True)
        except openai.APIConnectionError as error:
            sent = not _is_unsent(error)
            failure = Failure("connection", f"connection failed: {error.__cause__ or error}", retry=True)
        except openai.APIStatusError as error:
            sent = False  # refused before anything was read
            after = retry_after({key.lower(): value for key, value in error.response.headers.items()})
            failure = classify(error.status_code, _code(error), error.message, after)
        except openai.APIError as error:
            failure = classify(None, _code(error), error.message)
        except Exception as error:
            if not isinstance(error, _garbage()):
                raise
            failure = Failure("other", f"the answer cannot be read: {type(error).__name__}: {error}", retry=True)
        if collected.full:
            # More text than any answer may have: the parser will say so.
            collected.finish_reason = collected.finish_reason or "stop"
        if collected.finish_reason:
            # What fails after the end has been announced (a missing usage, a connection left open) does no
            # harm.
            call.ended()
            return collected
        call.broke(sent=sent)
        return failure or Failure("connection", "the answer ended without a finish reason", retry=True)

    async def _receive(self, route: _Route, ask: Ask, collected: Collected) -> None:
        config = route.config
        messages = [{"role": "system", "content": ask.system}, {"role": "user", "content": ask.user}]
        for turn in ask.follow_up:
            messages.append({"role": "assistant", "content": turn.answer})
            messages.append({"role": "user", "content": turn.reply})
        parameters = _parameters(config, ask.max_output_tokens or config.max_tokens)
        # Lets a provider's log be matched with ours; says nothing about the task.
        headers = {"X-Client-Request-Id": ask.candidate}
        create = route.client.chat.completions.create
        if not config.stream:
            collected.take(
                await create(model=config.provider_model, messages=messages, extra_headers=headers, **parameters)
            )
            return
        stream = await create(
            model=config.provider_model,
            messages=messages,
            stream=True,
            stream_options={"include_usage": True},
            extra_headers=headers,
            **parameters,
        )
        # The usage comes after the end of the text, or never: it is waited for, but not for long.
        with suppress(TimeoutError):
            async with asyncio.timeout(None) as grace, stream:
                async for chunk in stream:
                    collected.take(chunk)
                    if collected.full or (collected.finish_reason and collected.output_tokens is not None):
                        return
                    if collected.finish_reason and grace.when() is None:
                        grace.reschedule(asyncio.get_running_loop().time() + _GRACE_S)

    def _route(self, model: ModelConfig, key: Secret | None) -> _Route:
        import openai

        timeout = openai.Timeout(self._config.idle_s, connect=self._config.connect_s, pool=None)
        http = openai.DefaultAsyncHttpxClient(
            timeout=timeout,
            follow_redirects=False,
            headers={"Accept-Encoding": "identity"},
            event_hooks={"response": [_bounded]},
        )
        client = openai.AsyncOpenAI(
            api_key=key.reveal() if key is not None else "none",
            base_url=model.base_url,
            timeout=timeout,
            max_retries=0,
            http_client=http,
        )
        # The client takes these from the environment; they belong to another provider as likely as not.
        for name in ("organization", "project", "admin_api_key", "webhook_secret"):
            if hasattr(client, name):
                setattr(client, name, None)
        return _Route(model, client, key, asyncio.Semaphore(model.concurrency))


def _parameters(config: ModelConfig, limit: int) -> dict[str, Any]:
    """What is set is sent, what is not is left out. ``limit``: longest answer in tokens."""
    optional = {
        "temperature": config.temperature,
        "top_p": config.top_p,
        "seed": config.seed,
        "reasoning_effort": config.reasoning_effort,
        config.max_tokens_name: limit if config.max_tokens_name != "none" else None,
    }
    given: dict[str, Any] = {name: value for name, value in optional.items() if value is not None}
    if config.extra:
        given["extra_body"] = config.extra
    return given


def _is_unsent(error: Exception) -> bool:
    """Whether a connection was never made, so that nobody has seen the prompt."""
    http = _http_library()
    return isinstance(error.__cause__, (http.ConnectError, http.ConnectTimeout, http.PoolTimeout))


def _code(error: Any) -> str:
    """The provider's words for an error: ``code`` and ``type``, wherever the client found them."""
    body = error.body if isinstance(error.body, dict) else {}
    inner = body.get("error") if isinstance(body.get("error"), dict) else body
    return " ".join(str(inner.get(name) or "")[:200] for name in ("code", "type")) if isinstance(inner, dict) else ""


def _http_library() -> Any:
    """The HTTP library under the client: its name changed between releases."""
    import openai

    bases = [base.__module__.partition(".")[0] for base in openai.DefaultAsyncHttpxClient.__mro__]
    return importlib.import_module(next(name for name in bases if name != "openai"))


def _garbage() -> tuple[type[Exception], ...]:
    """What reading nonsense raises, whichever layer notices."""
    import openai

    http = _http_library()
    return (openai.OpenAIError, ValueError, TypeError, AttributeError, KeyError, http.HTTPError, http.StreamError)


async def _bounded(response: Any) -> None:
    """Response hook: no compressed body (it may be a bomb) and no endless one."""
    http = _http_library()
    if response.headers.get("content-encoding", "identity").lower() not in ("", "identity"):
        await response.aclose()
        raise http.DecodingError("a compressed answer although none was asked for", request=response.request)
    inner = response.stream

    class Bounded(http.AsyncByteStream):  # type: ignore[misc, name-defined]
        async def __aiter__(self) -> AsyncIterator[bytes]:
            left = _MAX_BODY
            async for piece in inner:
                left -= len(piece)
                if left < 0:
                    raise http.ReadError(f"more than {_MAX_BODY} bytes", request=response.request)
                yield piece

        async def aclose(self) -> None:
            with suppress(RuntimeError):
                await inner.aclose()

    response.stream = Bounded()
