"""A small task for the simulated device, as files: for tests and benchmarks of everything but the kernels."""

from __future__ import annotations

from pathlib import Path

__all__ = ["SIM_TASK", "source_with", "write_sim_task"]

KERNEL = """// A kernel for the simulated device: the directive below is all that is "run".
#include <cstdint>
// [EVOLVE_START]
// sim: verdict=ok speedup=1.00
extern "C" int solve(const float *x, float *y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] + 1.0f;
    return 0;
}
// [EVOLVE_END]
"""

CONFIG = """name: sim-add
description: Adds one to a vector on the simulated device
flavour: native
target: sim:device
kernel: kernel.cpp
entry: solve
interface:
  - {name: x, role: in, dtype: float32, shape: [n]}
  - {name: y, role: out, dtype: float32, shape: [n]}
  - {name: n, role: size}
tolerance: {class: fp32}
baseline: reference
target_speedup: 2.0
budget: {candidates: 20}
"""

TASK = """CASES = [{"name": "small", "n": 1000}]


def make_inputs(case, generator):
    import torch

    return {"x": torch.randn(case["n"], generator=generator)}


def reference(x):
    return x + 1
"""

SIM_TASK = {"config.yaml": CONFIG, "kernel.cpp": KERNEL, "task.py": TASK}


def write_sim_task(folder: Path) -> Path:
    """Write the task and give its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in SIM_TASK.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def source_with(directive: str, salt: object) -> str:
    """Contents of the EVOLVE block with a directive for the simulated device, told apart by a salt."""
    # The salt is in the code, not in a name: what only renames its variables is a near-duplicate.
    return (
        f"// sim: {directive}\n"
        'extern "C" int solve(const float *x, float *y, int64_t n) {\n'
        f'    const char *const salt = "{salt}";\n'
        "    for (int64_t i = 0; i < n; ++i) y[i] = x[i] + 1.0f;\n"
        "    (void)salt;\n"
        "    return 0;\n"
        "}\n"
    )
