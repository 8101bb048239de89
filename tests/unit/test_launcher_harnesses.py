"""A machine without an OpenCL runtime, or with one that does not work, still runs what it can."""

from __future__ import annotations

from pathlib import Path

import pytest

from kfd_worker.devices import opencl
from kfd_worker.launcher import server
from kfd_worker.launcher.config import LauncherConfig
from kfd_worker.toolchains.port import NotInstalled


def harnesses(tmp_path: Path) -> tuple[list[str], list[tuple[str, str]], dict[str, str]]:
    problems: list[tuple[str, str]] = []
    absent: dict[str, str] = {}
    made = server.cpu_harnesses(LauncherConfig(state_dir=str(tmp_path)), 2, problems, absent)
    return [target for one in made for target in one.targets], problems, absent


def test_without_a_runtime_libraries_run_and_what_to_install_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opencl, "_DISTRIBUTION", "there-is-no-such-distribution")
    monkeypatch.setattr(opencl, "_VENDORS", str(tmp_path / "no-vendors"))
    with pytest.raises(NotInstalled, match=r"pip install 'kfd\[opencl\]'"):
        opencl.find_runtime(tmp_path)
    targets, problems, absent = harnesses(tmp_path)
    assert "cpp:native" in targets
    assert "opencl:cpu" not in targets
    assert not problems
    assert set(absent) == {"opencl", "sycl"}


@pytest.mark.parametrize(
    "error", [ValueError("the driver is broken"), OSError("no such device"), TimeoutError("hangs")]
)
def test_a_runtime_that_does_not_work_is_a_problem_and_not_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def broken(_: Path) -> opencl.Runtime:
        raise error

    monkeypatch.setattr(server, "find_runtime", broken)
    targets, problems, absent = harnesses(tmp_path)
    assert "cpp:native" in targets
    assert problems == [("OpenCL on the processor", str(error))]
    assert not absent
