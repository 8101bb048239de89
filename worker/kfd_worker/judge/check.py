"""Correctness: every case, secret fresh inputs, every element, smallest case first."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from kfd.base.instant import Span
from kfd.base.work import CaseResult, VerdictCode
from kfd_worker.judge.faults import BaselineFault, CandidateFault
from kfd_worker.judge.side import Side
from kfd_worker.judge.taskcode import LoadedTask
from kfd_worker.judge.workspace import Workspace, case_bytes

__all__ = ["DRAWS", "Checked", "check"]

DRAWS = 2
"""Calls of each case, with different content: an answer kept from the first call is wrong in the second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What the check stage found out about one case, for the benchmark."""

    candidate_ns: Span
    initial_ns: Span
    reference_ns: Span
    """Least time of one call of each side; 0 where the side does not exist."""
    reference_exact: bool
    """Whether the reference itself is within the bounds, so that its outputs can stand in for the oracle's."""


def check(
    task: LoadedTask,
    secret: bytes,
    candidate: Side,
    initial: Side | None,
    found: list[CaseResult],
    progress: Callable[[str], None],
) -> dict[str, Checked]:
    """Check all cases; results are appended to ``found`` as they come.

    Raises CandidateFault (incorrect and others), SideLost, BaselineFault, ReferenceFault.
    """
    checked: dict[str, Checked] = {}
    cases = sorted(task.spec.cases, key=lambda case: case_bytes(task, case))
    for number, case in enumerate(cases):
        progress(f"case {case.name}")
        space = Workspace(task, case, number, DRAWS, secret)
        try:
            result, one = _check_case(space, candidate, initial if case.timed else None)
        finally:
            space.close()
        found.append(result)
        if not result.passed:
            raise CandidateFault(VerdictCode.INCORRECT, f"case {case.name}: {result.detail}")
        checked[case.name] = one
    return checked


def _check_case(space: Workspace, candidate: Side, initial: Side | None) -> tuple[CaseResult, Checked]:
    sides = [candidate] + ([initial] if initial is not None else [])
    space.refresh(range(DRAWS))
    for side in sides:
        space.attach(side)
    times: dict[str, list[Span]] = {side.name: [] for side in sides}
    reference_ns: list[Span] = []
    reference_exact = True
    result = None
    for index in range(DRAWS):
        wants = space.oracle(index)
        began = time.monotonic_ns()
        made = space.reference(index)
        reference_ns.append(time.monotonic_ns() - began)
        reference_exact &= space.reference_error(made, wants).passed
        for side in sides:
            space.arm(side.name, [index])
            took = side.call(space.number, [index])
            space.glance(side.name, [index])
            times[side.name].append(max(1, took - side.overhead_ns))
            judged = space.judge(side.name, index, wants)
            side.quiet()
            if side is not candidate:
                if not judged.passed:
                    raise BaselineFault(f"the initial kernel is wrong in case {judged.case}: {judged.detail}")
                continue
            if not judged.passed:
                return judged, Checked(candidate_ns=0, initial_ns=0, reference_ns=0, reference_exact=False)
            if result is None or judged.worst >= result.worst:
                result = judged
    assert result is not None
    return result, Checked(
        candidate_ns=min(times[candidate.name]),
        initial_ns=min(times[initial.name]) if initial is not None else 0,
        reference_ns=min(reference_ns),
        reference_exact=reference_exact,
    )
