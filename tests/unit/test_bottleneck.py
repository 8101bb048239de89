"""One named bottleneck from the evidence of a build and a measurement, and the roofline that it rests on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kfd.base.roofline import roofline_share
from kfd.base.work import Comparison, Roof, RunResult, Speedup, VerdictCode
from kfd.core.campaign.state import CampaignState
from kfd.core.fleet.model import Job
from kfd.core.search.plateau import PlateauPolicy
from kfd.prompting.bottleneck import bottleneck, device_facts, fact_lines
from kfd.testing.simulation import Simulation, arrived, drafted, report_for, sim_spec


def measured(
    *cases: tuple[str, int, int, int], value: float = 2.0, worst: tuple[str, float] | None = None
) -> RunResult:
    """(case, moved bytes, copy ns, candidate ns) of each timed case."""
    name, ratio = worst or (cases[0][0], value)
    speed = Speedup(
        baseline="reference", value=value, low=value, high=value, rounds=3, worst_case=name, worst_value=ratio
    )
    return RunResult(
        comparisons=tuple(
            Comparison(case=case, baseline="reference", candidate_ns=(took, took, 9 * took), baseline_ns=(took,) * 3)
            for case, _, _, took in cases
        ),
        speedups=(speed,),
        roofs=tuple(Roof(case=case, moved_bytes=moved, copy_ns=copy) for case, moved, copy, _ in cases),
    )


def test_the_share_is_the_mean_over_cases_of_copy_over_median_and_never_above_one() -> None:
    assert roofline_share(measured(("a", 8, 100, 400), ("b", 8, 100, 100))) == pytest.approx(0.5)
    assert roofline_share(measured(("a", 8, 300, 100))) == 1.0


def test_without_a_roof_of_every_timed_case_there_is_no_share() -> None:
    result = measured(("a", 8, 100, 400), ("b", 8, 100, 100))
    assert roofline_share(replace(result, roofs=result.roofs[:1])) is None
    assert roofline_share(RunResult()) is None
    assert roofline_share(replace(result, roofs=tuple(replace(one, copy_ns=0) for one in result.roofs))) is None


def test_a_roof_of_a_case_that_was_not_timed_says_nothing() -> None:
    """Whoever reads evidence for a prompt must not fall over it: the question could never be put."""
    result = measured(("a", 8_000_000, 90, 100), ("largest", 9_000_000, 90, 100))
    for left in (result.comparisons[:1], (result.comparisons[0], replace(result.comparisons[1], candidate_ns=()))):
        assert "memory traffic: case a" in bottleneck((), replace(result, comparisons=left))


SCALAR = (("seen", "scalar=1"),)


@pytest.mark.parametrize(
    ("facts", "result", "says"),
    [
        ((("ptxas.f", "spill_stores=64 spill_loads=36"),), measured(("a", 8, 1, 9)), "100 bytes are spilled"),
        ((("f.spill_bytes", "48"),), None, "48 bytes are spilled"),
        ((), measured(("a", 8_000_000, 90, 100)), "memory traffic: case a moves its 8 MB at 8e+04 GB/s, 90%"),
        (SCALAR, measured(("a", 8_000_000, 90, 100)), "memory traffic"),
        (SCALAR, measured(("a", 8_000, 10, 100)), "scalar code"),
        ((), measured(("a", 8_000, 10, 100)), "not memory traffic alone: case a moves its 0.008 MB at 80 GB/s, 10% of"),
        ((), measured(("a", 8, 1, 9), ("b", 8, 1, 9), worst=("b", 0.9)), "the case b: it gains 0.90x"),
        ((("ptxas.f", "registers=32 spill_stores=0 spill_loads=0"),), None, ""),
        ((), RunResult(), ""),
    ],
)  # fmt: skip
def test_the_first_rule_that_fits_is_named(
    facts: tuple[tuple[str, str], ...], result: RunResult | None, says: str
) -> None:
    found = bottleneck(facts, result)
    assert says in found
    assert bool(found) == bool(says)
    assert "\n" not in found


def test_a_roof_of_a_case_that_nobody_timed_is_passed_over() -> None:
    result = measured(("a", 8_000, 10, 100))
    more = replace(
        result,
        roofs=(*result.roofs, Roof(case="b", moved_bytes=1 << 40, copy_ns=1), Roof(case="c", moved_bytes=1, copy_ns=1)),
        comparisons=(*result.comparisons, replace(result.comparisons[0], case="c", candidate_ns=(), baseline_ns=())),
    )
    assert bottleneck((), more) == bottleneck((), result)


def test_lines_are_what_the_compiler_told_and_no_bookkeeping() -> None:
    facts = (
        ("artifact_bytes", "16000"),
        ("seen", "scalar=1"),
        ("ptxas.softmax", "registers=32"),
        ("row.vector_width", "8"),
        ("build_cpu_ms", "12"),
    )
    assert fact_lines(facts) == ("ptxas.softmax: registers=32", "row.vector_width: 8")


def test_the_machine_is_told_by_what_helps_to_write_a_kernel() -> None:
    environment = (
        ("load", "0.5"),
        ("device.caches", "L1 32K, L2 1024K"),
        ("device", "Some CPU"),
        ("device.cores", "2"),
        ("steal_ticks", "0"),
    )
    assert device_facts(environment) == (("device", "Some CPU"), ("cores", "2"), ("caches", "L1 32K, L2 1024K"))


def roofed(copy_ns: int) -> Simulation:
    """A campaign that ends at 90 % of a copy's speed; child 5 is the fastest, and its copy takes ``copy_ns`` of 100."""

    def judge(job: Job) -> object:
        value = 3.0 if job.id.split(".")[0].endswith("-5") else 1.0
        report = report_for(job, VerdictCode.OK, value)
        if isinstance(report.detail, RunResult):
            timed = measured(("only", 8, copy_ns if value > 1 else 10, 100))
            report = replace(report, detail=replace(report.detail, comparisons=timed.comparisons, roofs=timed.roofs))
        return report

    base = sim_spec()
    spec = replace(base, search=replace(base.search, plateau=PlateauPolicy(roofline_share=0.9)))
    simulation = Simulation(lambda request: arrived(request, f"kernel {request.ordinal}", (0, 0, 0)), judge)
    simulation.submit(spec, drafted("initial"))
    simulation.run()
    return simulation


def test_a_campaign_stops_when_its_best_is_near_the_roofline() -> None:
    simulation = roofed(copy_ns=95)
    (record,) = simulation.rows.records.values()
    assert (record.state, record.roofline) == (CampaignState.FINISHED, pytest.approx(0.95))
    assert "roofline" in record.reason
    far = roofed(copy_ns=50)
    (record,) = far.rows.records.values()
    assert record.roofline == pytest.approx(0.5)
    assert record.reason == "budget: 20 candidates"
    assert len(far.rows.candidates) > len(simulation.rows.candidates)
