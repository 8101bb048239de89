"""Reports to messages and back, and their bounds.

What a number *means* (a speedup that nobody can believe) is judged by the daemon's translation, not here.
"""

from __future__ import annotations

import math
from dataclasses import replace

from kfd.api.bounds import NAME, PAIRS, TEXT, count, finite, integer, known, text
from kfd.api.convert import maybe_digest_from_pb, maybe_digest_to_pb, pairs_from_pb, pairs_to_pb
from kfd.api.v1 import common_pb2, worker_pb2
from kfd.base.failure import BadInput
from kfd.base.work import (
    AdmitResult,
    BuildResult,
    CaseResult,
    Comparison,
    Diagnostic,
    Incident,
    IncidentCode,
    Probe,
    Report,
    Roof,
    RunResult,
    Speedup,
    Stopped,
    Verdict,
    VerdictCode,
)

__all__ = ["bound_report", "report_from_pb", "report_to_pb"]

_VERDICT_TEXT = 16_000
_LOG_TAIL = 64_000
_DETAIL = 1_000
_DIAGNOSTICS = 200
_CASES = 256
_COMPARISONS = 64
_SAMPLES = 1_000
_SPEEDUPS = 16

_VERDICTS: dict[VerdictCode, int] = {code: getattr(common_pb2, f"VERDICT_CODE_{code.name}") for code in VerdictCode}
_VERDICTS_BACK: dict[int, VerdictCode] = {number: code for code, number in _VERDICTS.items()}
_INCIDENTS: dict[IncidentCode, int] = {code: getattr(common_pb2, f"INCIDENT_CODE_{code.name}") for code in IncidentCode}
_INCIDENTS_BACK: dict[int, IncidentCode] = {number: code for code, number in _INCIDENTS.items()}


def report_to_pb(report: Report) -> worker_pb2.Report:
    """A report for the wire."""
    message = worker_pb2.Report(
        log_tail=report.log_tail,
        log=maybe_digest_to_pb(report.log),
        stages=[worker_pb2.StageTime(stage=stage, ns=ns) for stage, ns in report.stages_ns],
        environment=pairs_to_pb(report.environment),
    )
    outcome, detail = report.outcome, report.detail
    if isinstance(outcome, Verdict):
        code = common_pb2.VerdictCode.ValueType(_VERDICTS[outcome.code])
        message.verdict.CopyFrom(worker_pb2.Verdict(code=code, text=outcome.text))
    elif isinstance(outcome, Incident):
        message.incident.CopyFrom(
            worker_pb2.Incident(
                code=common_pb2.IncidentCode.ValueType(_INCIDENTS[outcome.code]),
                text=outcome.text,
                missing=maybe_digest_to_pb(outcome.missing),
                device_suspect=outcome.device_suspect,
            )
        )
    else:
        message.stopped.CopyFrom(worker_pb2.Stopped(reason=outcome.reason))
    if isinstance(detail, BuildResult):
        message.build.CopyFrom(_build_result_to_pb(detail))
    elif isinstance(detail, RunResult):
        message.run.CopyFrom(_run_result_to_pb(detail))
    elif isinstance(detail, AdmitResult):
        message.admit.CopyFrom(_admit_result_to_pb(detail))
    return message


def report_from_pb(message: worker_pb2.Report) -> Report:
    """A report from the wire. Raises BadInput."""
    detail: BuildResult | RunResult | AdmitResult | None = None
    kind = message.WhichOneof("detail")
    if kind == "build":
        detail = _build_result(message.build)
    elif kind == "run":
        detail = _run_result(message.run)
    elif kind == "admit":
        detail = _admit_result(message.admit)
    return Report(
        outcome=_outcome(message),
        detail=detail,
        log_tail=text(message.log_tail, "the end of the log", _LOG_TAIL),
        log=maybe_digest_from_pb(message, "log"),
        stages_ns=tuple(
            (text(item.stage, "a stage", NAME), integer(item.ns, "the time of a stage"))
            for item in count(message.stages, "stages", PAIRS)
        ),
        environment=pairs_from_pb(message.environment, "facts of the environment"),
    )


def _outcome(message: worker_pb2.Report) -> Verdict | Incident | Stopped:
    kind = message.WhichOneof("outcome")
    if kind == "verdict":
        return Verdict(
            code=known(_VERDICTS_BACK, message.verdict.code, "verdict"),
            text=text(message.verdict.text, "a verdict's text", _VERDICT_TEXT),
        )
    if kind == "incident":
        incident = message.incident
        return Incident(
            code=known(_INCIDENTS_BACK, incident.code, "incident"),
            text=text(incident.text, "an incident's text", _VERDICT_TEXT),
            missing=maybe_digest_from_pb(incident, "missing"),
            device_suspect=incident.device_suspect,
        )
    if kind == "stopped":
        return Stopped(reason=text(message.stopped.reason, "a reason", _VERDICT_TEXT))
    raise BadInput("a report without an outcome", mend="Install matching versions on both sides.")


def _build_result_to_pb(result: BuildResult) -> worker_pb2.BuildResult:
    return worker_pb2.BuildResult(
        artifact=maybe_digest_to_pb(result.artifact),
        diagnostics=[
            worker_pb2.Diagnostic(
                file=item.file, line=item.line, column=item.column, severity=item.severity, text=item.text
            )
            for item in result.diagnostics
        ],
        facts=pairs_to_pb(result.facts),
    )


def _build_result(message: worker_pb2.BuildResult) -> BuildResult:
    return BuildResult(
        artifact=maybe_digest_from_pb(message, "artifact"),
        diagnostics=tuple(
            Diagnostic(
                file=text(item.file, "a file's name", _DETAIL),
                line=item.line,
                column=item.column,
                severity=text(item.severity, "a severity", NAME),
                text=text(item.text, "a diagnostic", TEXT),
            )
            for item in count(message.diagnostics, "diagnostics", _DIAGNOSTICS)
        ),
        facts=pairs_from_pb(message.facts, "facts"),
    )


def _admit_result_to_pb(result: AdmitResult) -> worker_pb2.AdmitResult:
    return worker_pb2.AdmitResult(
        probes=[worker_pb2.Probe(name=item.name, passed=item.passed, detail=item.detail) for item in result.probes],
        noise_floor=result.noise_floor,
    )


def _admit_result(message: worker_pb2.AdmitResult) -> AdmitResult:
    noise = finite(message.noise_floor, "the noise floor")
    if noise < 0:
        raise BadInput(f"a noise floor of {noise!r}")
    return AdmitResult(
        probes=tuple(
            Probe(
                name=text(item.name, "a probe's name", NAME),
                passed=item.passed,
                detail=text(item.detail, "a probe's detail", _DETAIL),
            )
            for item in count(message.probes, "probes", _CASES)
        ),
        noise_floor=noise,
    )


def _run_result_to_pb(result: RunResult) -> worker_pb2.RunResult:
    return worker_pb2.RunResult(
        cases=[
            worker_pb2.CaseResult(
                name=item.case,
                passed=item.passed,
                relative_l2=item.relative_l2,
                worst=item.worst,
                detail=item.detail,
            )
            for item in result.cases
        ],
        comparisons=[
            worker_pb2.Comparison(
                name=item.case,
                baseline=item.baseline,
                candidate_ns=item.candidate_ns,
                baseline_ns=item.baseline_ns,
            )
            for item in result.comparisons
        ],
        speedups=[
            worker_pb2.Speedup(
                baseline=item.baseline,
                value=item.value,
                low=item.low,
                high=item.high,
                rounds=item.rounds,
                worst_case=item.worst_case,
                worst_value=item.worst_value,
            )
            for item in result.speedups
        ],
        ran=maybe_digest_to_pb(result.ran),
        roofs=[
            worker_pb2.Roof(name=item.case, moved_bytes=item.moved_bytes, copy_ns=item.copy_ns) for item in result.roofs
        ],
    )


def _run_result(message: worker_pb2.RunResult) -> RunResult:
    return RunResult(
        cases=tuple(_case(item) for item in count(message.cases, "cases", _CASES)),
        comparisons=tuple(_comparison(item) for item in count(message.comparisons, "comparisons", _COMPARISONS)),
        speedups=tuple(_speedup(item) for item in count(message.speedups, "speedups", _SPEEDUPS)),
        ran=maybe_digest_from_pb(message, "ran"),
        roofs=tuple(
            Roof(
                case=text(item.name, "a case's name", NAME),
                moved_bytes=integer(item.moved_bytes, "moved bytes"),
                copy_ns=integer(item.copy_ns, "the time of a copy", 1),
            )
            for item in count(message.roofs, "roofs", _CASES)
        ),
    )


def _case(item: worker_pb2.CaseResult) -> CaseResult:
    # A wrong kernel may produce NaN or an infinite error; that is the case's finding, not a malformed number.
    if item.passed and not (math.isfinite(item.relative_l2) and math.isfinite(item.worst)):
        raise BadInput(f"case {item.name[:80]!r} passed with an error that is not a finite number")
    return CaseResult(
        case=text(item.name, "a case's name", NAME),
        passed=item.passed,
        relative_l2=item.relative_l2,
        worst=item.worst,
        detail=text(item.detail, "a case's detail", _DETAIL),
    )


def _comparison(item: worker_pb2.Comparison) -> Comparison:
    if len(item.candidate_ns) != len(item.baseline_ns):
        raise BadInput(f"{len(item.candidate_ns)} times of the candidate, {len(item.baseline_ns)} of its baseline")
    count(item.candidate_ns, "samples", _SAMPLES)
    return Comparison(
        case=text(item.name, "a case's name", NAME),
        baseline=text(item.baseline, "a baseline's name", NAME),
        candidate_ns=tuple(integer(ns, "a time", 1) for ns in item.candidate_ns),
        baseline_ns=tuple(integer(ns, "a time", 1) for ns in item.baseline_ns),
    )


def _speedup(item: worker_pb2.Speedup) -> Speedup:
    low, value, high = (finite(number, "a speedup") for number in (item.low, item.value, item.high))
    if not 0 < low <= value <= high or not finite(item.worst_value, "a speedup") > 0:
        raise BadInput(f"a speedup of {value!r} with the interval [{low!r}, {high!r}], worst {item.worst_value!r}")
    return Speedup(
        baseline=text(item.baseline, "a baseline's name", NAME),
        value=value,
        low=low,
        high=high,
        rounds=integer(item.rounds, "the number of rounds", 0, 10_000_000),
        worst_case=text(item.worst_case, "a case's name", NAME),
        worst_value=item.worst_value,
    )


# ---- bounds, for whoever writes a report --------------------------------------------------------------


def bound_report(report: Report) -> Report:
    """The report with texts and lists cut to what the wire takes, so that it can always be delivered.

    Of a log the end is kept, of everything else the beginning. Characters that are none (what is left of bytes
    that were not UTF-8) are replaced.
    """
    outcome, detail = report.outcome, report.detail
    if isinstance(outcome, Stopped):
        outcome = Stopped(reason=_cut(outcome.reason, _VERDICT_TEXT))
    else:
        outcome = replace(outcome, text=_cut(outcome.text, _VERDICT_TEXT))
    if isinstance(detail, BuildResult):
        detail = replace(
            detail,
            diagnostics=tuple(_bound_diagnostic(item) for item in detail.diagnostics[:_DIAGNOSTICS]),
            facts=_bound_pairs(detail.facts),
        )
    elif isinstance(detail, AdmitResult):
        detail = replace(
            detail,
            probes=tuple(
                replace(item, name=_cut(item.name, NAME), detail=_cut(item.detail, _DETAIL))
                for item in detail.probes[:_CASES]
            ),
        )
    elif isinstance(detail, RunResult):
        detail = replace(
            detail,
            cases=tuple(
                replace(item, case=_cut(item.case, NAME), detail=_cut(item.detail, _DETAIL))
                for item in detail.cases[:_CASES]
            ),
            comparisons=tuple(
                replace(
                    item,
                    case=_cut(item.case, NAME),
                    baseline=_cut(item.baseline, NAME),
                    candidate_ns=item.candidate_ns[:_SAMPLES],
                    baseline_ns=item.baseline_ns[:_SAMPLES],
                )
                for item in detail.comparisons[:_COMPARISONS]
            ),
            speedups=tuple(
                replace(item, baseline=_cut(item.baseline, NAME), worst_case=_cut(item.worst_case, NAME))
                for item in detail.speedups[:_SPEEDUPS]
            ),
            roofs=tuple(replace(item, case=_cut(item.case, NAME)) for item in detail.roofs[:_CASES]),
        )
    return replace(
        report,
        outcome=outcome,
        detail=detail,
        log_tail=_clean(report.log_tail[-_LOG_TAIL:]),
        stages_ns=tuple((_cut(stage, NAME), ns) for stage, ns in report.stages_ns[:PAIRS]),
        environment=_bound_pairs(report.environment),
    )


def _bound_diagnostic(item: Diagnostic) -> Diagnostic:
    return Diagnostic(
        file=_cut(item.file, _DETAIL),
        line=min(max(item.line, 0), 2**32 - 1),
        column=min(max(item.column, 0), 2**32 - 1),
        severity=_cut(item.severity, NAME),
        text=_cut(item.text, TEXT),
    )


def _bound_pairs(pairs: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    return tuple((_cut(key, NAME), _cut(value, TEXT)) for key, value in pairs[:PAIRS])


def _cut(value: str, limit: int) -> str:
    return _clean(value[:limit])


def _clean(value: str) -> str:
    return value.encode("utf-8", "replace").decode()
