"""The corpus: its own laws, and a seeded sample of it played. ``python -m tests.hostile`` plays all of it."""

from __future__ import annotations

import dataclasses
import os
import random
import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from kfd.base.digest import Digest
from kfd.base.work import (
    Incident,
    IncidentCode,
    Report,
    RunResult,
    Speedup,
    Verdict,
    VerdictCode,
)
from tests.hostile.corpus import Program, load_programs, parse_program
from tests.hostile.field import DEVICE_TASKS, TASKS, Field, Seen, mismatch
from tests.hostile.known_gaps import KNOWN_GAPS

PROGRAMS = load_programs()
SEED = int(os.environ.get("KFD_HOSTILE_SEED", "20"))
CATALOGUE = """
A1 A2 A3 A4 A5 A6 A7 A8 A9 A10 A11 A12 A13 A14 A15 A18 A20 A21 B1 B3 B5 C2 C4 C5 C6 C7 C8 C9 C14 C17 C19 C20 C21
D3 D6 D7 D8 D9 D10 D11 D12 D13 D14 D15 D16 D19 D20 D23 D25 D26 D28 D30 X
"""


def sample(seed: int) -> list[Program]:
    """Twelve programs of the host form, three of them honest, and of each device language three, one of them honest;
    none with a gap that is known."""
    dice = random.Random(seed)
    # Whoever attacks the clock is measured at length; whoever walks a file system takes as long as that does.
    quick = [one for one in PROGRAMS if one.name not in KNOWN_GAPS and not one.at_most and one.run_ms <= 1500]
    drawn: list[Program] = []
    for language, wrong, right in (("", 9, 3), ("opencl", 2, 1), ("sycl", 2, 1)):
        mine = [one for one in quick if language_of(one) == language]
        hostile, honest = ([one for one in mine if one.honest is kind] for kind in (False, True))
        drawn += dice.sample(hostile, wrong) + dice.sample(honest, right)
    return drawn


def language_of(program: Program) -> str:
    """The device language of a program; empty for the host form."""
    return program.task.partition("_")[2] if program.task in DEVICE_TASKS else ""


# The corpus itself.


def test_the_corpus_is_as_large_as_promised_and_covers_the_catalogue() -> None:
    hostile = [one for one in PROGRAMS if not one.honest]
    assert len(hostile) >= 60
    assert len(PROGRAMS) - len(hostile) >= 25
    assert set(CATALOGUE.split()) <= {one.id for one in hostile}
    assert {one.task for one in PROGRAMS} == set(TASKS)


@pytest.mark.parametrize("language", ["opencl", "sycl"])
def test_each_device_language_has_its_share(language: str) -> None:
    mine = [one for one in PROGRAMS if language_of(one) == language]
    hostile = [one for one in mine if not one.honest]
    assert len(hostile) >= 20
    assert len(mine) - len(hostile) >= 4
    assert {code for one in hostile for code in one.expect} >= {
        VerdictCode.COMPILE_ERROR,
        VerdictCode.INCORRECT,
        VerdictCode.RUNTIME_ERROR,
        VerdictCode.TIMEOUT,
    }


def test_no_two_programs_share_a_name_and_every_gap_names_one() -> None:
    names = [one.name for one in PROGRAMS]
    assert len(set(names)) == len(names)
    assert set(KNOWN_GAPS) <= set(names)


def test_no_hostile_program_may_be_ok_unless_its_speed_is_bounded() -> None:
    for one in PROGRAMS:
        assert one.honest or one.at_most or VerdictCode.OK not in one.expect, one.name


def test_every_sample_is_drawn_from_its_seed_alone() -> None:
    assert [one.name for one in sample(7)] == [one.name for one in sample(7)]
    assert len({one.name for seed in range(60) for one in sample(seed)}) > 120


@pytest.mark.parametrize(
    ("header", "text"),
    [
        ("// id: A1\n// task: twice\n// expect: ok\n// why: w\n", "only with at_most"),
        ("// id: A1\n// task: twice\n// expect: incorrect\n// why: w\n// at_most: 2\n", "only with at_most"),
        ("// id: Z9\n// task: twice\n// expect: incorrect\n// why: w\n", "no entry of the catalogue"),
        ("// id: A1\n// task: twice\n// expect: incorrect\n", "lacks why"),
        ("// id: A1\n// id: A2\n", "not a header line"),
        ("// id: A1\n// expects: ok\n", "not a header line"),
        ("int x;\n", "not a header line"),
        ("// id: A1\n// task: twice\n// expect: fine\n// why: w\n", "fine"),
    ],
)
def test_a_header_that_says_too_little_or_nonsense_is_refused(header: str, text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        parse_program("p", f"{header}\nENTRY {{ return 0; }}\n", honest=False)


def test_an_honest_program_expects_ok_alone() -> None:
    header = "// id: A1\n// task: twice\n// expect: ok suspect\n// why: w\n"
    with pytest.raises(ValueError, match="ok and nothing else"):
        parse_program("p", header, honest=True)


# What counts as a right end.

BUILT = Digest("a" * 64, 1)
EXPECTED = parse_program("p", "// id: A1\n// task: twice\n// expect: incorrect\n// says: L2\n// why: w\n", honest=False)
SLOW = parse_program(
    "p", "// id: C5\n// task: twice\n// expect: ok suspect\n// at_most: 0.5\n// why: w\n", honest=False
)
WRONG = Report(outcome=Verdict(code=VerdictCode.INCORRECT, text="relative L2"), detail=RunResult())


def seen(*reports: Report) -> Seen:
    return Seen(reports=reports, built=BUILT, over_ns=0, survivors=0, took_ns=1)


def timed(value: float) -> Report:
    speed = Speedup(baseline="initial", value=value, low=value, high=value, rounds=3, worst_case="c", worst_value=value)
    detail = RunResult(speedups=(speed,), ran=BUILT)
    return Report(outcome=Verdict(code=VerdictCode.OK), detail=detail)


def test_the_expected_verdict_is_no_mismatch() -> None:
    assert mismatch(EXPECTED, seen(WRONG)) == ""
    assert mismatch(SLOW, seen(timed(0.3))) == ""


@pytest.mark.parametrize(
    ("program", "end", "text"),
    [
        (EXPECTED, seen(timed(1.0)), "ok is not among incorrect"),
        (EXPECTED, seen(WRONG, timed(1.0)), "ok is not among incorrect"),
        (EXPECTED, seen(Report(outcome=Incident(code=IncidentCode.INTERNAL))), "no verdict"),
        (EXPECTED, seen(Report(outcome=Verdict(code=VerdictCode.INCORRECT, text="other"))), "'L2' is not in"),
        (EXPECTED, seen(dataclasses.replace(WRONG, log_tail="\x1b[2J")), "terminal"),
        (EXPECTED, seen(dataclasses.replace(WRONG, log_tail="\u202e")), "terminal"),
        (EXPECTED, seen(dataclasses.replace(WRONG, log_tail="x" * (1 << 20))), "endless"),
        (EXPECTED, seen(dataclasses.replace(WRONG, detail=timed(1.0).detail)), "evidence"),
        (EXPECTED, dataclasses.replace(seen(WRONG), survivors=1), "live on"),
        (EXPECTED, dataclasses.replace(seen(WRONG), over_ns=10**9), "too late"),
        (SLOW, seen(timed(0.6)), "believed to be 0.6"),
        (SLOW, dataclasses.replace(seen(timed(0.3)), built=Digest("b" * 64, 1)), "evidence"),
    ],
)
def test_any_other_end_is_a_mismatch_with_its_reason(program: Program, end: Seen, text: str) -> None:
    assert text in mismatch(program, end)


# The sample.


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def field(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Field]:
    made = await Field.open(tmp_path_factory.mktemp("corpus"))
    try:
        yield made
    finally:
        await made.close()


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("program", [pytest.param(one, id=one.name) for one in sample(SEED)])
async def test_a_sampled_program_gets_the_verdict_it_must_get(field: Field, program: Program) -> None:
    if program.task in field.skipped:
        pytest.skip(f"{program.task}: {field.skipped[program.task]}")
    end = await field.run(program, *await field.build(program))
    assert mismatch(program, end) == ""


@pytest.mark.asyncio(loop_scope="module")
async def test_the_tasks_own_kernels_are_ok_after_the_sample(field: Field) -> None:
    for task in field.tasks:
        await field.control(task)
