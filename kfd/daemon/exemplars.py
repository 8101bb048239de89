"""What a prompt shows of candidates: their text and evidence, read from the store once for all drafts that want it."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Protocol

from kfd.base.failure import NotFound
from kfd.base.ids import CandidateId
from kfd.base.work import BuildResult, Report, RunResult, Speedup
from kfd.core.views import CandidateView
from kfd.daemon.tuning import kernel_of
from kfd.prompting.bottleneck import bottleneck, device_facts, fact_lines
from kfd.prompting.render import Exemplar
from kfd.tasks.spec import TaskSpec

__all__ = ["Exemplars", "Texts", "evidence", "speeds_of"]

CACHED = 2_000


class Texts(Protocol):
    """What is read from the store."""

    async def candidate(self, candidate: CandidateId) -> CandidateView:
        """A candidate with its evidence."""
        ...

    async def text(self, candidate: CandidateId, kind: str) -> str | None:
        """Its source."""
        ...


class Exemplars:
    """A bounded cache of exemplars; judged candidates never change."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self._known: OrderedDict[CandidateId, asyncio.Future[Exemplar]] = OrderedDict()

    async def get(self, candidate: CandidateId, spec: TaskSpec) -> Exemplar:
        """What the prompt shows of a candidate; read once however many drafts want it at the same time.

        Raises NotFound when its source is missing.
        """
        loading = self._known.get(candidate)
        if loading is None:
            loading = asyncio.ensure_future(self._load(candidate, spec))
            self._known[candidate] = loading
            if len(self._known) > CACHED:
                self._known.popitem(last=False)
        self._known.move_to_end(candidate)
        try:
            return await asyncio.shield(loading)
        except Exception:
            self._known.pop(candidate, None)
            raise

    async def _load(self, candidate: CandidateId, spec: TaskSpec) -> Exemplar:
        view = await self._texts.candidate(candidate)
        text = await self._texts.text(candidate, "source")
        if text is None:
            raise NotFound(f"the source of {candidate} is missing")
        return _exemplar(view, text, spec)


def _exemplar(view: CandidateView, text: str, spec: TaskSpec) -> Exemplar:
    """A judged candidate as the prompt shows it."""
    candidate = view.candidate
    detail = view.report.detail if view.report is not None else None
    build = view.build.detail if view.build is not None else None
    built = build.facts if isinstance(build, BuildResult) else ()
    diagnostics, cases = evidence(view.report)
    return Exemplar(
        candidate=candidate.id,
        kernel=kernel_of(text, spec.kernel),
        outcome=candidate.outcome,
        text=candidate.text,
        diagnostics=diagnostics,
        cases=cases,
        speeds=speeds_of(candidate.speedups),
        cell=",".join(map(str, candidate.cell)) if candidate.cell else "",
        facts=fact_lines(built),
        bottleneck=bottleneck(built, detail if isinstance(detail, RunResult) else None),
        device=device_facts(view.report.environment) if isinstance(detail, RunResult) and view.report else (),
    )


def evidence(report: Report | None, *, failed_only: bool = False) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(messages of the compiler, cases) of a report, a line each."""
    diagnostics: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    detail = report.detail if report is not None else None
    if isinstance(detail, BuildResult):
        diagnostics = tuple(f"{d.file}:{d.line}: {d.severity}: {d.text}" for d in detail.diagnostics)
    if isinstance(detail, RunResult):
        cases = tuple(
            f"{case.case}: {'ok' if case.passed else 'wrong'}, relative L2 error {case.relative_l2:.3g}"
            f"{', ' + case.detail if case.detail else ''}"
            for case in detail.cases
            if not (failed_only and case.passed)
        )
    return diagnostics, cases


def speeds_of(speedups: tuple[Speedup, ...]) -> tuple[str, ...]:
    """A line for each baseline: value, interval, count, worst case."""
    return tuple(
        f"{speed.value:.3f}x against {speed.baseline} [{speed.low:.3f}, {speed.high:.3f}], {speed.rounds} rounds; "
        f"worst case {speed.worst_case} {speed.worst_value:.3f}x"
        for speed in speedups
    )
