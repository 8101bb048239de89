"""A task that cannot tell right from wrong is refused, with the reason; a sound one is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from kfd.tasks import pack  # noqa: E402
from kfd.tasks.spec import Case  # noqa: E402
from kfd_worker.judge.admit import Admission, admit, main  # noqa: E402
from kfd_worker.judge.taskcode import LoadedTask  # noqa: E402

CONFIG = """
name: probe
description: A task
flavour: native
target: cpp:native
kernel: kernel.cpp
entry: solve
interface:
  - {name: x, role: in, dtype: float32, shape: [r, c]}
  - {name: y, role: out, dtype: float32, shape: [r, c]}
  - {name: r, role: size}
  - {name: c, role: size}
tolerance: {class: TOLERANCE}
baseline: reference
target_speedup: 2.0
"""
KERNEL = "// [EVOLVE_START]\n// [EVOLVE_END]\n"
CASES = 'CASES = [{"name": "one", "r": 24, "c": 33}]'
INPUTS = 'def make_inputs(case, generator):\n    return {"x": torch.randn(case["r"], case["c"], generator=generator)}'


@pytest.fixture
def admitted(tmp_path: Path) -> Iterator[Callable[..., Admission]]:
    made: list[LoadedTask] = []

    def go(reference: str, *, cases: str = CASES, inputs: str = INPUTS, tolerance: str = "fp32") -> Admission:
        folder = tmp_path / f"task{len(made)}"
        write(folder, reference, cases, inputs, tolerance)
        (tmp_path / "scratch").mkdir(exist_ok=True)
        made.append(LoadedTask(pack(folder), tmp_path / "scratch"))
        return admit(made[-1], lambda _: None)

    yield go
    for task in made:
        task.close()


def write(folder: Path, reference: str, cases: str = CASES, inputs: str = INPUTS, tolerance: str = "fp32") -> None:
    folder.mkdir()
    (folder / "config.yaml").write_text(CONFIG.replace("TOLERANCE", tolerance))
    (folder / "kernel.cpp").write_text(KERNEL)
    body = "\n".join(f"    {line}" for line in reference.split("\n"))
    (folder / "task.py").write_text(f"import torch\n\n{cases}\n\n\n{inputs}\n\n\ndef reference(x):\n{body}\n")


@pytest.mark.parametrize(
    "reference",
    [
        "return x * 2.0",
        "return torch.softmax(x, dim=-1)",
        "return torch.relu(x)",
        "return x - x.mean(dim=1, keepdim=True)",
        "return (x > 0).float()",
        # A small number against division by zero cannot be seen missing, and says nothing that could be wrong.
        "return x * torch.rsqrt((x * x).mean(dim=1, keepdim=True) + 1e-6)",
        # The usual draws do not need the maximum; the check's large values do.
        "e = torch.exp(x - x.amax(dim=1, keepdim=True))\nreturn e / e.sum(dim=1, keepdim=True)",
        "y = x.clone()\ny.mul_(3.0)\ny -= 1.0\nreturn y.contiguous().view(x.shape)",
    ],
)
def test_a_sound_task_is_admitted_with_its_noise(admitted: Callable[..., Admission], reference: str) -> None:
    found = admitted(reference)
    assert found.admitted, found.reason
    assert found.noise_floor > 0
    assert 0 <= found.reference_error < 1


BROKEN: dict[str, tuple[str, dict[str, str], str]] = {
    "zeros": ("return (x > 1e9).float()", {}, "zeros"),
    # A maximum over a row less its own mean over one element (KernelBench level 2, task 80) is always zero.
    "always zero": (
        "m = x.amax(dim=1, keepdim=True)\nreturn (m - m.mean(dim=1, keepdim=True)).expand(x.shape)",
        {},
        "zeros",
    ),
    "a constant": ("return torch.ones_like(x) * 7.5", {}, "constant"),
    "nearly constant in a wide tolerance": ("return 100.0 + 1e-3 * x", {"tolerance": "bf16"}, "constant"),
    "identity": ("return x.clone()", {}, "input x"),
    "clamp that never acts": ("return x.clamp(-1e6, 1e6)", {}, "input x"),
    "mean along an axis": ("return x.mean(dim=0, keepdim=True).expand(x.shape)", {}, "mean along axis 0"),
    "inputs that never change": (
        "return x * 3.0",
        {
            "inputs": "def make_inputs(case, generator):\n"
            '    return {"x": torch.arange(case["r"] * case["c"]).float().view(case["r"], case["c"])}'
        },
        "other inputs",
    ),
    "first half of the rows that never changes": (
        "y = x * 3.0\ny[: x.shape[0] // 2] = 1.0\nreturn y",
        {},
        "half of the rows",
    ),
    "a step whose part is small in a wide tolerance": (
        "return x * 3.0 + 0.004 * torch.sin(x)",
        {"tolerance": "bf16"},
        "without its operation 2 (sin)",
    ),
    "not finite": ("return torch.log(x - 100.0)", {}, "not finite"),
    "not reproducible": ("return x + torch.rand(x.shape)", {}, "different answers"),
    "writes to its input": ("x.mul_(2.0)\nreturn x + 0.5", {}, "changes its input"),
    "wrong type": ("return (x * 2.0).double() if x.dtype == torch.float32 else x * 2.0", {}, "interface says"),
}


@pytest.mark.parametrize("name", list(BROKEN))
def test_a_task_that_would_take_a_wrong_answer_is_refused_and_says_which(
    admitted: Callable[..., Admission], name: str
) -> None:
    reference, how, words = BROKEN[name]
    found = admitted(reference, **how)
    assert not found.admitted
    assert words in found.reason
    assert "one" in found.reason


TWO = 'CASES = [{{"name": "wide", "r": 16, "c": 64}}, {{"name": "thin", "r": 16, "c": 1, "timed": {timed}}}]'


def test_a_degenerate_case_is_taken_untimed_and_refused_when_it_is_timed(admitted: Callable[..., Admission]) -> None:
    # Softmax over one column is 1 everywhere.
    reference = "return torch.softmax(x, dim=-1)"
    assert admitted(reference, cases=TWO.format(timed=False)).admitted
    found = admitted(reference, cases=TWO.format(timed=True))
    assert not found.admitted
    assert "thin" in found.reason
    assert "wide" not in found.reason


def test_one_row_and_one_element_are_not_held_against_a_task(admitted: Callable[..., Admission]) -> None:
    assert admitted("return x * 2.0", cases='CASES = [{"name": "one", "r": 1, "c": 1}]').admitted
    assert admitted("return x * 2.0", cases='CASES = [{"name": "one", "r": 1, "c": 50}]').admitted


def test_an_admission_survives_being_written_down_and_another_version_does_not(
    admitted: Callable[..., Admission],
) -> None:
    found = admitted("return torch.ones_like(x)")
    data = found.to_json()
    assert Admission.from_json(data) == found
    assert Admission.from_json({**data, "version": -1}) is None
    bad: tuple[object, ...] = (None, [], {}, {"version": data["version"]}, {**data, "probes": [["one"]]})
    for damaged in bad:
        assert Admission.from_json(damaged) is None


def test_the_report_says_ok_exactly_when_every_probe_passed(admitted: Callable[..., Admission]) -> None:
    sound = admitted("return x * 2.0")
    broken = admitted("return x.clone()")
    case = Case(name="one", sizes=(("r", 24), ("c", 33)), timed=True)
    assert all(one.passed for one in sound.result([case]).probes)
    assert [one.name for one in broken.result([case]).probes if not one.passed] == ["y: input x"]
    assert len(sound.result([case]).probes) >= 12


def test_the_command_prints_a_line_for_each_probe_and_its_exit_code_is_the_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "good", "return x * 2.0")
    write(tmp_path / "bad", "return x.clone()")
    write(tmp_path / "fails", "raise RuntimeError('no')")
    threads = torch.get_num_threads()
    try:
        assert main([str(tmp_path / "good")]) == 0
        text = capsys.readouterr().out
        assert text.endswith("admitted\n")
        assert "zeros" in text
        assert main([str(tmp_path / "bad")]) == 1
        assert "TAKEN one: y: input x" in capsys.readouterr().out
        assert main([str(tmp_path / "fails")]) == 1
        assert "refused: the reference fails" in capsys.readouterr().out
        assert main([str(tmp_path / "nothing")]) == 1
        assert main([]) == 2
    finally:
        torch.set_num_threads(threads)
        torch.set_grad_enabled(True)
