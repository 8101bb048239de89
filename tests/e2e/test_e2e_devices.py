"""Build-only and run-only agents share a campaign; device-form tasks are evolved with real compilers and devices."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.devices import missing, played

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def test_one_agent_that_builds_and_two_without_a_compiler_share_a_campaign(tmp_path: Path) -> None:
    campaign, candidates, logs = played(tmp_path, "softmax_rows", runners=2, candidates=6)
    assert campaign.state == "finished", (campaign.reason, logs)
    workers = {one.worker for one in candidates if one.state == "judged"}
    assert workers <= {"builder", "runner0", "runner1"}
    assert {"runner0", "runner1"} & workers, logs
    outcomes = {count.key: count.value for count in campaign.candidates_by_outcome}
    assert outcomes.get("ok", 0) >= 2, (outcomes, logs)


@pytest.mark.parametrize("task", ["softmax_opencl", "matmul_opencl", "softmax_sycl", "matmul_sycl"])
def test_device_form_campaigns_end_with_a_kernel_that_is_right(tmp_path: Path, task: str) -> None:
    why = missing(task.partition("_")[2], tmp_path)
    if why:
        pytest.skip(why)
    campaign, candidates, logs = played(tmp_path, task, candidates=6)
    assert campaign.state == "finished", (campaign.reason, logs)
    assert campaign.best, (campaign.reason, logs)
    assert campaign.final_speeds, (campaign.verify_note, logs)
    outcomes = {count.key: count.value for count in campaign.candidates_by_outcome}
    assert outcomes.get("ok", 0) >= 2, (outcomes, [(one.id, one.outcome, one.text) for one in candidates], logs)
