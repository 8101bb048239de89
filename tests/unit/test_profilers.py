"""Profiles read from saved output: numbers, one bottleneck, a short text; and no profile where there is none."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfd.base.instant import SECOND
from kfd_worker.profilers import ncu, perf, run, unitrace, vtune
from kfd_worker.profilers.evidence import Bottleneck, NoProfile, Parser, bottleneck_of, number

DATA = Path(__file__).parents[1] / "data" / "profiles"
PARSERS: tuple[Parser, ...] = (ncu.profile, unitrace.profile, vtune.profile, perf.profile)


def read(name: str) -> str:
    return (DATA / name).read_text()


def test_ncu_tells_the_launch_that_takes_longest() -> None:
    found = ncu.profile(read("ncu.csv"))
    facts = dict(found.facts)
    assert facts["ncu.kernel"] == "softmax"
    assert facts["ncu.duration_ns"] == "1020500"
    assert facts["ncu.share_of_launches_pct"] == "99"
    assert facts["ncu.dram_pct"] == "81.4"
    assert facts["ncu.dram_bytes"] == "67310000"
    assert facts["ncu.stall"] == "long_scoreboard 12.31"
    assert found.bottleneck == Bottleneck.MEMORY
    assert found.short_text.startswith("Bound by memory bandwidth: memory at 81 % of its peak")


def test_ncu_of_a_real_device_is_read() -> None:
    found = ncu.profile(read("ncu_h200.csv"))
    facts = dict(found.facts)
    assert (facts["ncu.kernel"], facts["ncu.sm_pct"], facts["ncu.registers"]) == ("softmax", "35.9", "31")
    assert found.bottleneck == Bottleneck.LATENCY


def test_ncu_without_rights_says_so() -> None:
    with pytest.raises(NoProfile, match="ERR_NVGPUCTRPERM"):
        ncu.profile(read("ncu_refused.txt"))


def test_ncu_asks_for_the_plans_kernels_and_leaves_the_clocks_alone() -> None:
    command = ncu.command(["python3", "x.py"], kernels=["softmax", "a.b"])
    assert command[-2:] == ("python3", "x.py")
    assert command[command.index("--kernel-name") + 1] == r"regex:^(softmax|a\.b)$"
    assert command[command.index("--clock-control") + 1] == "none"


def test_a_launch_has_a_place_under_measured_roofs() -> None:
    one = ncu.launches(read("ncu.csv"))[1]
    roofs = dict(ncu.under_roofs(one, flops=5e9, bytes_per_s=1.319e11, flops_per_s=5e13))
    assert roofs["roof.memory_share"] == "0.500"
    assert roofs["roof.arithmetic_share"] == "0.098"
    assert roofs["roof.nearer"] == "memory"
    assert ncu.under_roofs(one, flops=0, bytes_per_s=1, flops_per_s=1) == ()


def test_unitrace_tells_kernels_from_copies() -> None:
    rows = unitrace.rows(read("unitrace.txt"))
    assert [one.is_copy for one in rows] == [False, True, True]
    facts = dict(unitrace.profile(read("unitrace.txt")).facts)
    assert facts["unitrace.kernel"] == "matmul[SIMD32 {32; 1; 1} {4; 64; 1}]"
    assert facts["unitrace.average_ns"] == "19864296"
    assert facts["unitrace.copies_pct"] == "4.6"


def test_unitrace_names_copies_when_they_take_most() -> None:
    text = read("unitrace.txt").replace("79457185", "1457185")
    assert unitrace.profile(text).bottleneck == unitrace.COPIES


def test_vtune_tells_the_computing_task_that_takes_longest() -> None:
    found = vtune.profile(read("vtune.csv"))
    facts = dict(found.facts)
    assert facts["vtune.task"] == "matmul"
    assert (facts["vtune.active_pct"], facts["vtune.occupancy_pct"]) == ("71.4", "88.6")
    assert facts["vtune.read_gb_s"] == "101.5"
    assert found.bottleneck == Bottleneck.COMPUTE


def test_vtune_reads_tabs_and_the_names_of_older_devices() -> None:
    lines = ["Computing Task\tComputing Task:Total Time\tEU Array:Active(%)\tEU Array:Stalled(%)", "k\t0.5\t10.0\t80.0"]
    found = vtune.profile("\n".join(lines))
    assert dict(found.facts)["vtune.stalled_pct"] == "80"
    assert found.bottleneck == Bottleneck.LATENCY


def test_perf_tells_what_was_counted_and_leaves_out_what_was_not() -> None:
    found = perf.profile(read("perf.txt"))
    facts = dict(found.facts)
    assert facts["perf.ipc"] == "0.60"
    assert facts["perf.cache_miss_share"] == "0.400"
    assert facts["perf.missed_bytes"] == "1280000000"
    assert "perf.branch_miss_share" not in facts
    assert found.bottleneck == Bottleneck.MEMORY


def test_perf_without_counters_is_no_profile() -> None:
    with pytest.raises(NoProfile, match="counts no cycles"):
        perf.profile("<not supported>;;cycles:u;0;100.00;;\n")


@pytest.mark.parametrize(
    ("memory", "compute", "occupancy", "name"),
    [
        (80, 30, 90, Bottleneck.MEMORY),
        (30, 80, 90, Bottleneck.COMPUTE),
        (40, 30, 10, Bottleneck.OCCUPANCY),
        (40, 30, 70, Bottleneck.LATENCY),
        (-1, -1, 50, Bottleneck.UNKNOWN),
        (40, 50, -1, Bottleneck.UNKNOWN),
        (4, 5, -1, Bottleneck.LATENCY),
    ],
)
def test_the_nearer_roof_or_the_reason_names_the_bottleneck(
    memory: float, compute: float, occupancy: float, name: str
) -> None:
    assert bottleneck_of(memory_pct=memory, compute_pct=compute, occupancy_pct=occupancy) == name


def test_numbers_as_tools_print_them() -> None:
    assert number(" 1,234.5 ") == 1234.5
    assert [number(text) for text in ("", "nan", "inf", "n/a", "1e999")] == [-1.0] * 5


@pytest.mark.parametrize("parser", PARSERS)
@given(text=st.text(max_size=400))
def test_any_text_is_a_profile_or_none(parser: Parser, text: str) -> None:
    for start in ('"ID","Kernel Name"\n', "== L0 Backend ==\nKernel, Calls, Time (ns)\n", "Computing Task,a\n", ""):
        try:
            said = parser(start + text).short_text
        except NoProfile as error:
            said = str(error)
        assert 0 < len(said) <= 600


def test_a_profiler_that_is_not_there_or_hangs_is_a_reason_and_no_error() -> None:
    missing = run.run(["/nowhere/ncu"], ncu.profile, limit_ns=SECOND)
    assert (missing.evidence, missing.reason) == (None, "/nowhere/ncu is not installed")
    slow = run.run([sys.executable, "-c", "import time; time.sleep(30)"], ncu.profile, limit_ns=SECOND // 5)
    assert "TimeoutExpired" in slow.reason
    text = f"print(open({str(DATA / 'unitrace.txt')!r}).read())"
    good = run.run([sys.executable, "-c", text], unitrace.profile, limit_ns=20 * SECOND)
    assert good.evidence is not None
    assert b"Device Timing Summary" in good.output
