"""What compiling a candidate costs beside a PyTorch extension: ``python -m benchmarks.build_cost``.

The shipped softmax kernel is compiled to an object with the product's own compiler and flags, as it is and with
PyTorch's headers included before it. CPU seconds of the compiler and all that it starts, by RUSAGE_CHILDREN, the
ways in turn so that what disturbs the machine disturbs all of them.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from statistics import median

from benchmarks.figures import Figure, report
from kfd.tasks import load, pack
from kfd_worker.toolchains.cpp import BASE_FLAGS

TASK = Path(__file__).resolve().parent.parent / "tasks" / "softmax_rows"
BAR = 50.0
RUNS = 3
_LIMIT_S = 600
WAYS = {
    "plain": (),
    "slim": ("ATen/core/Tensor.h", "torch/library.h"),
    "extension": ("torch/extension.h",),
}


def include_flags() -> tuple[str, ...]:
    """Where PyTorch's and Python's headers are."""
    import torch

    root = Path(torch.__file__).parent / "include"
    folders = [root, root / "torch" / "csrc" / "api" / "include", Path(sysconfig.get_paths()["include"])]
    return tuple(f"-isystem{folder}" for folder in folders)


def compile_s(source: Path, flags: tuple[str, ...]) -> float:
    """CPU seconds of one compilation. Raises RuntimeError when it fails."""
    compiler = os.environ.get("CXX", "g++")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [compiler, *BASE_FLAGS, *flags, "-c", "-o", str(source.with_suffix(".o")), str(source)],
        capture_output=True,
        timeout=_LIMIT_S,
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        text = done.stderr.decode("utf-8", "replace")[:800]
        raise RuntimeError(f"{source.name} does not compile; are Python's headers (python3-dev) there? {text}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(runs: int) -> dict[str, list[float]]:
    """CPU seconds of each way."""
    text = load(pack(TASK)).spec.kernel.text
    headers = include_flags()
    found: dict[str, list[float]] = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory(prefix="kfd-build-cost-") as folder:
        for _ in range(runs):
            for way, includes in WAYS.items():
                source = Path(folder, f"{way}.cpp")
                source.write_text("".join(f"#include <{one}>\n" for one in includes) + text)
                found[way].append(compile_s(source, headers if includes else ()))
    return found


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    found = measure(max(3, parser.parse_args().runs))
    plain = median(found["plain"])
    figures = []
    for way, name, bar in (
        ("extension", "build_cost.cpp.ratio_extension_header", BAR),
        ("slim", "build_cost.cpp.ratio_slim_headers", None),
    ):
        ratios = [heavy / light for heavy, light in zip(found[way], found["plain"], strict=True)]
        figures.append(
            Figure(
                figure=name,
                value=round(median(found[way]) / plain, 1),
                unit="x",
                bar=bar,
                n=len(ratios),
                low=round(min(ratios), 1),
                high=round(max(ratios), 1),
                note=f"{' and '.join(WAYS[way])}: {median(found[way]):.2f} CPU s against {plain:.3f}",
            )
        )
    return report(figures)


if __name__ == "__main__":
    sys.exit(main())
