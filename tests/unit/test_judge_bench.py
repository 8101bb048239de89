"""The judge's check and benchmark against a side that is no process but a function over the same memory files."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

torch = pytest.importorskip("torch")

from kfd.base.instant import SECOND  # noqa: E402
from kfd.base.work import CANDIDATE, CaseResult, Comparison, MeasurementPlan, VerdictCode  # noqa: E402
from kfd.tasks import pack  # noqa: E402
from kfd.tasks.spec import Case  # noqa: E402
from kfd_worker.judge.benchmark import benchmark  # noqa: E402
from kfd_worker.judge.check import CheckNotes, check  # noqa: E402
from kfd_worker.judge.clocks import HostClock  # noqa: E402
from kfd_worker.judge.draws import Draws, Pools  # noqa: E402
from kfd_worker.judge.faults import CandidateFault, ReferenceFault  # noqa: E402
from kfd_worker.judge.side import Side  # noqa: E402
from kfd_worker.judge.taskcode import LoadedTask  # noqa: E402
from tests.integration.exec_rig import TASK, write_task  # noqa: E402

PLAN = MeasurementPlan(min_rounds=2, max_rounds=2, max_ns=SECOND)
SECRET = b"s" * 32


class Fake:
    """Reads inputs from the memory files and writes what a function makes of them."""

    name = CANDIDATE
    overhead_ns = 0

    def __init__(self, function: Callable[[Any, int], Any], took_ns: int = 0) -> None:
        self._function = function
        self._took_ns = took_ns
        self._maps: dict[int, tuple[list[Any], tuple[int, int]]] = {}
        self.seen: list[bytes] = []
        self.starts: list[int] = []

    def map(self, number: int, sets: list[Any], fds: Sequence[int], sizes: Mapping[str, int]) -> None:
        kept = (os.dup(fds[0]), os.dup(fds[1]))
        self._maps[number] = (sets, kept)

    def timed(self, number: int, indices: Sequence[int], patience_ns: int, core: int, bind: Callable[[], None]) -> int:
        assert core in os.sched_getaffinity(0)
        bind()
        return self.call(number, indices, patience_ns)

    def quiet(self) -> None:
        return

    def grant(self, span_ns: int) -> None:
        assert span_ns > 0

    def excess(self) -> str:
        return ""

    def call(self, number: int, indices: Sequence[int], patience_ns: int = 0) -> int:
        began = time.monotonic_ns()
        sets, fds = self._maps[number]
        for index in indices:
            (_, _, at, _, start, _), (_, _, out_at, _, out_start, _), (_, _, n) = sets[index]
            data = os.pread(fds[0], 4 * n, at + start)
            self.starts.append(start)
            self.seen.append(data)
            made = self._function(torch.frombuffer(bytearray(data), dtype=torch.float32), len(self.seen))
            os.pwrite(fds[1], bytes(made.contiguous().view(torch.uint8).tolist()), out_at + out_start)
        return self._took_ns or max(1, time.monotonic_ns() - began)


@pytest.fixture
def task(tmp_path: Path) -> Iterator[LoadedTask]:
    folder = write_task(tmp_path / "task", task=TASK.replace("200003", "3001"))
    made = LoadedTask(pack(folder), tmp_path)
    yield made
    made.close()


def measured(task: LoadedTask, fake: Fake, bytes_per_s: float = 1e12) -> tuple[list[Comparison], list[CaseResult]]:
    draws = Draws(Pools(1).fill, least=16)
    found: list[CaseResult] = []
    side = cast(Side, fake)
    checked = check(task, SECRET, side, (), found, lambda _: None, CheckNotes(), draws)
    comparisons, _ = benchmark(task, SECRET, PLAN, side, (), checked, lambda _: None, bytes_per_s, draws)
    return comparisons, found


@pytest.mark.parametrize("fault", [ReferenceFault("no shield held"), RuntimeError("CUDA out of memory"), MemoryError()])
def test_a_measurement_stands_although_its_roof_cannot_be_measured(
    task: LoadedTask, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    monkeypatch.setattr(HostClock, "copy_ns", raising(fault))
    comparisons, cases = measured(task, Fake(lambda x, _: x * 2.0))
    assert len(comparisons) == 1
    assert all(case.passed for case in cases)


def test_a_device_that_fails_while_its_roof_is_measured_is_told(
    task: LoadedTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HostClock, "copy_ns", raising(RuntimeError("CUDA error: an illegal memory access")))
    with pytest.raises(RuntimeError, match="illegal"):
        measured(task, Fake(lambda x, _: x * 2.0))


def raising(fault: Exception) -> Callable[[HostClock, Case], int]:
    def copy_ns(self: HostClock, case: Case) -> int:
        raise fault

    return copy_ns


def test_an_honest_side_is_right_and_timed_and_never_sees_a_timed_content_twice(task: LoadedTask) -> None:
    fake = Fake(lambda x, _: x * 2.0)
    comparisons, cases = measured(task, fake)
    assert all(case.passed for case in cases)
    (one,) = comparisons
    assert len(one.candidate_ns) == len(one.baseline_ns) == 2
    large = [data for data in fake.seen if len(data) == 4 * 3001]
    # In the check contents come again on purpose; after it never.
    checked = 6
    assert len(large) > 12
    assert len(set(large[checked:])) == len(large[checked:])
    assert not set(large[:checked]) & set(large[checked:])


def test_buffers_lie_against_the_page_before_and_the_page_behind(task: LoadedTask) -> None:
    fake = Fake(lambda x, _: x * 2.0)
    measured(task, fake)
    assert 0 in fake.starts
    assert max(fake.starts) > 0


def test_a_time_below_what_writing_the_outputs_takes_is_suspect(task: LoadedTask) -> None:
    with pytest.raises(CandidateFault, match="writing its outputs") as caught:
        measured(task, Fake(lambda x, _: x * 2.0, took_ns=1000), bytes_per_s=1e8)
    assert caught.value.code is VerdictCode.SUSPECT


@pytest.mark.parametrize("wrong", [1, 2, 5, 9, 14, 20, 26])
def test_one_wrong_call_anywhere_is_found(task: LoadedTask, wrong: int) -> None:
    def function(x: Any, count: int) -> Any:
        return x * 2.0 + (1e-2 if count == wrong else 0.0)

    with pytest.raises(CandidateFault) as caught:
        measured(task, Fake(function))
    assert caught.value.code is VerdictCode.INCORRECT


def test_one_wrong_element_of_one_timed_call_is_found(task: LoadedTask) -> None:
    calls = 0

    def function(x: Any, count: int) -> Any:
        nonlocal calls
        made = x * 2.0
        if len(x) == 3001:
            calls += 1
            if calls == 12:
                made[1234] += 0.01
        return made

    with pytest.raises(CandidateFault, match=r"timed call.*1234"):
        measured(task, Fake(function))
