"""Whether a report can be about its job at all. Pure."""

from __future__ import annotations

from kfd.base.work import (
    CHECKED_ONLY,
    AdmitResult,
    AdmitSpec,
    BuildResult,
    BuildSpec,
    Incident,
    IncidentCode,
    JobSpec,
    Report,
    RunResult,
    RunSpec,
    Verdict,
    VerdictCode,
)

__all__ = ["sound"]

_RESULTS: dict[type, type] = {BuildSpec: BuildResult, RunSpec: RunResult, AdmitSpec: AdmitResult}
"""What a report about a kind of work may hold."""


def sound(spec: JobSpec, report: Report) -> Report:
    """The report if it can be about this job. A verdict without what it must come with is an incident: no code
    behind this point has to ask whether an accepted build has an artifact."""
    outcome, detail, work = report.outcome, report.detail, spec.work
    kind = _RESULTS[type(work)]
    if detail is not None and not isinstance(detail, kind):
        return _unsound(f"it is a {type(detail).__name__} where a {kind.__name__} belongs")
    if not isinstance(outcome, Verdict) or outcome.code is not VerdictCode.OK:
        return report
    if isinstance(work, BuildSpec):
        if not isinstance(detail, BuildResult) or detail.artifact is None:
            return _unsound("it accepts a build that left no artifact")
    elif isinstance(work, AdmitSpec):
        if not isinstance(detail, AdmitResult) or not detail.probes or not all(probe.passed for probe in detail.probes):
            return _unsound("it admits a task that did not stand every probe")
    elif not isinstance(detail, RunResult) or (not detail.speedups and work.target != CHECKED_ONLY):
        return _unsound("it accepts a run without a measurement")
    elif detail.ran is not None and detail.ran != work.artifact:
        return _unsound(f"it ran {detail.ran.short}, not {work.artifact.short}")
    return report


def _unsound(text: str) -> Report:
    text = f"the worker's report does not fit its job: {text}"
    return Report(outcome=Incident(code=IncidentCode.INTERNAL, text=text))
