"""The labelled corpus is the frozen one, covers what it must, and the classifier holds its bars on it."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from benchmarks.behaviour import __main__ as command
from benchmarks.behaviour.corpus import CORPUS, LANGUAGES, Kernel, fingerprint, is_tuning, kernels
from kfd.prompting.features import behaviour


def test_the_corpus_is_what_was_frozen_before_tuning() -> None:
    assert fingerprint() == (CORPUS / "FROZEN").read_text().strip()


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_enough_kernels_and_every_level(language: str) -> None:
    asked = [kernel for kernel in kernels() if kernel.language == language]
    assert len(asked) >= 25
    for axis in range(3):
        assert {kernel.levels[axis] for kernel in asked} == {0, 1, 2, 3}


def test_both_halves_are_halves() -> None:
    halves = Counter(is_tuning(kernel.path) for kernel in kernels())
    assert min(halves.values()) >= 0.4 * sum(halves.values())


def test_the_classifier_holds_its_bars_in_both_halves() -> None:
    asked = kernels()
    found = {kernel.path: behaviour(kernel.text, kernel.language) for kernel in asked}
    for half in (True, False):
        part = [kernel for kernel in asked if is_tuning(kernel.path) is half]
        for axis, name in enumerate(("memory", "algorithm", "parallelism")):
            assert command.share(part, found, axis) >= command.BARS[name], (name, half)


def test_figures_count_exact_levels_and_name_the_mistakes() -> None:
    asked = [
        Kernel(path=f"cuda/{number}.cu", text="", levels=(level, 0, level)) for number, level in enumerate((0, 1, 2, 2))
    ]
    found = {kernel.path: (0, 0, kernel.levels[2]) for kernel in asked}
    memory, algorithm, parallelism = command.figures(asked, found, "b", {"memory": 0.9})
    assert (memory.figure, memory.value, memory.ok, memory.n) == ("b.memory", 0.25, False, 4)
    assert "2>0:2 1>0:1" in memory.note
    assert (algorithm.value, parallelism.value) == (1.0, 1.0)
    assert algorithm.ok, "without a bar a figure is only reported"


def test_the_command_prints_figures_and_nothing_else(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["behaviour", "--kernelfoundry", "/nowhere/python"])
    assert command.main() == 0
    printed = capsys.readouterr()
    names = [json.loads(line)["figure"] for line in printed.out.splitlines()]
    assert names == ["behaviour.memory", "behaviour.algorithm", "behaviour.parallelism", "behaviour.frozen"]
    assert "no figure of kernelfoundry" in printed.err
