"""E11: a campaign that goes on with another device of the same target compares no numbers across devices."""

from __future__ import annotations

from kfd.base.work import AdmitSpec, BuildSpec, Report, RunSpec, VerdictCode
from kfd.core.commands import DraftRequest
from kfd.core.events import DraftEvent
from kfd.core.fleet.model import Job
from kfd.testing.simulation import Simulation, arrived, drafted, report_for, sim_spec

CHANGE = 8
"""From this candidate on another device measures, on which everything is ten times as fast against its baseline."""


def answer(request: DraftRequest) -> DraftEvent:
    """Kernels of two cells; some of the second device's lie in a cell that nobody owns."""
    is_elsewhere = request.ordinal >= CHANGE and request.ordinal % 3 == 0
    cell = (3, 3, 3) if is_elsewhere else (request.ordinal % 2, 0, 0)
    return arrived(request, f"kernel {request.ordinal}", cell)


def ordinal(job: Job) -> int:
    return int(job.id.split(".")[0].rpartition("-")[2])


def judge(beside: float) -> Simulation:
    """``beside``: what a newcomer of the second device gains over an incumbent in the same rounds."""

    def judged(job: Job) -> Report:
        if isinstance(job.spec.work, AdmitSpec | BuildSpec):
            return report_for(job, VerdictCode.OK)
        number = ordinal(job)
        is_new = number >= CHANGE
        value = 1 + number / 100 + (10.0 if is_new else 0.0)
        against = beside if is_new else 1.2
        assert isinstance(job.spec.work, RunSpec)
        return report_for(job, VerdictCode.OK, value, over_incumbent=against)

    simulation = Simulation(answer, judged)
    simulation.submit(sim_spec(budget_candidates=24, in_flight=1), drafted("initial"))
    simulation.run()
    return simulation


def owners(simulation: Simulation) -> set[int]:
    return {int(owner.rpartition("-")[2]) for owner in simulation.rows.elites.values()}


def test_ten_times_the_number_on_another_device_displaces_nobody_that_is_as_fast_beside_it() -> None:
    simulation = judge(beside=1.0)
    (record,) = simulation.rows.records.values()
    assert record.best is not None
    assert int(record.best.rpartition("-")[2]) < CHANGE
    displaced = {cell: owner for (_, cell), owner in simulation.rows.elites.items() if cell != (3, 3, 3)}
    assert max(int(owner.rpartition("-")[2]) for owner in displaced.values()) < CHANGE
    newcomers = [one for one in simulation.rows.candidates.values() if one.ordinal >= CHANGE]
    assert newcomers
    assert all(one.confirmations for one in newcomers if one.outcome == "ok"), "each was measured beside the incumbent"


def test_who_wins_side_by_side_on_the_new_device_displaces() -> None:
    assert max(owners(judge(beside=1.2))) >= CHANGE
