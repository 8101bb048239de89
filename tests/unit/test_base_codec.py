"""Laws of the codec: what is encoded is read back equal, and damage is an error."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfd.base.codec import decode, encode
from kfd.base.digest import Digest
from kfd.base.ids import JobId
from kfd.base.work import (
    BuildResult,
    BuildSpec,
    CaseResult,
    Comparison,
    Diagnostic,
    Incident,
    IncidentCode,
    JobSpec,
    LeaseRef,
    Limits,
    MeasurementPlan,
    Report,
    RunResult,
    RunSpec,
    Speedup,
    Stopped,
    Verdict,
    VerdictCode,
)

digests = st.builds(Digest, st.text("0123456789abcdef", min_size=64, max_size=64), st.integers(0, 1 << 50))
texts = st.text(max_size=20)
floats = st.floats(allow_nan=False)
naturals = st.integers(0, 1 << 60)
pairs = st.tuples(texts, texts)
values = {Digest: digests, str: texts, float: floats, int: naturals}
for kind, strategy in values.items():
    st.register_type_strategy(kind, strategy)
diagnostics = st.tuples(st.builds(Diagnostic))
comparisons = st.tuples(st.builds(Comparison, candidate_ns=st.tuples(naturals), baseline_ns=st.tuples(naturals)))
reports = st.builds(
    Report,
    outcome=st.one_of(
        st.builds(Verdict, code=st.sampled_from(VerdictCode), text=texts),
        st.builds(Incident, code=st.sampled_from(IncidentCode), text=texts, missing=st.none() | digests),
        st.builds(Stopped, reason=texts),
    ),
    detail=st.one_of(
        st.none(),
        st.builds(
            BuildResult,
            artifact=st.none() | digests,
            diagnostics=st.tuples(st.builds(Diagnostic)),
            facts=st.tuples(pairs),
        ),
        st.builds(
            RunResult,
            cases=st.tuples(st.builds(CaseResult)),
            comparisons=st.tuples(
                st.builds(Comparison, candidate_ns=st.tuples(naturals), baseline_ns=st.tuples(naturals))
            ),
            speedups=st.tuples(st.builds(Speedup)),
            ran=st.none() | digests,
        ),
    ),
)
specs = st.builds(
    JobSpec,
    work=st.one_of(
        st.builds(BuildSpec, flags=st.tuples(texts), defines=st.tuples(pairs)),
        st.builds(
            RunSpec, seed=st.binary(max_size=40), plan=st.builds(MeasurementPlan), initial_artifact=st.none() | digests
        ),
    ),
    limits=st.builds(Limits),
)


@given(reports)
def test_reports_survive_the_round_trip_through_text(report: Report) -> None:
    assert decode(Report, json.loads(json.dumps(encode(report), allow_nan=False))) == report


@given(specs)
def test_job_specs_survive_the_round_trip_through_text(spec: JobSpec) -> None:
    assert decode(JobSpec, json.loads(json.dumps(encode(spec), allow_nan=False))) == spec


def test_numbers_that_json_lacks_are_kept() -> None:
    case = CaseResult(case="c", passed=False, relative_l2=math.inf, worst=math.nan)
    back = decode(CaseResult, json.loads(json.dumps(encode(case), allow_nan=False)))
    assert back.relative_l2 == math.inf
    assert math.isnan(back.worst)


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        {},
        {"@": "Report"},
        {"@": "LeaseRef", "job": "j"},
        {"@": "LeaseRef", "job": "j", "attempt": "1"},
        {"@": "LeaseRef", "job": "j", "attempt": True},
        {"@": "LeaseRef", "job": "j", "attempt": 1, "more": 2},
        {"@": "LeaseRef", "job": ["j"], "attempt": 1},
    ],
)
def test_anything_else_is_an_error(data: object) -> None:
    with pytest.raises(ValueError, match=r"LeaseRef|expected"):
        decode(LeaseRef, data)


def test_a_union_is_told_apart_by_name_and_a_stranger_is_refused() -> None:
    report = encode(Report(outcome=Stopped(reason="x")))
    report["outcome"]["@"] = "Limits"
    with pytest.raises(ValueError, match="no such kind"):
        decode(Report, report)


def test_what_cannot_be_encoded_is_an_error() -> None:
    with pytest.raises(TypeError, match="cannot encode"):
        encode(object())
    assert encode(LeaseRef(job=JobId("j"), attempt=1)) == {"@": "LeaseRef", "job": "j", "attempt": 1}
