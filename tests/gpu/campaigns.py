"""Campaigns on a machine with an NVIDIA device: a real daemon, one build-only and one run-only agent.

``python -m tests.gpu.campaigns [TASK...]`` prints one JSON object a line for each task; all four without one.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from tests.e2e.devices import played

TASKS = ("softmax_cuda", "matmul_cuda", "softmax_triton", "matmul_triton")


def main(names: list[str]) -> int:
    """Play them; 0 when each ended with a winner that stood its last measurement."""
    bad = 0
    for name in names or TASKS:
        with tempfile.TemporaryDirectory(prefix="kfd-gpu-") as folder:
            Path(folder).chmod(0o711)
            campaign, candidates, logs = played(Path(folder), name)
        speeds = {
            one.baseline: [round(one.value, 3), round(one.low, 3), round(one.high, 3), one.rounds]
            for one in campaign.final_speeds
        }
        ok = campaign.state == "finished" and bool(speeds)
        bad += not ok
        line = {
            "figure": f"campaign.{name}",
            "ok": ok,
            "state": campaign.state,
            "reason": campaign.reason,
            "outcomes": {count.key: count.value for count in campaign.candidates_by_outcome},
            "final": speeds,
            "noise_floor": campaign.noise_floor,
            "roofline": round(campaign.search.roofline, 3),
            "active_s": round(campaign.active_ns / 1e9, 1),
            "candidates": [
                [
                    one.id.rpartition("-")[2],
                    one.outcome,
                    one.text[:120],
                    {speed.baseline: [round(speed.value, 3), round(speed.low, 3)] for speed in one.speeds},
                ]
                for one in candidates
                if one.outcome != "no_recording"
            ],
        }
        print(json.dumps(line), flush=True)
        if not ok:
            sys.stderr.write(logs[-2500:])
    return bad > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
