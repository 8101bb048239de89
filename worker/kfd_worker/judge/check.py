"""Correctness: every case, secret fresh inputs, every element, smallest case first (evaluation notes, 5.2 and 5.5).

Each case is called with two contents, the first of them again after the other (an answer kept from a call, or
one that depends on what was called before, is wrong then), with buffers that end at a page no one may touch and
with buffers that start at one. Sizes that nobody has declared are drawn where sizes are free. The smallest case
that is not trivial also meets every value family, each timed case one of them that nobody can foretell.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch

from kfd.base.instant import Span
from kfd.base.work import CaseResult, VerdictCode
from kfd.tasks.spec import Case, Role
from kfd_worker.judge.device_plan import NoVariant
from kfd_worker.judge.draws import FAMILIES, Draws, Family
from kfd_worker.judge.faults import BaselineFault, CandidateFault, ReferenceFault
from kfd_worker.judge.floor import SAMPLES, per_call_ns
from kfd_worker.judge.shapes import hidden_cases
from kfd_worker.judge.side import Side
from kfd_worker.judge.taskcode import LoadedTask, draw_seed
from kfd_worker.judge.workspace import Workspace, case_bytes

__all__ = ["DRAWS", "CheckNotes", "Checked", "check"]

DRAWS = 2
"""Contents of each case: the first lies against the guard page behind it, the second against the one before."""
_SMALL_BYTES = 1 << 20
"""A case up to so many bytes is called five times, a larger one three times."""
_KEPT_BYTES = 128 << 20
_HIDDEN_BYTES = 1 << 20
_TELLING = 64
"""Elements of outputs that a case must have to be worth a value family."""
_ROOM = 0.5
"""A family is judged only where the reference itself needs no more than so much of the bounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What the check stage found out about one case, for the benchmark."""

    known_ns: Mapping[str, Span]
    """Least time of one call of each kernel, by the name of its side."""
    reference_ns: Span
    reference_exact: bool
    """Whether the reference itself is within the bounds, so that its outputs can stand in for the oracle's."""
    space: Workspace
    """A timed case's buffers, still open, for the benchmark to use and to close; others are closed."""


@dataclass(slots=True)
class CheckNotes:
    """What is worth telling beside the verdict."""

    skipped: list[str] = field(default_factory=list)
    """Families and drawn sizes that the task's own reference cannot take, with the reason."""
    bitwise: bool = True
    """Whether every repeated call gave the same bits."""


@dataclass(frozen=True, slots=True)
class _Right:
    """What is right for one set, and how the reference did."""

    wants: list[torch.Tensor]
    made: list[torch.Tensor]
    """The reference's own outputs."""
    reference_ns: Span


def check(
    task: LoadedTask,
    secret: bytes,
    candidate: Side,
    baselines: Sequence[Side],
    found: list[CaseResult],
    progress: Callable[[str], None],
    notes: CheckNotes,
    draws: Draws,
) -> dict[str, Checked]:
    """Check all cases; results are appended to ``found`` as they come.

    ``draws`` answers what large draws there are. The spaces of timed cases are the caller's to close.

    Raises CandidateFault (incorrect and others), SideLost, BaselineFault, ReferenceFault.
    """
    checked: dict[str, Checked] = {}
    declared = task.spec.cases
    dice = random.Random(draw_seed(secret, "check"))
    hidden = hidden_cases(declared, dice, lambda case: case_bytes(task, case), _most_bytes(task, declared))
    cases = sorted([*declared, *hidden], key=lambda case: case_bytes(task, case))
    telling = next((case for case in cases if case in declared and _elements(task, case) >= _TELLING), cases[-1])
    done = False
    try:
        for number, case in enumerate(cases):
            progress(f"case {case.name}")
            one = _Case(task, case, number, secret, candidate, baselines if case.timed else (), notes, draws)
            try:
                if case in hidden and not one.usable():
                    continue
                families = list(FAMILIES) if case == telling else [dice.choice(list(FAMILIES))] if case.timed else []
                checked[case.name] = one.run(families)
            except NoVariant as error:
                if case not in hidden:
                    raise CandidateFault(VerdictCode.INCORRECT, f"case {case.name}: {error}") from error
                one.skip(str(error))
            finally:
                if one.result is not None:
                    found.append(one.result)
                if case.name not in checked or not case.timed:
                    one.close()
        done = True
    finally:
        if not done:
            for open_case in checked.values():
                open_case.space.close()
    return checked


def _most_bytes(task: LoadedTask, declared: Sequence[Case]) -> int:
    return min(_HIDDEN_BYTES, max(case_bytes(task, case) for case in declared))


def _elements(task: LoadedTask, case: Case) -> int:
    return sum(array.count for array in task.arrays(case, Role.OUT))


class _Case:
    """One case being checked."""

    def __init__(
        self,
        task: LoadedTask,
        case: Case,
        number: int,
        secret: bytes,
        candidate: Side,
        baselines: Sequence[Side],
        notes: CheckNotes,
        draws: Draws,
    ) -> None:
        self.result: CaseResult | None = None
        self._task = task
        self._case = case
        self._secret = secret
        self._candidate = candidate
        self._sides = [candidate, *baselines]
        self._notes = notes
        self._times: dict[str, list[Span]] = {side.name: [] for side in self._sides}
        self._draws = draws
        # The benchmark needs a set for each sample of a case that takes a while; pages are dear.
        sets = SAMPLES if case.timed and SAMPLES * case_bytes(task, case) <= _KEPT_BYTES else DRAWS
        self._space = Workspace(task, case, number, sets, secret, low=(1,))

    def close(self) -> None:
        """Give the buffers back."""
        self._space.close()

    def usable(self) -> bool:
        """Whether the task itself can take sizes that it did not declare: its own code works, and precisely."""
        try:
            self._space.refresh([0])
            right = self._right(0)
        except ReferenceFault as fault:
            return self.skip(str(fault))
        return self._sound(right)

    def skip(self, reason: str) -> bool:
        """Note why this case is not judged; False."""
        sizes = ", ".join(f"{name}={size}" for name, size in self._case.sizes)
        self._notes.skipped.append(f"{self._case.name} ({sizes}): {reason}"[:300])
        return False

    def _sound(self, right: _Right) -> bool:
        """Whether the reference is finite and well within the bounds here."""
        if not all(bool(torch.isfinite(want).all()) for want in right.wants if want.dtype.is_floating_point):
            return self.skip("the reference is not finite")
        if not self._space.reference_within(right.made, right.wants, _ROOM):
            return self.skip("the reference itself needs most of the bounds")
        return True

    def run(self, families: Sequence[str]) -> Checked:
        """All calls of this case. Raises CandidateFault with incorrect when one is wrong."""
        space = self._space
        # All sets, because scalars of all are bound when they are mapped.
        space.refresh(range(space.sets), self._draws)
        for side in self._sides:
            space.attach(side)
        rights = [self._right(index) for index in range(DRAWS)]
        for side in self._sides[1:]:
            for index, right in enumerate(rights):
                self._order(side, index)
                judged = space.judge(side.name, index, right.wants)
                if not judged.passed:
                    raise BaselineFault(f"the {side.name} kernel is wrong in case {judged.case}: {judged.detail}")
        self._repeat(rights)
        for family in families:
            self._family(family)
        times = {name: min(times) for name, times in self._times.items() if times}
        return Checked(
            known_ns=times,
            reference_ns=min(right.reference_ns for right in rights),
            space=space,
            reference_exact=all(space.reference_within(right.made, right.wants) for right in rights),
        )

    def _repeat(self, rights: Sequence[_Right]) -> None:
        """Each content, the first of them again after the other, small cases more often."""
        small = case_bytes(self._task, self._case) <= _SMALL_BYTES
        seen: dict[int, list[torch.Tensor]] = {}
        for index in (0, 0, 0, 1, 0) if small else (0, 1, 0):
            self._order(self._candidate, index)
            if index in seen and self._space.repeats(self._candidate.name, index, seen[index]):
                # The same bits as what has been judged right.
                continue
            self._judge(index, rights[index].wants, "")
            if index in seen:
                self._notes.bitwise = False
            made = self._space.outputs(self._candidate.name, index)
            seen[index] = [tensor.clone() for tensor in made]

    def _family(self, name: str) -> None:
        family = Family(name, draw_seed(self._secret, "family", self._case.name, name))
        try:
            self._space.refresh([0], Draws(family.fill, least=1, dtypes=(torch.float32, torch.float64)))
            right = self._right(0)
        except ReferenceFault as fault:
            self._notes.skipped.append(f"{name} values in {self._case.name}: {fault}"[:300])
            return
        if not family.served:
            self._notes.skipped.append(f"{name} values in {self._case.name}: make_inputs draws no floats that we know")
            return
        held = len(self._notes.skipped)
        if not self._sound(right):
            self._notes.skipped[held] = f"{name} values in {self._notes.skipped[held]}"
            return
        self._space.rebind(self._candidate)
        self._order(self._candidate, 0)
        self._judge(0, right.wants, f"{name} values: ")
        if name == "integers" and all(map(_no_rounding, right.made, right.wants)):
            self._exact(right.wants)

    def _exact(self, wants: Sequence[torch.Tensor]) -> None:
        """Small whole numbers in, whole numbers out: no rounding, so that a term left out cannot hide."""
        made = self._space.outputs(self._candidate.name, 0)
        for got, want, parameter in zip(made, wants, self._task.outputs(), strict=True):
            if not got.dtype.is_floating_point or not _whole(want, got.dtype):
                continue
            error = float((got.to(torch.float64) - want).abs().max()) if got.numel() else 0.0
            if not error <= 0.25:
                detail = (
                    f"{parameter.name}: small whole numbers in must give whole numbers out; one is off by {error:.4g}"
                )
                assert self.result is not None
                self.result = replace(self.result, passed=False, detail=f"integers values: {detail}")
                raise CandidateFault(VerdictCode.INCORRECT, f"case {self._case.name}: {self.result.detail}")

    def _right(self, index: int) -> _Right:
        space = self._space
        wants = space.oracle(index)
        with self._task.at_full_width():
            began = time.monotonic_ns()
            made = space.reference(index)
            took = time.monotonic_ns() - began
        return _Right(wants, made, took)

    def _order(self, side: Side, index: int) -> None:
        """One call of one set."""
        space = self._space
        space.arm(side.name, [index])
        took = side.call(space.number, [index])
        space.glance(side.name, [index])
        self._times[side.name].append(per_call_ns(took, side.overhead_ns, 1))
        side.quiet()

    def _judge(self, index: int, wants: Sequence[torch.Tensor], what: str) -> None:
        judged = self._space.judge(self._candidate.name, index, wants)
        if not judged.passed:
            self.result = replace(judged, detail=f"{what}{judged.detail}")
            raise CandidateFault(VerdictCode.INCORRECT, f"case {self._case.name}: {self.result.detail}")
        if self.result is None or judged.worst >= self.result.worst:
            self.result = judged


def _no_rounding(made: torch.Tensor, want: torch.Tensor) -> bool:
    return torch.equal(made.to(want.dtype), want)


def _whole(want: torch.Tensor, dtype: torch.dtype) -> bool:
    """Whether all values are whole numbers that the type holds without rounding, and so are all below them."""
    if not want.numel():
        return False
    exact = 2.0 ** {torch.float32: 24, torch.float64: 53, torch.float16: 11, torch.bfloat16: 8}[dtype]
    # A quarter of the room is left for sums on the way.
    return bool((want == want.round()).all()) and float(want.abs().max()) <= exact / 4
