"""Timing by interleaved rounds (evaluation notes, 4.4). Every timed call has new content and is checked.

A round takes three samples of each side, candidate, initial kernel and reference, in an order nobody can
foretell; the least of the three is the side's time of the round. A sample is one order to a box that names as
many sets as make it at least ``SAMPLE_NS`` long, each with content of its own; its time is the judge's clock
around the order, less what an empty order took before foreign code was loaded, divided by the number of sets.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from kfd.base.instant import MILLISECOND, SECOND, Span
from kfd.base.measure import log_ratios, narrow_enough
from kfd.base.work import Comparison, MeasurementPlan, VerdictCode
from kfd_worker.judge.check import Checked
from kfd_worker.judge.faults import CandidateFault
from kfd_worker.judge.side import CANDIDATE, INITIAL, Side
from kfd_worker.judge.taskcode import LoadedTask, draw_seed
from kfd_worker.judge.workspace import MAX_SETS, Workspace, case_bytes

__all__ = ["REFERENCE", "SAMPLES", "SAMPLE_NS", "benchmark", "enough", "repeats"]

REFERENCE = "reference"
SAMPLES = 3
SAMPLE_NS: Span = 2 * MILLISECOND
_POOL_BYTES = 256 << 20
_FIRST_MAP = 1000
_LEAST_ROUNDS = 3
_LAST_RESORT = 3
"""A measurement that cannot do even the least rounds stops at so many times the plan's time."""
_PATIENCE = 20
"""A timed call may take so many times what it took when it was checked, and a second more."""
_STEP = 4


def repeats(one_call_ns: Span, most: int) -> int:
    """Calls in one sample so that it lasts ``SAMPLE_NS``, at least 1 and at most ``most``."""
    return max(1, min(most, -(-SAMPLE_NS // max(1, one_call_ns))))


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
    def __init__(self, task: LoadedTask, secret: bytes, candidate: Side, initial: Side | None) -> None:
        self._task = task
        self._secret = secret
        self._candidate = candidate
        self._sides = {side.name: side for side in (candidate, initial) if side is not None}
        self._dice = random.Random(draw_seed(secret, "order"))
        self.cases: list[_Timed] = []
        self.samples = SAMPLES

    def open(self, checked: Mapping[str, Checked], pool_bytes: int, max_ns: Span) -> None:
        """Make the buffers of all timed cases and give them to the boxes."""
        timed = [case for case in self._task.spec.cases if case.timed]
        calls = [_known(checked[case.name], self._sides) for case in timed]
        # Sides so slow that three samples of each would leave no time for rounds get one.
        whole = sum(SAMPLES * max(SAMPLE_NS, took) for known in calls for took in known.values())
        self.samples = SAMPLES if whole * _LEAST_ROUNDS <= max_ns else 1
        for number, (case, known) in enumerate(zip(timed, calls, strict=True)):
            room = pool_bytes // len(timed) // max(1, case_bytes(self._task, case)) // self.samples
            most = max(1, min(MAX_SETS // self.samples, room))
            counts = {name: repeats(took, most) for name, took in known.items()}
            sets = self.samples * max(counts.values())
            space = Workspace(self._task, case, _FIRST_MAP + number, sets, self._secret + b"timed")
            self.cases.append(_Timed(space, checked[case.name], known, counts))
            space.refresh(range(space.sets))
            for side in self._sides.values():
                space.attach(side)

    def close(self) -> None:
        for one in self.cases:
            one.space.close()

    def warm_up(self) -> None:
        """One untimed round: pages, caches and threads are where they will be."""
        for one in self.cases:
            self._round(one)
            one.times.clear()

    def round(self) -> None:
        for one in self.cases:
            one.space.refresh(range(one.space.sets))
            for side in self._sides.values():
                one.space.rebind(side)
            self._round(one)

    def _round(self, one: _Timed) -> None:
        space = one.space
        wants: dict[int, list[object]] = {}
        order = [(name, sample) for name in one.counts for sample in range(self.samples)]
        self._dice.shuffle(order)
        best: dict[str, Span] = {}
        width = space.sets // self.samples
        for name, sample in order:
            indices = range(sample * width, sample * width + one.counts[name])
            if name == REFERENCE:
                took = self._reference(space, indices, wants)
            else:
                took = self._call(space, name, indices, one.known[name])
            best[name] = min(best.get(name, took), took)
        self._check(one, wants)
        for name, took in best.items():
            one.times.setdefault(name, []).append(took)

    def _reference(self, space: Workspace, indices: Sequence[int], wants: dict[int, list[object]]) -> Span:
        made = []
        began = time.monotonic_ns()
        for index in indices:
            made.append(space.reference(index))
        took = time.monotonic_ns() - began
        wants.update(zip(indices, made, strict=True))  # type: ignore[arg-type]
        return max(1, took // len(indices))

    def _call(self, space: Workspace, name: str, indices: Sequence[int], known_ns: Span) -> Span:
        side = self._sides[name]
        space.arm(name, indices)
        took = side.call(space.number, indices, _PATIENCE * len(indices) * known_ns + SECOND)
        space.glance(name, indices)
        return max(1, (took - side.overhead_ns) // len(indices))

    def _check(self, one: _Timed, wants: dict[int, list[object]]) -> None:
        space, name = one.space, self._candidate.name
        width = space.sets // self.samples
        for sample in range(self.samples):
            for index in range(sample * width, sample * width + one.counts[name]):
                if one.checked.reference_exact:
                    # Twice the bounds against the rounded reference: it is within them itself.
                    right = wants.get(index) or space.reference(index)
                    judged = space.judge(name, index, right, slack=2.0)  # type: ignore[arg-type]
                else:
                    judged = space.judge(name, index, space.oracle(index))
                if not judged.passed:
                    raise CandidateFault(VerdictCode.INCORRECT, f"case {judged.case}, a timed call: {judged.detail}")
        self._candidate.quiet()

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


def _known(checked: Checked, sides: Mapping[str, Side]) -> dict[str, Span]:
    times = {CANDIDATE: checked.candidate_ns, INITIAL: checked.initial_ns}
    return {**{name: times[name] for name in sides}, REFERENCE: checked.reference_ns}


def benchmark(
    task: LoadedTask,
    secret: bytes,
    plan: MeasurementPlan,
    candidate: Side,
    initial: Side | None,
    checked: Mapping[str, Checked],
    progress: Callable[[str], None],
    pool_bytes: int = _POOL_BYTES,
) -> list[Comparison]:
    """Measure until the plan is content. Raises what the sides raise."""
    if not any(case.timed for case in task.spec.cases):
        return []
    bench = _Bench(task, secret, candidate, initial)
    seed = draw_seed(secret, "bootstrap")
    began = time.monotonic_ns()
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
            telling = [one for one in found if one.baseline == main]
            if enough(plan, rounds, time.monotonic_ns() - began, telling, seed):
                return found
    finally:
        bench.close()
