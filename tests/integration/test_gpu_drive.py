"""The small judge of tests/gpu with the real child and a driver of host memory: a device only adds a device."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("torch")

from kfd.base.work import VerdictCode
from tests.gpu.drive import Built, Fault, Kernel, build, open_task
from tests.gpu.runner import Runner, verdict

PATH = "/usr/local/cuda/bin:/usr/local/bin:/usr/bin:/bin"
pytestmark = pytest.mark.skipif(shutil.which("nvcc", path=PATH) is None, reason="no nvcc")


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> str:
    library = tmp_path_factory.mktemp("cuda") / "libfake.so"
    source = Path(__file__).with_name("cuda_fake.cpp")
    subprocess.run(["g++", "-O2", "-shared", "-fPIC", "-o", library, source], check=True, timeout=120)
    return str(library)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    task = open_task("softmax_cuda")
    return build(Kernel(task, task.text), tmp_path_factory.mktemp("build"))


def small(built: Built) -> Built:
    """Without the large cases, which a CPU takes long for."""
    built.kernel.task.module.CASES = [case for case in built.kernel.task.module.CASES if not case.get("timed", True)]
    return built


def test_a_right_kernel_is_ok_and_timed(built: Built, driver: str) -> None:
    code, text = verdict(small(built), library=driver)
    assert code == "ok", text
    assert text.endswith(" registers")
    runner = Runner(built, library=driver)
    runner.map(1, built.kernel.task.module.CASES[0], 3)
    values = [runner.refresh(1, index, index) for index in range(3)]
    times, took = runner.call(1, [2, 0])
    assert times.calls == 2
    assert times.shielded
    assert times.total_ns < took + 2 * 51_200
    runner.judge(1, 2, values[2])
    with pytest.raises(Fault, match="incorrect"):
        # The set that was not called still holds its poison.
        runner.judge(1, 1, values[1])
    assert runner.close() == 0


def test_a_plan_that_does_not_fit_the_kernel_is_a_load_error(built: Built, driver: str, tmp_path: Path) -> None:
    task = built.kernel.task
    text = task.text.replace("args(x, y, cols)", "args(x, y)")
    code, said = verdict(small(build(Kernel(task, text), tmp_path)), library=driver)
    assert code == VerdictCode.LOAD_ERROR.value
    assert "[8, 8, 8] bytes, the launch plan gives [8, 8]" in said
