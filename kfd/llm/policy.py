"""What a provider's failure means and what to do about it. Pure: no clock, no dice, no client."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from kfd.base.instant import SECOND, Span

__all__ = ["Failure", "GiveUp", "RetryPolicy", "Wait", "classify", "decide", "retry_after"]

_MONEY = re.compile(r"insufficient_quota|billing|credit|balance|payment|spend(?:ing)?[_ ]limit|hard[_ ]limit", re.I)
_TOO_LONG = re.compile(
    r"context[_ ]length|context window|maximum context|too many tokens|prompt is too long|string_above_max", re.I
)
_OVERLOADED = (408, 409, 425)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Bounds of our retries. Spans are nanoseconds."""

    max_attempts: int = 6
    backoff: Span = SECOND
    backoff_cap: Span = 60 * SECOND
    retry_after_cap: Span = 3600 * SECOND


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed attempt: the kind of ``ProviderFault`` it would be, and whether another attempt may help."""

    kind: str
    text: str
    retry: bool
    retry_after: Span | None = None
    """What the provider asked for."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Try again after this long."""

    span: Span


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Tell the caller; ``retry_after`` None means that a person must act first."""

    retry_after: Span | None


def classify(status: int | None, code: str, text: str, after: Span | None = None) -> Failure:
    """Meaning of an HTTP status (None: the error came inside a stream) with the provider's error code and
    text."""
    words = f"{code} {text[:2000]}"
    if status == 402 or (status in (None, 400, 403, 429) and _MONEY.search(words) and after is None):
        return Failure("money", text, retry=False)
    if status == 429 or "rate_limit" in code:
        return Failure("rate_limit", text, retry=True, retry_after=after)
    if status in (401, 403):
        return Failure("credentials", text, retry=False)
    if status == 413 or (status in (None, 400, 422) and _TOO_LONG.search(words)):
        return Failure("too_long", text, retry=False)
    if status in _OVERLOADED or status is None or status >= 500:
        return Failure("overload", text, retry=True, retry_after=after)
    if 400 <= status < 500:
        return Failure("bad_request", text, retry=False)
    return Failure("other", text, retry=False)


def decide(failure: Failure, attempt: int, left: Span, policy: RetryPolicy, dice: float) -> Wait | GiveUp:
    """What to do after failed attempt number ``attempt`` (from 1) with ``left`` nanoseconds of the deadline.

    ``dice`` in [0, 1) spreads callers: full jitter over the upper half of a back-off, and up to a tenth
    beyond what the provider asked for, never below it.
    """
    if not failure.retry:
        return GiveUp(None)
    backoff = min(policy.backoff * 2 ** min(attempt - 1, 40), policy.backoff_cap)
    span = round(backoff * (0.5 + dice / 2))
    if failure.retry_after is not None:
        asked = min(failure.retry_after, policy.retry_after_cap)
        span = max(span, asked + round(min(asked, policy.backoff_cap) * dice / 10))
    if attempt >= policy.max_attempts or span >= left:
        return GiveUp(max(span, policy.backoff))
    return Wait(span)


def retry_after(headers: Mapping[str, str]) -> Span | None:
    """What the headers ask for: ``retry-after-ms``, ``retry-after`` in seconds or as a date beside
    ``date``."""
    for name, unit in (("retry-after-ms", SECOND // 1000), ("retry-after", SECOND)):
        value = headers.get(name, "").strip()
        try:
            number = float(value)
        except ValueError:
            continue
        if math.isfinite(number) and number >= 0:
            return round(min(number * unit, 1e18))
    try:
        until = parsedate_to_datetime(headers.get("retry-after", ""))
        span = until - parsedate_to_datetime(headers.get("date", ""))
    except (ValueError, TypeError, OverflowError):
        return None
    return max(0, round(span.total_seconds() * SECOND))
