"""What judging costs beside the calls: ``python -m benchmarks.evaluate_cost``.

CPU seconds of all processes (launcher, judge, boxes) for one run job of the shipped softmax task, its initial
kernel beside a candidate, less those of the candidate's, the initial kernel's, the reference's and the
double-precision reference's own calls. The judge is warm, as it is in service; the task has been admitted.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
from pathlib import Path
from statistics import median

from benchmarks.boxes import Bench, cpu_s
from benchmarks.figures import Figure, report
from kfd.base.work import MeasurementPlan, RunResult, Verdict, VerdictCode

TASK = Path(__file__).resolve().parent.parent / "tasks" / "softmax_rows"
BAR_S = 1.0


async def measure(jobs: int) -> list[Figure]:
    """Run so many jobs."""
    plan = MeasurementPlan()
    overhead, whole, rounds = [], [], []
    with tempfile.TemporaryDirectory(prefix="kfd-bench-") as folder:
        os.chmod(folder, 0o711)
        bench = await Bench.start(Path(folder), TASK)
        try:
            # The kernel as it is shipped against a copy of itself with other bytes.
            initial = await bench.build(bench.spec.kernel.text)
            candidate = await bench.build(bench.spec.kernel.text + "\n// again\nextern const int again = 1;\n")
            for number in range(jobs + 1):
                before = cpu_s(bench.client.pid)
                done = await bench.run(candidate, initial, plan)
                if done.outcome != Verdict(code=VerdictCode.OK):
                    raise RuntimeError(f"the shipped kernel was judged {done.outcome}")
                told = dict(done.environment)
                # Launcher and judge live on; the boxes have ended and were asked for their time before.
                used = cpu_s(bench.client.pid) - before + float(told["boxes_cpu_ms"]) / 1000
                calls = float(told["calls_cpu_ms"]) / 1000
                # The first job finds a cold judge, imports the task and admits it.
                if number:
                    overhead.append(used - calls)
                    whole.append(used)
                    assert isinstance(done.detail, RunResult)
                    rounds.append(done.detail.speedups[0].rounds)
        finally:
            await bench.close()
    return [
        Figure(
            figure="evaluate.overhead_cpu_s",
            value=round(median(overhead), 3),
            unit="s",
            bar=BAR_S,
            at_least=False,
            n=len(overhead),
            low=round(min(overhead), 3),
            high=round(max(overhead), 3),
            note=f"softmax, {median(rounds):.0f} rounds (median), whole job {median(whole):.2f} CPU s",
        )
    ]


def main() -> int:
    """Print the figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=5)
    return report(asyncio.run(measure(parser.parse_args().jobs)))


if __name__ == "__main__":
    sys.exit(main())
