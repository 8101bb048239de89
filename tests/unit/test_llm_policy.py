"""What a failure means and how long to wait: pure decisions, so no test waits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfd.base.instant import SECOND
from kfd.llm.policy import Failure, GiveUp, RetryPolicy, Wait, classify, decide, retry_after

POLICY = RetryPolicy(max_attempts=5, backoff=SECOND, backoff_cap=30 * SECOND, retry_after_cap=600 * SECOND)


@pytest.mark.parametrize(
    ("status", "code", "text", "kind", "retry"),
    [
        (429, "rate_limit_exceeded", "slow down", "rate_limit", True),
        (429, "insufficient_quota", "You exceeded your current quota", "money", False),
        (429, "billing_hard_limit_reached", "", "money", False),
        (400, "", "Your credit balance is too low", "money", False),
        (402, "", "", "money", False),
        (500, "", "", "overload", True),
        (502, "", "", "overload", True),
        (503, "", "", "overload", True),
        (529, "overloaded_error", "", "overload", True),
        (408, "", "", "overload", True),
        (401, "invalid_api_key", "", "credentials", False),
        (403, "", "country not supported", "credentials", False),
        (404, "model_not_found", "", "bad_request", False),
        (400, "", "unknown parameter", "bad_request", False),
        (422, "", "", "bad_request", False),
        (400, "context_length_exceeded", "", "too_long", False),
        (413, "", "", "too_long", False),
        (None, "server_error", "oops", "overload", True),
        (None, "rate_limit_exceeded", "", "rate_limit", True),
        (307, "", "", "other", False),
    ],
)
def test_each_failure_has_its_kind_and_only_passing_ones_are_retried(
    status: int | None, code: str, text: str, kind: str, retry: bool
) -> None:
    failure = classify(status, code, text)
    assert (failure.kind, failure.retry) == (kind, retry)


def test_a_429_that_names_a_time_is_a_rate_limit_whatever_its_words() -> None:
    failure = classify(429, "", "rate limit; see your billing page", 2 * SECOND)
    assert (failure.kind, failure.retry, failure.retry_after) == ("rate_limit", True, 2 * SECOND)


@pytest.mark.parametrize(
    ("headers", "span"),
    [
        ({"retry-after": "2"}, 2 * SECOND),
        ({"retry-after": "0.5"}, SECOND // 2),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1500 * SECOND // 1000),
        ({"retry-after": "Tue, 01 Dec 2026 07:00:30 GMT", "date": "Tue, 01 Dec 2026 07:00:00 GMT"}, 30 * SECOND),
        ({"retry-after": "Tue, 01 Dec 2026 06:00:00 GMT", "date": "Tue, 01 Dec 2026 07:00:00 GMT"}, 0),
        ({"retry-after": "Tue, 01 Dec 2026 07:00:30 GMT"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "1e400"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_every_form_and_nonsense_is_ignored(headers: dict[str, str], span: int | None) -> None:
    assert retry_after(headers) == span


FAILURES = st.builds(
    Failure,
    st.sampled_from(["rate_limit", "overload"]),
    st.just("x"),
    retry=st.booleans(),
    retry_after=st.none() | st.integers(0, 10**15),
)


@given(FAILURES, st.integers(1, 100), st.integers(-(10**12), 10**12), st.floats(0, 1, exclude_max=True))
def test_no_wait_outlives_the_deadline_undercuts_the_provider_or_exceeds_the_caps(
    failure: Failure, attempt: int, left: int, dice: float
) -> None:
    step = decide(failure, attempt, left, POLICY, dice)
    if isinstance(step, Wait):
        assert failure.retry
        assert attempt < POLICY.max_attempts
        assert 0 < step.span < left
        asked = min(failure.retry_after or 0, POLICY.retry_after_cap)
        assert step.span >= asked
        assert step.span <= max(POLICY.backoff_cap, asked * 1.1 + 1)
    else:
        assert (step.retry_after is None) == (not failure.retry)


def test_backoff_doubles_up_to_its_cap_and_jitter_spreads_callers() -> None:
    failure = Failure("overload", "", retry=True)
    policy = RetryPolicy(max_attempts=100)
    spans = [decide(failure, attempt, 10**15, policy, 0.0) for attempt in range(1, 9)]
    assert [step.span for step in spans if isinstance(step, Wait)] == [
        n * SECOND // 2 for n in (1, 2, 4, 8, 16, 32, 60, 60)
    ]
    spread = {decide(failure, 3, 10**15, policy, dice / 10) for dice in range(10)}
    assert len(spread) == 10


def test_a_failure_that_a_person_must_mend_names_no_time() -> None:
    assert decide(Failure("money", "", retry=False), 1, 10**15, POLICY, 0.5) == GiveUp(None)
