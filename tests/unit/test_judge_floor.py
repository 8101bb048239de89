"""No time can be driven towards zero."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch")

from kfd_worker.judge.benchmark import most_sets
from kfd_worker.judge.clocks import SAMPLE_NS, repeats
from kfd_worker.judge.floor import floor_ns, per_call_ns, write_rate

TIMES = st.integers(1, 10**10)


@given(TIMES, st.integers(0, 10**10), st.integers(1, 400))
def test_a_call_is_never_shorter_than_half_of_what_the_clock_showed(took: int, overhead: int, calls: int) -> None:
    one = per_call_ns(took, overhead, calls)
    assert one >= 1
    assert (one + 1) * calls > took / 2
    assert one <= max(1, took // calls)


@given(TIMES, st.integers(1, 400))
def test_a_long_order_loses_exactly_its_overhead(took: int, calls: int) -> None:
    assert per_call_ns(took, took // 3, calls) == max(1, (took - took // 3) // calls)


@given(st.integers(1, 1 << 40), st.integers(1, 64), st.integers(1, 1 << 30), st.integers(1, 3))
def test_a_sample_has_at_least_one_call_and_its_order_fits_a_packet(
    set_bytes: int, parameters: int, pool: int, samples: int
) -> None:
    most = most_sets(set_bytes, parameters, pool, samples)
    assert most >= 1
    assert most == 1 or most * samples * parameters * 56 <= 96 << 10
    assert most == 1 or most * samples * set_bytes <= pool


def test_a_kernel_of_a_hundred_nanoseconds_is_called_often_in_one_order() -> None:
    assert repeats(100, most_sets(3 * 4096, 4, 256 << 20, 3)) >= 64
    assert repeats(100, 10**9) * 100 >= SAMPLE_NS


def test_the_floor_grows_with_bytes_and_lies_below_what_filling_memory_takes() -> None:
    rate = write_rate(1)
    assert rate > 1e8
    assert floor_ns(0, rate) == 0
    assert floor_ns(1 << 20, rate) < (1 << 20) * 1e9 / rate
    assert floor_ns(1 << 30, rate) > floor_ns(1 << 20, rate) > 0
