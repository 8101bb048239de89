"""Everything one case needs while it runs: shared inputs, each side's outputs, fresh content, checks."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from kfd.base.work import CaseResult, VerdictCode
from kfd.tasks.spec import Case, Role
from kfd_worker.judge.arena import DTYPES, Arena
from kfd_worker.judge.compare import Difference, compare, poison, poison_left, slack_touched, within
from kfd_worker.judge.draws import Draws
from kfd_worker.judge.faults import CandidateFault, ReferenceFault
from kfd_worker.judge.side import Side
from kfd_worker.judge.taskcode import LoadedTask, Values, draw_seed

__all__ = ["MAX_SETS", "Workspace"]

MAX_SETS = 288
"""Sets of one case: enough that a call of a microsecond is timed in a sample of a hundred of them."""
_PROBES = 64


@dataclass
class _Marks:
    """What the judge knows of one set's outputs before and right after a call."""

    poison: dict[str, int] = field(default_factory=dict)
    pattern: int = 0
    probes: dict[str, torch.Tensor] = field(default_factory=dict)
    seen: dict[str, torch.Tensor] = field(default_factory=dict)


class Workspace:
    """Buffers of one case for a number of sets; each set is the content of one call."""

    def __init__(
        self, task: LoadedTask, case: Case, number: int, sets: int, secret: bytes, low: Collection[int] = ()
    ) -> None:
        self.case = case
        self.number = number
        """Number of this case's map in the boxes."""
        self.sets = sets
        self._task = task
        self._secret = secret
        self._low = low
        self._draws = 0
        self._places = torch.Generator().manual_seed(secrets.randbits(63))
        self._inputs = Arena(f"in-{number}", task.arrays(case, Role.IN), sets, writable=False, low=low)
        self._outputs: dict[str, Arena] = {}
        self._scalars: list[Values] = [{} for _ in range(sets)]
        self._marks: dict[str, list[_Marks]] = {}

    def close(self) -> None:
        """Give the memory back."""
        for arena in (self._inputs, *self._outputs.values()):
            arena.close()

    # Content.

    def refresh(self, indices: Sequence[int], draws: Draws | None = None) -> None:
        """New content, never seen before, for these sets; random draws answered by ``draws`` when given.

        Scalars are bound at mapping: see ``rebind``.
        """
        for index in indices:
            self._draws += 1
            seed = draw_seed(self._secret, "inputs", self.case.name, self._draws)
            values = self._task.inputs(self.case, seed, draws)
            for name, region in self._inputs.regions[index].items():
                region.tensor.copy_(values.pop(name))
            self._scalars[index] = values

    def values(self, index: int) -> Values:
        """The inputs of a set as the candidate sees them."""
        tensors = {name: region.tensor for name, region in self._inputs.regions[index].items()}
        return {**tensors, **self._scalars[index]}

    def attach(self, side: Side) -> None:
        """Give a side outputs of its own and map everything in its box."""
        outputs = Arena(
            f"out-{self.number}", self._task.arrays(self.case, Role.OUT), self.sets, writable=True, low=self._low
        )
        self._outputs[side.name] = outputs
        self._marks[side.name] = [_Marks() for _ in range(self.sets)]
        self._map(side)

    def rebind(self, side: Side) -> None:
        """Tell a side the scalars of the present content; needed after each refresh when there are any."""
        if self._has_scalars():
            self._map(side)

    def _has_scalars(self) -> bool:
        return any(parameter.role is Role.SCALAR for parameter in self._task.spec.parameters)

    def _map(self, side: Side) -> None:
        outputs = self._outputs[side.name]
        side.map(
            self.number,
            [self._arguments(index, outputs) for index in range(self.sets)],
            (self._inputs.fd, outputs.fd),
            dict(self.case.sizes),
        )

    def _arguments(self, index: int, outputs: Arena) -> list[list[Any]]:
        sizes = dict(self.case.sizes)
        made: list[list[Any]] = []
        for parameter in self._task.spec.parameters:
            if parameter.role is Role.SIZE:
                made.append(["scalar", "int64", sizes[parameter.name]])
            elif parameter.role is Role.SCALAR:
                made.append(["scalar", parameter.dtype, self._scalars[index][parameter.name]])
            else:
                arena = self._inputs if parameter.role is Role.IN else outputs
                region = arena.regions[index][parameter.name]
                made.append(
                    [
                        "array",
                        int(parameter.role is Role.OUT),
                        region.offset,
                        region.spec.pages,
                        region.start,
                        parameter.role is Role.OUT,
                    ]
                )
        return made

    # Calls.

    def arm(self, side: str, indices: Sequence[int]) -> None:
        """Poison outputs and choose where to look right after the call."""
        for index in indices:
            marks = self._marks[side][index]
            marks.pattern = secrets.randbelow(255) + 1
            for name, region in self._outputs[side].regions[index].items():
                marks.poison[name] = poison(region.tensor, secrets.randbits(62))
                for part in region.slack:
                    part.fill_(marks.pattern)
                count = region.tensor.numel()
                places = torch.randint(count, (min(count, _PROBES),), generator=self._places)
                # The very last element is where a late thread is seen most easily.
                places[0] = count - 1
                marks.probes[name] = places

    def glance(self, side: str, indices: Sequence[int]) -> None:
        """Remember some elements now: they must not change after the call has returned."""
        for index in indices:
            marks = self._marks[side][index]
            for name, region in self._outputs[side].regions[index].items():
                marks.seen[name] = region.tensor.flatten()[marks.probes[name]]

    def passes(self, side: str, index: int, wants: Sequence[torch.Tensor], slack: float = 1.0) -> bool:
        """Whether a side's outputs of one set are certainly right, element by element; else ``judge`` must say.

        Raises CandidateFault when an output has changed since the call returned.
        """
        marks = self._marks[side][index]
        tolerance = self._task.spec.tolerance
        for (name, region), want in zip(self._outputs[side].regions[index].items(), wants, strict=True):
            self._unchanged(marks, name, region.tensor)
            if slack_touched(region.slack, marks.pattern) or not within(region.tensor, want, tolerance, slack=slack):
                return False
        return True

    def repeats(self, side: str, index: int, before: Sequence[torch.Tensor]) -> bool:
        """Whether a side's outputs of one set are what they were before, bit by bit, and nothing beside them written.

        Raises CandidateFault when an output has changed since the call returned.
        """
        marks = self._marks[side][index]
        for (name, region), old in zip(self._outputs[side].regions[index].items(), before, strict=True):
            self._unchanged(marks, name, region.tensor)
            if slack_touched(region.slack, marks.pattern) or not torch.equal(_bits(region.tensor), _bits(old)):
                return False
        return True

    def judge(self, side: str, index: int, wants: Sequence[torch.Tensor], slack: float = 1.0) -> CaseResult:
        """Compare a side's outputs of one set with what is right, element by element, and measure the errors."""
        marks = self._marks[side][index]
        relative = worst = 0.0
        for (name, region), want in zip(self._outputs[side].regions[index].items(), wants, strict=True):
            difference = self._judge_one(marks, name, region.tensor, want, slack)
            touched = slack_touched(region.slack, marks.pattern)
            if touched:
                difference = Difference(
                    False, difference.relative_l2, difference.worst, f"bytes {touched} the output {name} were written"
                )
            relative, worst = max(relative, difference.relative_l2), max(worst, difference.worst)
            if not difference.passed:
                return CaseResult(
                    case=self.case.name,
                    passed=False,
                    relative_l2=difference.relative_l2,
                    worst=difference.worst,
                    detail=f"{name}: {difference.detail}",
                )
        return CaseResult(case=self.case.name, passed=True, relative_l2=relative, worst=worst)

    def _judge_one(self, marks: _Marks, name: str, got: torch.Tensor, want: torch.Tensor, slack: float) -> Difference:
        self._unchanged(marks, name, got)
        difference = compare(got, want, self._task.spec.tolerance, slack=slack)
        # A float's poison is a NaN and fails above; it is told apart for the reader. An integer's may be lawful.
        left = 0 if difference.passed else poison_left(got, marks.poison[name])
        if left:
            text = f"{left} of {got.numel()} values were never written"
            return Difference(False, difference.relative_l2, difference.worst, text)
        return difference

    def _unchanged(self, marks: _Marks, name: str, got: torch.Tensor) -> None:
        seen, now = marks.seen.get(name), got.flatten()[marks.probes[name]]
        if seen is not None and not torch.equal(_bits(seen), _bits(now)):
            raise CandidateFault(VerdictCode.SUSPECT, f"the output {name} changed after the call had returned")

    # What is right.

    def oracle(self, index: int) -> list[torch.Tensor]:
        """Outputs in double precision for a set."""
        return self._task.oracle(self.case, self.values(index))

    def reference(self, index: int) -> list[torch.Tensor]:
        """Outputs of the reference as the user wrote it."""
        return self._task.reference(self.case, self.values(index))

    def output_bytes(self) -> int:
        """Bytes that every call must write."""
        return sum(array.nbytes for array in self._task.arrays(self.case, Role.OUT))

    def outputs(self, side: str, index: int) -> list[torch.Tensor]:
        """A side's outputs of one set, as they lie in shared memory."""
        return [region.tensor for region in self._outputs[side].regions[index].values()]

    def reference_within(self, made: Sequence[torch.Tensor], wants: Sequence[torch.Tensor], slack: float = 1.0) -> bool:
        """Whether the reference's own outputs are within ``slack`` times the bounds. Raises ReferenceFault."""
        tolerance = self._task.spec.tolerance
        for got, want, parameter in zip(made, wants, self._task.outputs(), strict=True):
            if got.dtype != DTYPES[parameter.dtype]:
                raise ReferenceFault(
                    f"the reference gives {parameter.name} as {got.dtype}, the interface says {parameter.dtype}"
                )
            if not within(got, want, tolerance, slack=slack) and not compare(got, want, tolerance, slack=slack).passed:
                return False
        return True


def case_bytes(task: LoadedTask, case: Case) -> int:
    """Bytes of the arrays of one set of a case."""
    return sum(array.pages * 4096 for role in (Role.IN, Role.OUT) for array in task.arrays(case, role))


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().view(torch.uint8)
