"""Device times: read from answers, agreed with the outer clock, made into times of a round."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch")

from kfd.base.instant import MICROSECOND, MILLISECOND
from kfd.base.work import IncidentCode, VerdictCode
from kfd_worker.harness import cuda_child, cuda_memory
from kfd_worker.judge.gpu_clock import (
    DeviceTimes,
    agree,
    fault_code,
    read_times,
    round_time_ns,
    same_clocks,
    slope_agrees,
)
from kfd_worker.judge.gpu_reference import next_shield_ns


def text_of(each: list[int], *, calls: int = 0, shielded: int = 1, total: int = 0, middle: int = 0) -> bytes:
    head = cuda_child.TIMES.pack(
        cuda_child.TIMES_MAGIC,
        calls or len(each),
        shielded,
        middle or sorted(each)[len(each) // 2],
        total or sum(each),
        1280,
    )
    told = each[: cuda_child.MAX_TIMES]
    return (head + struct.pack(f"<{len(told)}Q", *told)).ljust(256, b"\0")


def times(*each: int, shielded: bool = True) -> DeviceTimes:
    middle = sorted(each)[len(each) // 2]
    return DeviceTimes(
        calls=len(each), shielded=shielded, median_ns=middle, total_ns=sum(each), floor_ns=1280, each_ns=each
    )


def test_times_come_back_as_they_were_packed() -> None:
    assert read_times(text_of([5000, 4000, 6000])) == times(5000, 4000, 6000)
    many = read_times(text_of([7000] * 100))
    assert many is not None
    assert (many.calls, many.total_ns, len(many.each_ns)) == (100, 700_000, cuda_child.MAX_TIMES)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"dev1",
        b"x" * 256,
        text_of([5000, 4000], total=1),
        text_of([0, 4000]),
        text_of([5000], calls=9)[: cuda_child.TIMES.size + 8],
        text_of([5000], middle=10**9),
    ],
)
def test_times_that_contradict_themselves_are_none(text: bytes) -> None:
    assert read_times(text) is None


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(text: bytes) -> None:
    found = read_times(text)
    assert found is None or (found.calls > 0 and sum(found.each_ns) <= found.total_ns)


def test_clocks_that_tell_the_same_agree() -> None:
    overhead = 2 * MILLISECOND
    assert agree(5 * MILLISECOND, 7 * MILLISECOND, overhead, 5).holds
    assert agree(50 * MICROSECOND, overhead + 60 * MICROSECOND, overhead, 5).holds


@pytest.mark.parametrize(
    ("device", "outer"),
    [
        (8 * MILLISECOND, 7 * MILLISECOND),
        (1 * MILLISECOND, 12 * MILLISECOND),
        (0, 7 * MILLISECOND),
        (5 * MILLISECOND, -1),
    ],
    ids=["longer than the order", "ten missing", "nothing", "negative"],
)
def test_clocks_that_differ_do_not(device: int, outer: int) -> None:
    assert not agree(device, outer, 2 * MILLISECOND, 5).holds


def test_the_slope_leaves_out_what_does_not_grow() -> None:
    assert slope_agrees((10_000, 30_000), (900_000, 920_500)).holds
    assert not slope_agrees((10_000, 30_000), (900_000, 940_000)).holds
    assert not slope_agrees((30_000, 10_000), (900_000, 940_000)).holds
    assert not slope_agrees((10_000, 30_000), (900_000, 900_000)).holds


def test_a_round_is_a_trimmed_mean_of_shielded_samples() -> None:
    assert round_time_ns([times(100, 102, 104, 106, 9000)]) == 104
    assert round_time_ns([times(100), times(110)]) == 105
    with pytest.raises(ValueError, match="shielded"):
        round_time_ns([times(100), times(100, shielded=False)])
    with pytest.raises(ValueError, match="samples"):
        round_time_ns([])


@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=40))
def test_a_round_lies_between_its_calls(each: list[int]) -> None:
    assert min(each) <= round_time_ns([times(*each)]) <= max(each)


def test_clocks_of_both_sides_must_be_alike_when_they_are_known() -> None:
    assert same_clocks([1980, 1980], [1965, 1980]).holds
    assert not same_clocks([1980, 1980], [1700, 1650]).holds
    assert same_clocks([-1], [1980]).holds
    assert same_clocks([], [1980]).holds


def test_a_failed_order_speaks_of_the_candidate_only_when_the_device_did() -> None:
    assert fault_code(cuda_memory.STATUS_RED_ZONE) is VerdictCode.INCORRECT
    assert fault_code(cuda_memory.STATUS_INPUT) is VerdictCode.INCORRECT
    assert fault_code(cuda_child.STATUS_LOST) is VerdictCode.RUNTIME_ERROR
    assert fault_code(cuda_child.STATUS_OTHER) is IncidentCode.INTERNAL
    assert fault_code(cuda_memory.STATUS_PLAN) is VerdictCode.LOAD_ERROR
    assert fault_code(cuda_memory.STATUS_MEMORY) is IncidentCode.DEVICE
    own = {cuda_child.STATUS_OTHER, cuda_child.STATUS_DRIVER, cuda_child.STATUS_LOST}
    seen = {cuda_memory.STATUS_INPUT, cuda_memory.STATUS_RED_ZONE, cuda_memory.STATUS_PLAN, cuda_memory.STATUS_MEMORY}
    assert len(own | seen) == 7


def test_a_shield_grows_until_it_holds_and_shrinks_when_far_too_long() -> None:
    assert next_shield_ns(100_000, 50_000, True) == 100_000
    assert next_shield_ns(100_000, 90_000, False) == 200_000
    assert next_shield_ns(100_000, 900_000, False) == 1_360_000
    assert next_shield_ns(10_000_000, 40_000, True) == 70_000
    assert next_shield_ns(40_000_000, 90_000_000, False) == 50_000_000
