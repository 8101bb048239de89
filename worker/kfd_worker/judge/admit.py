"""Whether a task can tell right from wrong (evaluation notes, 5.1). Run once for each task before any candidate.

Every wrong answer that costs nothing must fail the comparison that will be used: in each timed case, because a
kernel can see by the sizes which case it is in (a task has at least one); so must the reference without any one of its
operations. A task that would take one is refused
with the reason, and no candidate is blamed. The noise of the reference against itself
is measured here too.

``python -m kfd_worker.judge.admit TASK_FOLDER`` does the same by hand.
"""

from __future__ import annotations

import math
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from kfd.base.failure import KfdError
from kfd.base.instant import SECOND, Span
from kfd.base.measure import estimate, log_ratios
from kfd.base.work import AdmitResult, Probe
from kfd.tasks import pack
from kfd.tasks.spec import Case, Role
from kfd_worker.judge.arena import DTYPES
from kfd_worker.judge.compare import compare
from kfd_worker.judge.draws import FAMILIES, Draws, Family
from kfd_worker.judge.faults import ReferenceFault
from kfd_worker.judge.gpu_clock import round_time_ns
from kfd_worker.judge.gpu_reference import GpuReference
from kfd_worker.judge.removed import Without, operations
from kfd_worker.judge.taskcode import LoadedTask, Values, draw_seed
from kfd_worker.judge.wrong import Wrong, wrong_answers

__all__ = ["ADMISSION_VERSION", "Admission", "CaseProbe", "admit", "judged", "main"]

ADMISSION_VERSION = 2
"""Grows with everything that can change an admission, so that one kept from an older judge is not used."""

_NOISE_NS: Span = 2 * SECOND
_NOISE_ROUNDS = 12
_SAMPLES = 3
_DEVICE_CALLS = 8
_SECRET = b"admission"
_REFERENCE = "reference"
_MAX_PROBES = 64
_MAX_DETAIL = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseProbe:
    """One question put to one case."""

    case: str
    name: str
    sound: bool
    """Whether the task stood the probe: the wrong answer was refused, the reference did as it should."""
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """Whether a task is fit to judge candidates."""

    reason: str
    """Why not, and what to change; empty when it is."""
    probes: tuple[CaseProbe, ...]
    noise_floor: float
    """Reference against itself: the far end of the interval of the log ratio; 0 when nothing was timed."""
    reference_error: float
    """The reference's own largest error over its bound, against double precision; at most 1 is within."""

    @property
    def admitted(self) -> bool:
        """Whether candidates may be judged by this task."""
        return not self.reason

    def result(self, cases: Sequence[Case]) -> AdmitResult:
        """As a report's detail."""
        probes = judged(cases, self.probes)
        shown = tuple(Probe(name=one.name[:80], passed=one.passed, detail=one.detail[:_MAX_DETAIL]) for one in probes)
        return AdmitResult(probes=shown, noise_floor=self.noise_floor)

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "version": ADMISSION_VERSION,
            "reason": self.reason,
            "probes": [[one.case, one.name, one.sound, one.text] for one in self.probes],
            "noise_floor": self.noise_floor,
            "reference_error": self.reference_error if math.isfinite(self.reference_error) else -1.0,
        }

    @classmethod
    def from_json(cls, data: object) -> Admission | None:
        """From plain values; None when they are not ours or of another version."""
        try:
            if not isinstance(data, dict) or data["version"] != ADMISSION_VERSION:
                return None
            return cls(
                reason=str(data["reason"]),
                probes=tuple(
                    CaseProbe(case=str(case), name=str(name), sound=bool(sound), text=str(text))
                    for case, name, sound, text in data["probes"]
                ),
                noise_floor=float(data["noise_floor"]),
                reference_error=float(data["reference_error"]),
            )
        except (KeyError, TypeError, ValueError):
            return None


@dataclass(frozen=True, slots=True)
class _Draw:
    values: Values
    wants: list[torch.Tensor]


def admit(task: LoadedTask, progress: Callable[[str], None], secret: bytes = _SECRET) -> Admission:
    """Probe a task. Raises ReferenceFault when its code fails; everything else is in the admission."""
    cases = task.spec.cases
    probes: list[CaseProbe] = []
    worst = 0.0
    for case in cases:
        progress(f"admission of case {case.name}")
        found, error = _probe_case(task, case, secret)
        probes += found
        worst = max(worst, error)
    reason = _reason(task, judged(cases, probes))
    progress("the noise of the reference")
    noise = 0.0 if reason else _noise(task, secret)
    return Admission(reason=reason, probes=tuple(probes), noise_floor=noise, reference_error=worst)


def judged(cases: Sequence[Case], probes: Sequence[CaseProbe]) -> tuple[Probe, ...]:
    """What the probes of all cases say about the task, one answer for each name, in order of appearance.

    The reference must do as it should in every case. A wrong answer must fail in each timed case, because a kernel
    can see by the sizes which case it is in; a case that is only checked may be degenerate.
    """
    timed = {case.name for case in cases if case.timed}
    found = []
    for name in dict.fromkeys(one.name for one in probes):
        bad = [one for one in probes if one.name == name and not one.sound]
        if not name.startswith(_REFERENCE):
            bad = [one for one in bad if one.case in timed]
        where = ", ".join(dict.fromkeys(one.case for one in bad))
        found.append(Probe(name=name, passed=not bad, detail=f"case {where}: {bad[0].text}" if bad else ""))
    return tuple(found[:_MAX_PROBES])


def _reason(task: LoadedTask, probes: Sequence[Probe]) -> str:
    bad = next((one for one in probes if not one.passed), None)
    if bad is None:
        return ""
    if bad.name.startswith(_REFERENCE):
        return f"task {task.spec.name}, {bad.detail}"
    return (
        f"the comparison of task {task.spec.name} would take a wrong answer, {bad.detail}. Change make_inputs or the "
        "sizes so that the right answer differs more from it, choose a narrower tolerance class, or mark the case "
        '"timed": False'
    )


def _probe_case(task: LoadedTask, case: Case, secret: bytes) -> tuple[list[CaseProbe], float]:
    draws = []
    for number in range(3):
        values = task.inputs(case, draw_seed(secret, "admission", case.name, number))
        draws.append(_Draw(values, task.oracle(case, _copies(values))))
    probes, error = _probe_reference(task, case, draws[0])
    if not all(one.sound for one in probes):
        return probes, error
    for wrong in wrong_answers(
        [parameter.name for parameter in task.outputs()],
        [DTYPES[parameter.dtype] for parameter in task.outputs()],
        [(draw.values, draw.wants) for draw in draws],
    ):
        probes.append(_probe_wrong(task, case, wrong, draws))
    return [*probes, *_probe_removed(task, case, draws, secret)], error


def _probe_removed(task: LoadedTask, case: Case, draws: Sequence[_Draw], secret: bytes) -> list[CaseProbe]:
    """The reference without one of its operations must fail on some content that candidates will meet."""
    found = []
    names = operations(lambda: task.oracle(case, _copies(draws[0].values)))
    contents = _Contents(task, case, draws, secret)
    for number, name in enumerate(names):
        caught = any(_differs(task, case, draw, number) for draw in contents)
        text = "" if caught else f"the reference without its operation {number + 1} ({name})"
        found.append(CaseProbe(case=case.name, name=f"operation {number + 1} ({name})", sound=caught, text=text))
    return found


class _Contents:
    """The draws of a case and then the value families of the check, made when they are first asked for."""

    def __init__(self, task: LoadedTask, case: Case, draws: Sequence[_Draw], secret: bytes) -> None:
        self._task, self._case, self._secret = task, case, secret
        self._made = list(draws)
        self._families = list(FAMILIES)

    def __iter__(self) -> Iterator[_Draw]:
        yield from self._made
        while self._families:
            name = self._families.pop(0)
            family = Family(name, draw_seed(self._secret, "family", self._case.name, name))
            draws = Draws(family.fill, least=1, dtypes=(torch.float32, torch.float64))
            try:
                values = self._task.inputs(self._case, draw_seed(self._secret, "removed", self._case.name, name), draws)
                draw = _Draw(values, self._task.oracle(self._case, _copies(values)))
            except ReferenceFault:
                # A family that the task's own code cannot take is not used in the check either.
                continue
            if family.served and all(bool(torch.isfinite(want).all()) for want in draw.wants):
                self._made.append(draw)
                yield draw


def _differs(task: LoadedTask, case: Case, draw: _Draw, number: int) -> bool:
    """Whether the comparison refuses the reference without one operation on a content."""
    try:
        with Without(number):
            made = task.oracle(case, _copies(draw.values))
    except ReferenceFault:
        return True
    rounded = (one.to(DTYPES[parameter.dtype]) for one, parameter in zip(made, task.outputs(), strict=True))
    return any(
        not compare(one, want, task.spec.tolerance).passed for one, want in zip(rounded, draw.wants, strict=True)
    )


def _probe_wrong(task: LoadedTask, case: Case, wrong: Wrong, draws: Sequence[_Draw]) -> CaseProbe:
    for number, made in wrong.answers():
        if not compare(made, draws[number].wants[wrong.output], task.spec.tolerance).passed:
            return CaseProbe(case=case.name, name=wrong.name, sound=True)
    return CaseProbe(case=case.name, name=wrong.name, sound=False, text=wrong.text)


def _probe_reference(task: LoadedTask, case: Case, draw: _Draw) -> tuple[list[CaseProbe], float]:
    """The reference is finite, reproducible, of the right types, and leaves its inputs alone."""

    def probe(name: str, text: str) -> CaseProbe:
        return CaseProbe(case=case.name, name=f"{_REFERENCE} {name}", sound=not text, text=text)

    made = []
    for _ in range(2):
        values = _copies(draw.values)
        with task.at_full_width():
            made.append([tensor.clone() for tensor in task.reference(case, values)])
    first, second = made
    names = [parameter.name for parameter in task.outputs()]
    types = finite = repeat = ""
    error = 0.0
    for name, parameter, one, other, want in zip(names, task.outputs(), first, second, draw.wants, strict=True):
        if one.dtype != DTYPES[parameter.dtype]:
            types = types or f"the reference gives {name} as {one.dtype}, the interface says {parameter.dtype}"
            continue
        if one.dtype.is_floating_point and not bool(torch.isfinite(want).all()):
            finite = finite or f"the reference's {name} is not finite for inputs that make_inputs makes"
            continue
        repeated = compare(other, one, task.spec.tolerance)
        if not repeated.passed:
            repeat = repeat or f"the reference gives different answers for the same inputs: {name}: {repeated.detail}"
        error = max(error, compare(one, want, task.spec.tolerance).worst)
    changed = [name for name, value in draw.values.items() if not _same(value, values[name])]
    writes = f"the reference changes its input {changed[0]}; it must leave inputs as they are" if changed else ""
    empty = [array.name for array in task.arrays(case, Role.OUT) if not array.count]
    nothing = f"the output {empty[0]} has no element" if empty else ""
    return [
        probe("types", types),
        probe("finite", finite),
        probe("reproducible", repeat),
        probe("inputs unchanged", writes),
        probe("not empty", nothing),
    ], error


def _copies(values: Values) -> Values:
    return {name: value.clone() if isinstance(value, torch.Tensor) else value for name, value in values.items()}


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor):
        # As bytes, because a NaN differs from itself.
        left, right = (tensor.contiguous().reshape(-1).view(torch.uint8) for tensor in (one, other))
        return torch.equal(left, right)
    return bool(one == other)


def _noise(task: LoadedTask, secret: bytes) -> float:
    """Reference against itself in interleaved rounds: how far from 1 the ratio may seem to be."""
    ratios = []
    timed = [case for case in task.spec.cases if case.timed]
    for case in timed:
        values = task.inputs(case, draw_seed(secret, "noise", case.name))
        with task.at_full_width():
            times = list(_rounds(task, case, values, _NOISE_NS // len(timed)))
        if len(times) >= 2:
            ratios.append(log_ratios([one for one, _ in times], [other for _, other in times]))
    if not ratios:
        return 0.0
    found = estimate(ratios, seed=draw_seed(secret, "noise"))
    return max(abs(found.low), abs(found.high))


def _rounds(task: LoadedTask, case: Case, values: Values, most_ns: Span) -> Iterator[tuple[Span, Span]]:
    if task.on_gpu:
        yield from _device_rounds(task, case, values, most_ns)
        return
    dice = random.Random(0)
    began = time.monotonic_ns()
    for _ in range(_NOISE_ROUNDS):
        order = [0, 1] * _SAMPLES
        dice.shuffle(order)
        best = [0, 0]
        for side in order:
            start = time.monotonic_ns()
            task.reference(case, values)
            took = max(1, time.monotonic_ns() - start)
            best[side] = min(best[side] or took, took)
        yield best[0], best[1]
        if time.monotonic_ns() - began > most_ns:
            return


def _device_rounds(task: LoadedTask, case: Case, values: Values, most_ns: Span) -> Iterator[tuple[Span, Span]]:
    """The same by the device's events, as candidates are timed."""
    reference = GpuReference(task, case, 1)
    began = time.monotonic_ns()
    try:
        reference.refresh(0, values)
        for _ in range(_NOISE_ROUNDS):
            one, other = (round_time_ns([reference.call([0] * _DEVICE_CALLS, tf32=False)]) for _ in range(2))
            yield one, other
            if time.monotonic_ns() - began > most_ns:
                return
    finally:
        reference.close()


def main(arguments: Sequence[str] | None = None) -> int:
    """Probe a task folder and print one line for each probe; 0 when it is admitted."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if len(given) != 1:
        sys.stderr.write("usage: python -m kfd_worker.judge.admit TASK_FOLDER\n")
        return 2
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    with tempfile.TemporaryDirectory(prefix="kfd-admit-") as scratch:
        try:
            task = LoadedTask(pack(Path(given[0])), Path(scratch), len(os.sched_getaffinity(0)))
            found = admit(task, lambda _: None)
        except (ReferenceFault, KfdError, OSError) as error:
            sys.stdout.write(f"refused: {error}\n")
            return 1
    for one in found.probes:
        sys.stdout.write(
            f"{'ok  ' if one.sound else 'TAKEN'} {one.case}: {one.name}{': ' if one.text else ''}{one.text}\n"
        )
    sys.stdout.write(
        f"noise floor {found.noise_floor:.4f}, the reference's own error {found.reference_error:.3g} of its bound\n"
    )
    sys.stdout.write("admitted\n" if found.admitted else f"refused: {found.reason}\n")
    return 0 if found.admitted else 1


if __name__ == "__main__":
    sys.exit(main())
