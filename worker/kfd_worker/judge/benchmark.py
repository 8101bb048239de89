"""Timing by interleaved rounds (evaluation notes, 4.4). Every timed call has new content and is checked.

A round takes three samples of each side, candidate, reference, initial kernel and (when a win is confirmed) the
incumbent, in an order nobody can foretell; the least of the three is the side's time of the round. A sample is one
order to a box that names as many sets as make it at least ``SAMPLE_NS`` long, each with content of its own; its time is
the judge's clock around the order, less what an empty order took before foreign code was loaded, divided by the number
of sets.
Never less than half of what the clock showed is kept (``floor.per_call_ns``), and a candidate that is faster than its
outputs can be written (``floor``) is suspect: no subtraction and no trick can drive a time towards zero.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from kfd.base.instant import Span
from kfd.base.measure import log_ratios, narrow_enough
from kfd.base.work import INCUMBENT, REFERENCE, Comparison, MeasurementPlan, Roof, VerdictCode
from kfd_worker.judge.check import Checked
from kfd_worker.judge.clocks import SAMPLE_NS, Clock, DeviceClock, HostClock
from kfd_worker.judge.draws import Draws
from kfd_worker.judge.faults import CandidateFault, ReferenceFault
from kfd_worker.judge.floor import SAMPLES, floor_ns
from kfd_worker.judge.roof import moved_bytes
from kfd_worker.judge.side import Side
from kfd_worker.judge.taskcode import LoadedTask, draw_seed
from kfd_worker.judge.workspace import MAX_SETS, Workspace, case_bytes

__all__ = ["SAMPLES", "benchmark", "enough", "most_sets", "orders"]

_POOL_BYTES = 256 << 20
_ORDER_BYTES = 96 << 10
_ARGUMENT_BYTES = 56
"""A map order is one packet, and each argument of each set takes at most so many bytes of it."""
_FIRST_MAP = 1000
_LEAST_ROUNDS = 3
_LAST_RESORT = 3
"""A measurement that cannot do even the least rounds stops at so many times the plan's time."""
_STEP = 4
_NO_ROOM = ("out of memory", "allocate memory")
"""What PyTorch says when there is no memory, on a device and on the processor."""


def orders(names: Sequence[str], samples: int, dice: random.Random) -> list[list[str]]:
    """The order of the sides in each sample of a round, in which nobody is always the first.

    Who is first after new content was made finds it farther away than those who follow.
    """
    leading = list(names)
    dice.shuffle(leading)
    found = []
    for sample in range(samples):
        rest = list(names)
        rest.remove(leading[sample % len(leading)])
        dice.shuffle(rest)
        found.append([leading[sample % len(leading)], *rest])
    return found


def most_sets(set_bytes: int, parameters: int, pool_bytes: int, samples: int) -> int:
    """Calls of one side in one sample that memory and the size of an order allow, at least 1."""
    by_order = _ORDER_BYTES // (_ARGUMENT_BYTES * max(1, parameters))
    by_memory = pool_bytes // max(1, set_bytes)
    return max(1, min(MAX_SETS, by_order, by_memory) // samples)


def enough(plan: MeasurementPlan, rounds: int, spent_ns: Span, comparisons: Sequence[Comparison], seed: int) -> bool:
    """Whether to stop after so many rounds: the plan's maxima, or intervals that are narrow enough."""
    if rounds >= plan.max_rounds or spent_ns >= _LAST_RESORT * plan.max_ns:
        return True
    if spent_ns >= plan.max_ns and rounds >= _LEAST_ROUNDS:
        return True
    if rounds < plan.min_rounds or (rounds - plan.min_rounds) % _STEP:
        return False
    for baseline in {one.baseline for one in comparisons}:
        ratios = [log_ratios(one.candidate_ns, one.baseline_ns) for one in comparisons if one.baseline == baseline]
        if not narrow_enough(ratios, plan.target_half_width, confidence=plan.confidence, seed=seed):
            return False
    return True


@dataclass
class _Timed:
    """One case under measurement."""

    space: Workspace
    checked: Checked
    known: Mapping[str, Span]
    """Time of one call of each side, as the check found it."""
    counts: Mapping[str, int]
    """Calls of each side in one sample."""
    times: dict[str, list[Span]] = field(default_factory=dict)
    """Per-round minima of each side."""


class _Bench:
    def __init__(
        self,
        task: LoadedTask,
        secret: bytes,
        candidate: Side,
        baselines: Sequence[Side],
        bytes_per_s: float,
        draws: Draws,
    ) -> None:
        self._task = task
        self._bytes_per_s = bytes_per_s
        self._cores = sorted(os.sched_getaffinity(0))
        self._draws = draws
        self._secret = secret
        self._candidate = candidate
        self._sides = {side.name: side for side in (candidate, *baselines)}
        self._dice = random.Random(draw_seed(secret, "order"))
        self.cases: list[_Timed] = []
        self.samples = SAMPLES
        self._clock: Clock[Any] = HostClock(task)

    def open(self, checked: Mapping[str, Checked], pool_bytes: int, max_ns: Span) -> None:
        """Make the buffers of all timed cases and give them to the boxes."""
        timed = [case for case in self._task.spec.cases if case.timed]
        knowns = [{**checked[case.name].known_ns, REFERENCE: checked[case.name].reference_ns} for case in timed]
        # Sides so slow that three samples of each would leave no time for rounds get one.
        whole = sum(SAMPLES * max(SAMPLE_NS, took) for known in knowns for took in known.values())
        self.samples = SAMPLES if whole * _LEAST_ROUNDS <= max_ns else 1
        calls = DeviceClock.calls if self._task.on_gpu else HostClock.calls
        for number, (case, known) in enumerate(zip(timed, knowns, strict=True)):
            parameters = len(self._task.spec.parameters)
            most = most_sets(case_bytes(self._task, case), parameters, pool_bytes // len(timed), self.samples)
            counts = {name: calls(took, most) for name, took in known.items()}
            sets = self.samples * max(counts.values())
            space = checked[case.name].space
            fits = space.sets >= sets
            if not fits:
                space.close()
                space = Workspace(self._task, case, _FIRST_MAP + number, sets, self._secret + b"timed")
            self.cases.append(_Timed(space, checked[case.name], known, counts))
            if not fits:
                space.refresh(range(space.sets), self._draws)
                for side in self._sides.values():
                    space.attach(side)
        if self._task.on_gpu:
            self._clock = DeviceClock(self._task, [(one.space.case, one.space.sets) for one in self.cases])

    def close(self) -> None:
        self._clock.close()
        for one in self.cases:
            one.space.close()

    def warm_up(self) -> None:
        """One untimed round: pages, caches and threads are where they will be."""
        self.round()
        for one in self.cases:
            one.times.clear()

    def round(self) -> None:
        for one in self.cases:
            self._round(one)

    def _round(self, one: _Timed) -> None:
        space = one.space
        first = self._dice.randrange(len(self._cores))
        turns = orders(list(one.counts), self.samples, self._dice)
        samples: dict[str, list[Any]] = {name: [] for name in one.counts}
        width = space.sets // self.samples
        for sample, names in enumerate(turns):
            start = sample * width
            # A sample's content is made right before it: what a candidate has not seen it cannot have worked on in an
            # earlier call, and what it works on between calls is counted (``meter``). All sides get the same content.
            space.refresh(range(start, start + max(one.counts.values())), self._draws)
            # Left to the scheduler, one side may run on the slower core, or beside somebody else's busy process, for a
            # whole measurement: a difference that no number of rounds averages out. So the n-th sample of every
            # side starts on the same core.
            core = self._cores[(first + sample) % len(self._cores)]
            for name in names:
                indices = range(start, start + one.counts[name])
                if name == REFERENCE:
                    samples[name].append(self._clock.reference(space, indices, core))
                else:
                    samples[name].append(self._clock.call(self._sides[name], space, indices, one.known[name], core))
            self._check(one, range(start, start + one.counts[self._candidate.name]))
        self._candidate.quiet()
        found = {name: self._clock.time_ns(taken) for name, taken in samples.items()}
        floor = floor_ns(space.output_bytes(), self._bytes_per_s)
        if found[self._candidate.name] < floor:
            text = (
                f"case {space.case.name}: a call took {found[self._candidate.name]} ns, and writing its outputs alone "
            )
            raise CandidateFault(VerdictCode.SUSPECT, f"{text}takes more than {floor} ns on this machine")
        for name, took in found.items():
            one.times.setdefault(name, []).append(took)

    def _check(self, one: _Timed, indices: Sequence[int]) -> None:
        space, name = one.space, self._candidate.name
        for index in indices:
            if one.checked.reference_exact:
                # Twice the bounds against the rounded reference: it is within them itself.
                right, slack = self._again(space, index), 2.0
            else:
                right, slack = space.oracle(index), 1.0
            if space.passes(name, index, right, slack):
                continue
            judged = space.judge(name, index, right, slack)
            if not judged.passed:
                raise CandidateFault(VerdictCode.INCORRECT, f"case {judged.case}, a timed call: {judged.detail}")

    def _again(self, space: Workspace, index: int) -> list[torch.Tensor]:
        with self._task.at_full_width():
            return space.reference(index)

    def honest(self) -> None:
        """Raises CandidateFault when the candidate has worked where nobody looked."""
        excess = self._candidate.excess()
        if excess:
            raise CandidateFault(VerdictCode.SUSPECT, f"the candidate works outside its calls: {excess}")

    def roofs(self) -> list[Roof]:
        """What bounds each case, after everything else: nothing foreign is timed any more.

        None when a copy cannot be measured (a case that fills the memory, a device that is shared): the comparisons
        stand without it.
        """
        cases = [one.space.case for one in self.cases]
        try:
            return [
                Roof(case=case.name, moved_bytes=moved_bytes(self._task, case), copy_ns=self._clock.copy_ns(case))
                for case in cases
            ]
        except (ReferenceFault, MemoryError):
            return []
        except RuntimeError as error:
            # PyTorch's only sign that memory is out; any other is a fault of the device and not to be passed over.
            if not any(words in str(error) for words in _NO_ROOM):
                raise
            return []

    def comparisons(self) -> list[Comparison]:
        """What has been measured, every case against every baseline."""
        found = []
        for one in self.cases:
            mine = tuple(one.times.get(self._candidate.name, ()))
            for name in one.counts:
                if name != self._candidate.name:
                    found.append(
                        Comparison(
                            case=one.space.case.name,
                            baseline=name,
                            candidate_ns=mine,
                            baseline_ns=tuple(one.times.get(name, ())),
                        )
                    )
        return found


def benchmark(
    task: LoadedTask,
    secret: bytes,
    plan: MeasurementPlan,
    candidate: Side,
    baselines: Sequence[Side],
    checked: Mapping[str, Checked],
    progress: Callable[[str], None],
    bytes_per_s: float,
    draws: Draws,
    pool_bytes: int = _POOL_BYTES,
) -> tuple[list[Comparison], list[Roof]]:
    """Measure until the plan is content; ``bytes_per_s`` is ``floor.write_rate``. Raises what the sides raise."""
    bench = _Bench(task, secret, candidate, baselines, bytes_per_s, draws)
    seed = draw_seed(secret, "bootstrap")
    began = time.monotonic_ns()
    for side in (candidate, *baselines):
        side.grant(plan.max_ns)
    try:
        bench.open(checked, pool_bytes, plan.max_ns)
        bench.warm_up()
        rounds = 0
        while True:
            rounds += 1
            progress(f"round {rounds}")
            bench.round()
            found = bench.comparisons()
            names = {one.baseline for one in found}
            # Fitness is measured against the task's own baseline; the other is for people.
            main = task.spec.baseline if task.spec.baseline in names else REFERENCE
            telling = [one for one in found if one.baseline in (main, INCUMBENT)]
            if enough(plan, rounds, time.monotonic_ns() - began, telling, seed):
                bench.honest()
                return found, bench.roofs()
    finally:
        bench.close()
        # Those that were not taken over, because opening another failed.
        for one_case in checked.values():
            one_case.space.close()
