"""Whether the evaluator sees differences that are not there, or misses some that are: ``python -m benchmarks.aa``.

One kernel of about a millisecond, and the same kernel with exactly five per cent of its elements computed twice.
Both are measured in turn through the real launcher, boxes and judge, while another process keeps the second core
busy. Every measurement meets the one before it of its own kind (A/A: 300 pairs) and of the other kind (150 pairs
with a real difference). A pair is won as a campaign wins it: ``clearly_better`` on the first measurement, and then side
by side with the other in a second one, in fresh boxes with fresh inputs, with the whole interval above 1.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from benchmarks.boxes import Bench
from benchmarks.figures import Figure, report
from kfd.base.digest import Digest
from kfd.base.ids import CandidateId
from kfd.base.work import INCUMBENT, INITIAL, MeasurementPlan, RunResult, Verdict, VerdictCode
from kfd.core.search.archive import Elite, clearly_better

PLAN = MeasurementPlan()
"""As campaigns measure."""
PAIRS = 151
BAR_FOUND = 0.9
ELEMENTS = 4000
TWICE = ELEMENTS // 20
STEPS = 256

CONFIG = """
name: recurrence
description: A recurrence of fixed length for each element
flavour: native
target: cpp:native
kernel: kernel.cpp
entry: solve
interface:
  - {name: x, role: in, dtype: float32, shape: [n]}
  - {name: y, role: out, dtype: float32, shape: [n]}
  - {name: n, role: size}
tolerance: {class: fp32}
baseline: initial
target_speedup: 2.0
limits: {build_seconds: 60, run_seconds: 60, memory_mb: 512}
budget: {candidates: 4}
"""
TASK = f"""
import torch

CASES = [{{"name": "one", "n": {ELEMENTS}}}]


def make_inputs(case, generator):
    return {{"x": torch.randn(case["n"], generator=generator)}}


def reference(x):
    # What the kernel's recurrence arrives at. As a recurrence it would not be admitted: early steps are not seen.
    return x * 2.0
"""
# One chain of dependent steps for each element, which the compiler must not merge with another's.
KERNEL = f"""#include <cstdint>
// [EVOLVE_START]
static void part(const float *x, float *y, int64_t n) {{
    for (int64_t i = 0; i < n; ++i) {{
        float v = 0.0f;
        // Unrolled: how well the end of a short loop is predicted depends on where the process was put in memory.
        #pragma GCC unroll {STEPS}
        for (int k = 0; k < {STEPS}; ++k) {{
            v = x[i] + 0.5f * v;
            asm volatile("" : "+x"(v));
        }}
        y[i] = v;
    }}
}}

extern "C" int solve(const float *x, float *y, int64_t n) {{
    part(x, y, n);
    part(x, y, n * AGAIN / {ELEMENTS});
    return 0;
}}
// [EVOLVE_END]
"""


def kernel(again: int) -> str:
    """The kernel that computes so many of its elements twice."""
    return KERNEL.replace("AGAIN", str(again))


@dataclass
class Tally:
    """What has been seen so far."""

    same: int = 0
    same_first: int = 0
    same_won: int = 0
    other: int = 0
    other_first: int = 0
    other_won: int = 0
    kernel_ns: list[int] = field(default_factory=list)
    rounds: list[int] = field(default_factory=list)
    gains: list[float] = field(default_factory=list)
    differences: list[float] = field(default_factory=list)
    """Log ratios of A/A pairs."""


class Contest:
    """Measures kernels and lets them meet."""

    def __init__(self, bench: Bench, artifacts: dict[str, Digest]) -> None:
        self._bench = bench
        self._artifacts = artifacts
        self._count = 0
        self.tally = Tally()

    async def _run(self, kind: str, incumbent: Digest | None = None) -> RunResult:
        done = await self._bench.run(self._artifacts[kind], self._artifacts["base"], PLAN, incumbent)
        if done.outcome != Verdict(code=VerdictCode.OK) or not isinstance(done.detail, RunResult):
            raise RuntimeError(f"the benchmark's kernel was judged {done.outcome}")
        return done.detail

    async def measured(self, kind: str) -> Elite:
        """One run job, as the archive takes it."""
        self._count += 1
        artifact = self._artifacts[kind]
        detail = await self._run(kind)
        speed = next(one for one in detail.speedups if one.baseline == INITIAL)
        times = next(one for one in detail.comparisons if one.baseline == INITIAL)
        self.tally.kernel_ns.append(int(median(times.candidate_ns)))
        self.tally.rounds.append(speed.rounds)
        return Elite(
            candidate=CandidateId(f"{kind}-{self._count}"),
            ordinal=self._count,
            generation=0,
            cell=(0, 0, 0),
            fitness=speed.value,
            speedup=speed.value,
            low=speed.low,
            high=speed.high,
            source=artifact.hash,
            artifact=artifact,
        )

    async def won(self, kind: str, new: Elite, old: Elite) -> tuple[bool, bool]:
        """Whether the newcomer wins at first, and whether it still does side by side."""
        if not clearly_better(new, old):
            return False, False
        detail = await self._run(kind, old.artifact)
        return True, next(one for one in detail.speedups if one.baseline == INCUMBENT).low > 1.0

    async def meet(self, last: dict[str, Elite]) -> dict[str, Elite]:
        """One turn: both kinds measured, each against its own last measurement, the fast one against the slow."""
        now = {kind: await self.measured(kind) for kind in ("slow", "fast")}
        for kind, old in last.items():
            first, again = await self.won(kind, now[kind], old)
            self.tally.same += 1
            self.tally.differences.append(abs(math.log(now[kind].speedup / old.speedup)))
            self.tally.same_first += first
            self.tally.same_won += again
        first, again = await self.won("fast", now["fast"], now["slow"])
        self.tally.other += 1
        self.tally.other_first += first
        self.tally.other_won += again
        self.tally.gains.append(math.log(now["fast"].speedup / now["slow"].speedup))
        return now


def busy() -> subprocess.Popen[bytes]:
    """A process that never rests, on the last core that we may use."""
    core = max(os.sched_getaffinity(0))
    code = f"import os; os.sched_setaffinity(0, {{{core}}})\nwhile os.getppid() == {os.getpid()}: sum(range(10**6))"
    return subprocess.Popen([sys.executable, "-c", code])


def write_task(folder: Path) -> None:
    """The task of this benchmark."""
    folder.mkdir()
    (folder / "config.yaml").write_text(CONFIG)
    (folder / "task.py").write_text(TASK)
    (folder / "kernel.cpp").write_text(kernel(TWICE))


async def contest(turns: int) -> Tally:
    """So many turns beside a busy core."""
    with tempfile.TemporaryDirectory(prefix="kfd-bench-") as name:
        folder = Path(name)
        os.chmod(name, 0o711)
        task = folder / "task"
        write_task(task)
        # The agent is given the first core, as its configuration allows; the second is somebody else's.
        bench = await Bench.start(folder / "bench", task, cores=(min(os.sched_getaffinity(0)),))
        load = busy()
        try:
            artifacts = {
                "slow": await bench.build(kernel(TWICE)),
                "fast": await bench.build(kernel(0)),
                # Other bytes than the slow one's, as a campaign's initial kernel has.
                "base": await bench.build(kernel(TWICE) + "\nextern const int base = 1;\n"),
            }
            found = Contest(bench, artifacts)
            last: dict[str, Elite] = {}
            for turn in range(turns):
                last = await found.meet(last)
                if turn % 10 == 9:
                    sys.stderr.write(f"{turn + 1} turns: {found.tally.same_won} false, {found.tally.other_won} true\n")
        finally:
            load.kill()
            load.wait()
            await bench.close()
    return found.tally


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--pairs", type=int, default=PAIRS, help="turns, at least 2; each gives one real and two A/A pairs"
    )
    began = time.monotonic()
    tally = asyncio.run(contest(max(2, parser.parse_args().pairs)))
    seconds = time.monotonic() - began
    middle_us = median(tally.kernel_ns) / 1000
    shared = (
        f"kernel {middle_us:.0f} us, {median(tally.rounds):.0f} rounds (median), {len(tally.rounds)} run jobs in "
        f"{seconds:.0f} s, measured on one core, the second busy"
    )
    apart = f"A/A pairs differ by {median(tally.differences):.2%} (median), {max(tally.differences):.2%} at most"
    return report(
        [
            Figure(
                figure="aa.false_wins",
                value=tally.same_won,
                unit="pairs",
                bar=0,
                at_least=False,
                n=tally.same,
                note=f"{tally.same_first} before confirmation; {apart}; {shared}",
            ),
            Figure(
                figure="aa.true_5pct_found",
                value=round(tally.other_won / tally.other, 4),
                unit="share",
                bar=BAR_FOUND,
                n=tally.other,
                note=f"{tally.other_first} before confirmation; median gain {math.expm1(median(tally.gains)):.2%}",
            ),
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
