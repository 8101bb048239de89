"""How well times can be told apart on a device: a kernel against itself, a true 2 %, device clock against our own."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from kfd.base.measure import PROCESS_NOISE, estimate, log_ratios
from kfd.tasks.spec import Parameter, Role
from kfd.tasks.targets import TOLERANCES
from kfd_worker.judge.gpu_clock import agree, round_time_ns, slope_agrees
from tests.gpu.drive import Built, Kernel, Task, build, figure
from tests.gpu.runner import Runner

__all__ = ["aa", "clock"]

_ELEMENTS = 132 * 4 * 256
_ROUNDS = 40
_CALLS = 5
_BUSY = """// [LAUNCH] launch busy grid(ceildiv(n, 256)) block(256) args(x, y, n)
#include <cstdint>
extern "C" __global__ void busy(const float *x, float *y, int64_t n) {{
    const int64_t at = blockIdx.x * int64_t(256) + threadIdx.x;
    if (at >= n) return;
    float value = x[at];
    #pragma unroll 1
    for (int turn = 0; turn < {turns}; ++turn) value = fmaf(value, 0.999f, 0.001f);
    y[at] = value;
}}
"""


class _BusyModule:
    CASES = ({"name": "busy", "n": _ELEMENTS},)

    @staticmethod
    def make_inputs(case: dict[str, Any], generator: torch.Generator) -> dict[str, torch.Tensor]:
        return {"x": torch.randn(case["n"], generator=generator)}


def _busy(turns: int) -> Kernel:
    parameters = (
        Parameter(name="x", role=Role.IN, dtype="float32", shape=("n",)),
        Parameter(name="y", role=Role.OUT, dtype="float32", shape=("n",)),
        Parameter(name="n", role=Role.SIZE, dtype="int64"),
    )
    text = _BUSY.format(turns=turns)
    task = Task("busy", "cuda", text, "kernel.cu", parameters, TOLERANCES["fp32"], _BusyModule)
    return Kernel(task, text)


# ---- A/A and a true 2 % ------------------------------------------------------------------------------------------


@dataclass
class _Pair:
    left: Runner
    right: Runner

    def close(self) -> None:
        self.left.close()
        self.right.close()

    def compare(self, seed: int) -> tuple[float, float, float]:
        """Ratio of the left's time to the right's, with its interval, from interleaved rounds."""
        dice = random.Random(seed)
        times: dict[bool, list[int]] = {False: [], True: []}
        for _ in range(_ROUNDS):
            order = [False, True]
            dice.shuffle(order)
            for side in order:
                runner = self.right if side else self.left
                found, _ = runner.call(1, list(range(_CALLS)))
                times[side].append(round_time_ns([found]))
        made = estimate([log_ratios(times[True], times[False])], seed=seed)
        # As a speed-up is told: what differs from one process to the next is in its interval.
        below, above = (math.hypot(side, PROCESS_NOISE) for side in (made.value - made.low, made.high - made.value))
        return math.exp(made.value), math.exp(made.value - below), math.exp(made.value + above)


def _opened(built: Built) -> Runner:
    runner = Runner(built)
    runner.map(1, dict(_BusyModule.CASES[0]), _CALLS)
    for index in range(_CALLS):
        runner.refresh(1, index, index)
    for _ in range(10):
        runner.call(1, list(range(_CALLS)))
    return runner


def _turns_for(folder: Path, targets_us: tuple[float, ...]) -> dict[float, tuple[int, float]]:
    """Loop turns of the busy kernel for each time: a straight line through two measured points."""
    points = []
    for turns in (100, 20_000):
        runner = _opened(build(_busy(turns), folder / f"busy-{turns}"))
        points.append((turns, round_time_ns([runner.call(1, list(range(_CALLS)))[0] for _ in range(10)])))
        runner.close()
    (low, low_ns), (high, high_ns) = points
    slope = (high_ns - low_ns) / (high - low)
    return {target: (max(1, round(low + (target * 1000 - low_ns) / slope)), slope) for target in targets_us}


def aa(folder: Path) -> bool:
    """The same kernel against itself, and against one with 2 % more work."""
    fine = True
    turns = _turns_for(folder, (5.0, 10.0, 50.0, 500.0))
    for target, (count, _) in turns.items():
        built = build(_busy(count), folder / f"aa-{target}")
        found = []
        for process in range(5):
            pair = _Pair(_opened(built), _opened(built))
            found += [pair.compare(100 * process + number) for number in range(4)]
            if process == 0:
                times, _ = pair.left.call(1, list(range(_CALLS)))
                figure(f"aa.gpu_{target:g}us_actual", times.median_ns / 1e3, "us", floor_us=times.floor_ns / 1e3)
            pair.close()
        worst = max(abs(value - 1) for value, _, _ in found)
        false = sum(not low <= 1 <= high for _, low, high in found)
        wide = sorted((high - low) / 2 for _, low, high in found)[len(found) // 2]
        bar = {"bar": 0.01, "ok": worst <= 0.01} if target == 50.0 else {}
        fine = fine and bar.get("ok", True) is True
        more = {"n": len(found), "intervals_without_1": false, "half_width": wide, **bar}
        figure(f"aa.gpu_{target:g}us_worst_deviation", worst, "", **more)
    return _two_percent(folder, turns[50.0]) and fine


def _two_percent(folder: Path, calibrated: tuple[int, float]) -> bool:
    count, slope = calibrated
    more_turns = round(0.02 * 50_000 / slope)
    slow, fast = build(_busy(count + more_turns), folder / "slow"), build(_busy(count), folder / "fast")
    found = []
    for process in range(10):
        pair = _Pair(_opened(slow), _opened(fast))
        found += [pair.compare(7000 + 100 * process + number) for number in range(4)]
        pair.close()
    share = sum(low > 1 for _, low, _ in found) / len(found)
    middle = sorted(value for value, _, _ in found)[len(found) // 2]
    figure("aa.gpu_2pct_found", share, "", bar=0.9, ok=share >= 0.9, n=len(found), median_ratio=middle)
    return share >= 0.9


# ---- the outer clock ---------------------------------------------------------------------------------------------


def clock(folder: Path) -> bool:
    """Device time against our own: sums within orders, and the slope over repeats."""
    built = build(_busy(20_000), folder / "clock")
    runner = _opened(built)
    sets = list(range(_CALLS))
    whole = [runner.call(1, sets) for _ in range(10)]
    runner.map(1, dict(_BusyModule.CASES[0]), _CALLS, empty=True)
    bare = sorted(runner.call(1, sets)[1] for _ in range(10))[5]
    answers = [agree(times.total_ns, took, bare, times.calls) for times, took in whole]
    pairs = []
    for repeat in (1000, 3000):
        runner.map(1, dict(_BusyModule.CASES[0]), _CALLS, repeat=repeat)
        times, took = runner.call(1, [0])
        pairs.append((times.total_ns, took))
    runner.close()
    slope = slope_agrees((pairs[0][0], pairs[1][0]), (pairs[0][1], pairs[1][1]))
    ratio = (pairs[1][0] - pairs[0][0]) / max(1, pairs[1][1] - pairs[0][1])
    sums = sum(one.holds for one in answers) / len(answers)
    text = next((one.text for one in answers if not one.holds), "")
    figure("gpu.clock_sums_agree", sums, "", ok=sums == 1, bar=1, n=len(answers), overhead_us=bare / 1e3, note=text)
    figure("gpu.clock_slope_ratio", ratio, "", ok=slope.holds, note=slope.text)
    return slope.holds and sums == 1
