"""What the whole evaluator says: real boxes, real compiler, real judge."""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from kfd.base.digest import Digest
from kfd.base.instant import SECOND
from kfd.base.work import (
    AdmitResult,
    AdmitSpec,
    BuildResult,
    Incident,
    IncidentCode,
    JobSpec,
    Limits,
    MeasurementPlan,
    RunResult,
    Stage,
    Verdict,
    VerdictCode,
)
from kfd.tasks import pack
from kfd_worker.launcher.config import JobDone
from tests.integration.exec_rig import CONFIG, HONEST, TASK, Rig, write_task

pytestmark = pytest.mark.asyncio(loop_scope="module")

TINY = TASK.replace(
    '[{"name": "small", "n": 1001, "timed": False}, {"name": "large", "n": 200003}]', '[{"name": "t", "n": 1000}]'
)
SQUARES = TASK.replace("x * 2.0", "x * x")
ROWS = (
    CONFIG.replace("name: scale", "name: rows")
    .replace("shape: [n]", "shape: [m, n]")
    .replace("  - {name: n, role: size}\n", "  - {name: m, role: size}\n  - {name: n, role: size}\n")
)
SOFTMAX = """
import torch

CASES = [{"name": "a", "m": 40, "n": 65}, {"name": "b", "m": 7, "n": 1030, "timed": False}]


def make_inputs(case, generator):
    return {"x": torch.randn(case["m"], case["n"], generator=generator)}


def reference(x):
    return torch.softmax(x, dim=-1)
"""


def softmax(shift: str) -> str:
    return (
        "#include <cmath>\n"
        'extern "C" int solve(const float *x, float *y, int64_t m, int64_t n) {\n'
        "    for (int64_t i = 0; i < m; ++i) {\n"
        "        const float *r = x + i * n; float *o = y + i * n; float top = r[0]; double sum = 0;\n"
        "        for (int64_t j = 1; j < n; ++j) top = r[j] > top ? r[j] : top;\n"
        f"        top = {shift};\n"
        "        for (int64_t j = 0; j < n; ++j) sum += o[j] = std::exp(r[j] - top);\n"
        "        for (int64_t j = 0; j < n; ++j) o[j] = float(o[j] / sum);\n"
        "    }\n    return 0;\n}\n"
    )


def doubled(statement: str) -> str:
    """Twice the input, with a statement before it."""
    return (
        'extern "C" int solve(const float *x, float *y, int64_t n) {\n'
        f"    {statement}\n    for (int64_t i = 0; i < n; ++i) y[i] = 2.0f * x[i];\n    return 0;\n}}\n"
    )


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rig(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Rig]:
    made = await Rig.start(tmp_path_factory.mktemp("judge"))
    try:
        yield made
    finally:
        await made.client.close()


def put(rig: Rig, tmp_path: Path, task: str, *, config: str = CONFIG, block: str = HONEST) -> Digest:
    return rig.put(pack(write_task(tmp_path / "given", task=task, config=config, block=block)))


async def judged(rig: Rig, block: str, task: Digest | None = None) -> JobDone:
    return await rig.run(await rig.artifact(block, task=task), task=task, wall_ns=10 * SECOND)


async def refused(rig: Rig, block: str, code: VerdictCode, words: str, task: Digest | None = None) -> None:
    done = await judged(rig, block, task)
    outcome = done.report.outcome
    assert isinstance(outcome, Verdict), outcome
    assert outcome.code is code, outcome
    assert words in outcome.text, outcome


async def test_a_kernel_of_a_hundred_nanoseconds_gets_a_sane_bounded_speedup(rig: Rig, tmp_path: Path) -> None:
    task = put(rig, tmp_path, TINY)
    done = await rig.run(
        await rig.artifact(HONEST, task=task), task=task, plan=MeasurementPlan(min_rounds=8, max_rounds=8)
    )
    assert done.report.outcome == Verdict(code=VerdictCode.OK)
    detail = done.report.detail
    assert isinstance(detail, RunResult)
    (speed,) = detail.speedups
    (times,) = detail.comparisons
    # The call alone, from an interpreter, takes half a microsecond; a reference takes a few.
    assert min(times.candidate_ns) > 200
    assert 0.2 < speed.value < 50


async def test_the_report_tells_noise_floor_skipped_families_and_what_the_calls_cost(rig: Rig) -> None:
    done = await judged(rig, HONEST)
    told = dict(done.report.environment)
    assert done.report.outcome == Verdict(code=VerdictCode.OK)
    assert 0 <= float(told["noise_floor"]) < 5
    assert told["bitwise_repeatable"] == "yes"
    assert float(told["calls_cpu_ms"]) > 0
    assert float(told["boxes_cpu_ms"]) > 0


async def test_sizes_that_nobody_declared_are_checked(rig: Rig) -> None:
    block = doubled("if (n != 1001 && n != 200003) return memset(y, 0, n * 4), 0;")
    await refused(rig, block, VerdictCode.INCORRECT, "hidden-")


async def test_softmax_that_forgets_the_maximum_fails_where_it_overflows(rig: Rig, tmp_path: Path) -> None:
    task = put(rig, tmp_path, SOFTMAX, config=ROWS, block=softmax("top"))
    await refused(rig, softmax("0.0f"), VerdictCode.INCORRECT, " values: y: ", task)
    done = await judged(rig, softmax("top"), task)
    assert done.report.outcome == Verdict(code=VerdictCode.OK), done.report.outcome


SUM = """
extern "C" int solve(const float *x, float *y, int64_t m, int64_t n) {
    for (int64_t i = 0; i < m; ++i) {
        float s = 0;
        for (int64_t j = FIRST; j < n; ++j) s += x[i * n + j] * x[i * n + j];
        y[i] = s;
    }
    return 0;
}
"""


async def test_an_error_within_the_bounds_is_found_by_whole_numbers(rig: Rig, tmp_path: Path) -> None:
    # Thousands of terms, one of them left out: far beyond fp32's bounds, well within bf16's.
    out = "{name: y, role: out, dtype: float32, shape: [m, n]}"
    config = ROWS.replace("class: fp32", "class: bf16").replace(out, out.replace("[m, n]", "[m]"))
    text = SOFTMAX.replace("torch.softmax(x, dim=-1)", "(x * x).sum(dim=-1)").replace('"m": 40', '"m": 70')
    text = text.replace('"n": 65', '"n": 2000').replace('"n": 1030', '"n": 3000')
    task = put(rig, tmp_path, text, config=config, block=SUM.replace("FIRST", "0"))
    done = await judged(rig, SUM.replace("FIRST", "0"), task)
    assert done.report.outcome == Verdict(code=VerdictCode.OK), done.report.outcome
    await refused(rig, SUM.replace("FIRST", "1"), VerdictCode.INCORRECT, "values: y: ", task)


@pytest.mark.parametrize(
    "statement",
    [
        "static int calls; if (++calls == 3) { for (int64_t i = 0; i < n; ++i) y[i] = 2.001f * x[i]; return 0; }",
        "static float first; static bool have; if (!have) { have = true; first = x[0]; } "
        "else if (x[0] != first) { have = true; memset(y, 0, n * 4); return 0; }",
    ],
    ids=["wrong on the third call", "right for its first content only"],
)
async def test_repeated_calls_must_all_be_right(rig: Rig, statement: str) -> None:
    await refused(rig, doubled(statement), VerdictCode.INCORRECT, "case")


async def test_reading_before_an_input_faults_at_the_guard_page(rig: Rig) -> None:
    block = doubled("volatile float before = x[-1]; (void)before;")
    await refused(rig, block, VerdictCode.RUNTIME_ERROR, "SIGSEGV")


async def test_reading_past_an_input_faults_at_the_guard_page(rig: Rig) -> None:
    # 1001 floats end 60 bytes before their page does: one vector's width, no more.
    block = doubled("volatile float after = x[n + 16]; (void)after;")
    await refused(rig, block, VerdictCode.RUNTIME_ERROR, "SIGSEGV")


async def test_a_task_that_would_take_a_constant_fails_every_job_with_the_reason(rig: Rig, tmp_path: Path) -> None:
    task = put(rig, tmp_path, TASK.replace("x * 2.0", "torch.ones_like(x)"))
    for _ in range(2):
        done = await judged(rig, HONEST, task)
        outcome = done.report.outcome
        assert isinstance(outcome, Incident), outcome
        assert outcome.code is IncidentCode.REFERENCE
        assert "constant" in outcome.text
        assert "Change make_inputs" in outcome.text


async def prove(rig: Rig, task: Digest) -> JobDone:
    work = AdmitSpec(task=task, toolchain="cpp", target="cpp:native", seed=secrets.token_bytes(32))
    stages: list[Stage] = []
    done = await rig.client.run(
        rig.ref("admit"), "cpu", JobSpec(work=work, limits=Limits()), rig.paths(task), stages.append
    )
    assert stages
    return done


async def test_a_job_without_a_candidate_proves_a_task(rig: Rig, tmp_path: Path) -> None:
    done = await prove(rig, rig.task)
    assert done.report.outcome == Verdict(code=VerdictCode.OK)
    detail = done.report.detail
    assert isinstance(detail, AdmitResult)
    assert detail.noise_floor > 0
    assert all(one.passed for one in detail.probes)
    assert {"y: zeros", "y: input x", "y: another draw"} <= {one.name for one in detail.probes}


async def test_a_task_that_fails_its_proof_says_which_wrong_answer_it_takes(rig: Rig, tmp_path: Path) -> None:
    done = await prove(rig, put(rig, tmp_path, TASK.replace("x * 2.0", "x.clone()")))
    assert isinstance(done.report.outcome, Verdict)
    assert done.report.outcome.code is VerdictCode.INCORRECT
    assert "the input x itself" in done.report.outcome.text
    assert isinstance(done.report.detail, AdmitResult)
    assert [one.name for one in done.report.detail.probes if not one.passed] == ["y: input x"]


async def test_a_task_whose_code_fails_is_an_incident_of_the_reference(rig: Rig, tmp_path: Path) -> None:
    done = await prove(rig, put(rig, tmp_path, TASK.replace("x * 2.0", "x.no_such_thing()")))
    assert isinstance(done.report.outcome, Incident)
    assert done.report.outcome.code is IncidentCode.REFERENCE
    assert "no_such_thing" in done.report.outcome.text


def facts(done: JobDone) -> dict[str, str]:
    assert isinstance(done.report.detail, BuildResult)
    return dict(done.report.detail.facts)


async def test_the_second_build_of_a_source_comes_from_the_cache_byte_for_byte(rig: Rig) -> None:
    block = doubled("// a source of its own")
    first = await rig.build(block)
    again = await rig.build(block)
    assert "build_cache" not in facts(first)
    assert facts(again)["build_cache"] == "hit"
    assert first.artifact is not None
    assert again.artifact is not None
    assert first.artifact != again.artifact
    assert first.artifact.read_bytes() == again.artifact.read_bytes()
    assert first.report.outcome == again.report.outcome
    other = await rig.build(block, flags=("-O1",))
    assert "build_cache" not in facts(other)


async def test_a_compile_error_is_remembered_with_its_messages(rig: Rig) -> None:
    first, again = [await rig.build("int solve( {") for _ in range(2)]
    assert isinstance(first.report.detail, BuildResult)
    assert isinstance(again.report.detail, BuildResult)
    assert facts(again)["build_cache"] == "hit"
    assert again.report.outcome == first.report.outcome
    assert dataclasses.replace(again.report.detail, facts=()) == dataclasses.replace(first.report.detail, facts=())


async def test_a_build_that_ran_out_of_time_is_built_again(rig: Rig) -> None:
    # A constant that takes the compiler seconds to work out.
    slow = (
        "constexpr long work(long n) { long s = 0; for (long i = 0; i < n; ++i) s ^= i * i; return s; }\n"
        "template <long N> struct At { static constexpr long value = work(200000 + N) + At<N - 1>::value; };\n"
        "template <> struct At<0> { static constexpr long value = 0; };\nlong all = At<400>::value;\n"
    )
    for _ in range(2):
        done = await rig.build(slow + HONEST, limits=Limits(wall_ns=SECOND // 2, memory_bytes=1 << 30))
        assert isinstance(done.report.outcome, Verdict)
        assert done.report.outcome.code is VerdictCode.TIMEOUT
        assert "build_cache" not in facts(done)
