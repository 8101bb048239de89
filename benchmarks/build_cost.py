"""What compiling a candidate costs beside a PyTorch extension: ``python -m benchmarks.build_cost``.

C++: the shipped softmax kernel is compiled to an object with the product's own compiler and flags, as it is and with
PyTorch's headers included before it. CPU seconds of the compiler and all that it starts, by RUSAGE_CHILDREN, the
ways in turn so that what disturbs the machine disturbs all of them.

CUDA: the shipped softmax kernel as the product builds it (nvcc to a cubin) beside ``nvcc -c`` of the same text with
``torch/extension.h`` before it, same optimisation and architecture; no device is needed. OpenCL and SYCL: CPU seconds
of whole builds in the product's own box, as they say themselves. A toolchain that is not installed is named on
standard error and left out.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks.figures import Figure, report
from kfd.base.digest import digest_of
from kfd.base.work import BuildResult, BuildSpec, JobSpec, Limits
from kfd.tasks import launchplan, load, pack
from kfd_worker.launcher.client import LauncherClient
from kfd_worker.launcher.config import LauncherConfig
from kfd_worker.toolchains.cpp import BASE_FLAGS
from kfd_worker.toolchains.cuda import Cuda
from kfd_worker.toolchains.port import SOURCE

TASKS = Path(__file__).resolve().parent.parent / "tasks"
TASK = TASKS / "softmax_rows"
CUDA_TASK = TASKS / "softmax_cuda"
DEVICE_TASKS = {"opencl": TASKS / "softmax_opencl", "sycl": TASKS / "softmax_sycl"}
BAR = 50.0
EXTENSION_RUNS = 1
"""An extension of CUDA takes about 100 CPU seconds to compile."""
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


def spent_s(command: Sequence[str], source: Path) -> float:
    """CPU seconds of a compiler and all that it starts. Raises RuntimeError when it fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, timeout=_LIMIT_S, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        text = done.stderr.decode("utf-8", "replace")[:800]
        raise RuntimeError(f"{source.name} does not compile; are Python's headers (python3-dev) there? {text}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compile_s(source: Path, flags: tuple[str, ...]) -> float:
    """CPU seconds of one compilation of C++. Raises RuntimeError when it fails."""
    compiler = os.environ.get("CXX", "g++")
    return spent_s([compiler, *BASE_FLAGS, *flags, "-c", "-o", str(source.with_suffix(".o")), str(source)], source)


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


def measure_cuda(runs: int) -> dict[str, list[float]]:
    """CPU seconds of our CUDA build (``runs`` of them) and of the extension's; empty without nvcc."""
    spec = load(pack(CUDA_TASK)).spec
    toolchain = Cuda()
    plan = launchplan.parse(spec.kernel.text, spec.parameters, spec.toolchain)
    asked = BuildSpec(
        task=spec.digest,
        source=spec.kernel.text,
        kernel_path=spec.kernel.path,
        toolchain=spec.toolchain,
        target=spec.targets[0],
    )
    argv = toolchain.request(asked, spec, plan).argv
    if "-cubin" not in argv:
        return {}
    found: dict[str, list[float]] = {"ours": [], "extension": []}
    with tempfile.TemporaryDirectory(prefix="kfd-build-cost-") as folder:
        source, heavy = Path(folder, spec.kernel.path), Path(folder, "extension.cu")
        source.write_text(spec.kernel.text)
        heavy.write_text(f"#include <torch/extension.h>\n{spec.kernel.text}")
        places = {"/scratch/kernel.out": f"{folder}/kernel.cubin", f"{SOURCE}/{spec.kernel.path}": str(source)}
        ours = [places.get(one, one) for one in argv]
        for _ in range(runs):
            found["ours"].append(spent_s(ours, source))
        # The compiler and its flags alone: without the shell that hands the cubin out.
        nvcc = ours[ours.index("-cubin") - 1]
        flags = [one for one in ours[ours.index("-cubin") + 1 :] if one != str(source) and "-Werror" not in one]
        # What torch.utils.cpp_extension adds beside its include folders.
        more = ["-c", "-Xcompiler=-fPIC", "--expt-relaxed-constexpr", "-DTORCH_EXTENSION_NAME=softmax"]
        folders = [one.replace("-isystem", "-isystem=", 1) for one in include_flags()]
        standard = ["-std=c++20" if one.startswith("-std=") else one for one in flags]
        command = [nvcc, *more, *standard, *folders, "-o", f"{folder}/extension.o", str(heavy)]
        for _ in range(EXTENSION_RUNS):
            found["extension"].append(spent_s(command, heavy))
    return found


async def measure_devices(runs: int) -> dict[str, list[float]]:
    """CPU seconds of whole builds of the shipped OpenCL and SYCL softmax, by toolchain; what is installed only."""
    found: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="kfd-build-cost-") as folder:
        client = await LauncherClient.start(LauncherConfig(state_dir=f"{folder}/state", run_slots=0))
        try:
            offered = {one.name for one in (await client.facts()).toolchains}
            for name in sorted(offered & DEVICE_TASKS.keys()):
                found[name] = [await _build_s(client, Path(folder), name, turn) for turn in range(runs)]
        finally:
            await client.close()
    return found


async def _build_s(client: LauncherClient, folder: Path, name: str, turn: int) -> float:
    archive = pack(DEVICE_TASKS[name])
    spec, digest = load(archive).spec, digest_of(archive)
    path = folder / digest.hash
    path.write_bytes(archive)
    work = BuildSpec(
        task=digest,
        # Another text each time: the launcher remembers builds.
        source=f"{spec.kernel.text}// {turn}\n",
        kernel_path=spec.kernel.path,
        toolchain=spec.toolchain,
        target=spec.targets[0],
    )
    job = JobSpec(work=work, limits=Limits())
    done = await client.run(f"{name}-{turn}/1", "build-0", job, {digest.hash: path}, lambda _: None)
    detail = done.report.detail
    if done.artifact is None or not isinstance(detail, BuildResult):
        raise RuntimeError(f"{name} does not build: {done.report.outcome} {done.report.log_tail[-400:]}")
    return int(dict(detail.facts)["build_cpu_ms"]) / 1000


def cpp_figures(found: dict[str, list[float]]) -> list[Figure]:
    """The ratios of C++."""
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
    return figures


def cuda_figure(found: dict[str, list[float]]) -> Figure:
    """The ratio of CUDA: every pair of a compilation of ours and one of the extension."""
    ours, heavy = median(found["ours"]), median(found["extension"])
    ratios = [one / other for one in found["extension"] for other in found["ours"]]
    return Figure(
        figure="build_cost.cuda.ratio_extension_header",
        value=round(heavy / ours, 1),
        unit="x",
        bar=BAR,
        n=len(found["extension"]),
        low=round(min(ratios), 1),
        high=round(max(ratios), 1),
        note=f"torch/extension.h: {heavy:.2f} CPU s (n = {len(found['extension'])}) against {ours:.3f}"
        f" (n = {len(found['ours'])}), nvcc on both sides, compile step only",
    )


def device_figure(name: str, times: list[float]) -> Figure:
    """CPU seconds of a build; reported."""
    return Figure(
        figure=f"build_cost.{name}.cpu_s",
        value=round(median(times), 3),
        unit="CPU s",
        n=len(times),
        low=min(times),
        high=max(times),
        note=f"tasks/{DEVICE_TASKS[name].name}, whole build box",
    )


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--only", choices=["cpp", "cuda", "devices"], help="one group of figures")
    asked = parser.parse_args()
    runs, only = max(3, asked.runs), asked.only
    figures: list[Figure] = []
    if only in (None, "cpp"):
        figures += cpp_figures(measure(runs))
    if only in (None, "cuda"):
        cuda = measure_cuda(runs) if Cuda().targets else {}
        figures += [cuda_figure(cuda)] if cuda else _left_out("cuda", "there is no nvcc")
    if only in (None, "devices"):
        devices = asyncio.run(measure_devices(runs))
        for name in DEVICE_TASKS:
            figures += [device_figure(name, devices[name])] if name in devices else _left_out(name, "not installed")
    return report(figures)


def _left_out(name: str, reason: str) -> list[Figure]:
    sys.stderr.write(f"build_cost.{name}: left out, {reason}\n")
    return []


if __name__ == "__main__":
    sys.exit(main())
