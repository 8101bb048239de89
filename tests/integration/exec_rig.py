"""A launcher and a small task for tests: real boxes, real compiler, real judge."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from kfd.base.digest import Digest, digest_of
from kfd.base.instant import MILLISECOND, SECOND
from kfd.base.work import BuildSpec, JobSpec, Limits, MeasurementPlan, RunSpec, Stage
from kfd.tasks import pack
from kfd_worker.launcher.client import LauncherClient
from kfd_worker.launcher.config import JobDone, LauncherConfig

CONFIG = """
name: scale
description: Twice the input
flavour: native
target: cpp:native
kernel: kernel.cpp
entry: solve
interface:
  - {name: x, role: in, dtype: float32, shape: [n]}
  - {name: y, role: out, dtype: float32, shape: [n]}
  - {name: n, role: size}
tolerance: {class: fp32}
baseline: reference
target_speedup: 2.0
limits: {build_seconds: 20, run_seconds: 20, memory_mb: 512}
budget: {candidates: 4}
"""
TASK = """
import torch

CASES = [{"name": "small", "n": 1001, "timed": False}, {"name": "large", "n": 200003}]


def make_inputs(case, generator):
    return {"x": torch.randn(case["n"], generator=generator)}


def reference(x):
    return x * 2.0
"""
HONEST = (
    'extern "C" int solve(const float *x, float *y, int64_t n) {\n'
    "    for (int64_t i = 0; i < n; ++i) y[i] = 2.0f * x[i];\n    return 0;\n}\n"
)
PRELUDE = "#include <cstdint>\n#include <cstdlib>\n#include <cstdio>\n#include <cstring>\n"
QUICK = MeasurementPlan(min_rounds=3, max_rounds=3, max_ns=2 * SECOND)


def source(block: str) -> str:
    """A whole kernel file with this block."""
    return f"{PRELUDE}// [EVOLVE_START]\n{block}// [EVOLVE_END]\n"


def write_task(folder: Path, *, config: str = CONFIG, task: str = TASK, block: str = HONEST) -> Path:
    """A task folder."""
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(config)
    (folder / "task.py").write_text(task)
    (folder / "kernel.cpp").write_text(source(block))
    return folder


RIG_SEED = b"one seed for all jobs, for tests."[:32]
"""Equal contents in every run: what a test finds must not hang on the draw."""


@dataclass
class Rig:
    """One launcher with a cache of inputs."""

    client: LauncherClient
    folder: Path
    task: Digest
    stages: list[Stage] = field(default_factory=list)
    _count: int = 0

    @classmethod
    async def start(cls, folder: Path, *, hide: tuple[str, ...] = (), accept: bool = False) -> Rig:
        """Start a launcher below ``folder`` with the little task in its cache."""
        config = LauncherConfig(state_dir=str(folder / "state"), hide=hide, accept_unsandboxed=accept)
        client = await LauncherClient.start(config)
        (folder / "cache").mkdir()
        rig = cls(client, folder, Digest("0" * 64, 0))
        rig.task = rig.put(pack(write_task(folder / "task")))
        return rig

    def put(self, data: bytes) -> Digest:
        """Put bytes into the cache."""
        digest = digest_of(data)
        (self.folder / "cache" / digest.hash).write_bytes(data)
        return digest

    def paths(self, *digests: Digest) -> dict[str, Path]:
        """Inputs of a job."""
        return {digest.hash: self.folder / "cache" / digest.hash for digest in digests}

    def ref(self, name: str) -> str:
        """A fresh name of an attempt."""
        self._count += 1
        return f"{name}-{self._count}/1"

    async def build(
        self, block: str, *, task: Digest | None = None, flags: tuple[str, ...] = (), limits: Limits | None = None
    ) -> JobDone:
        """Build a block."""
        task = task or self.task
        work = BuildSpec(
            task=task, source=source(block), kernel_path="kernel.cpp", toolchain="cpp", target="cpp:native", flags=flags
        )
        spec = JobSpec(work=work, limits=limits or Limits(wall_ns=20 * SECOND, memory_bytes=1 << 30))
        return await self.client.run(self.ref("build"), "build-0", spec, self.paths(task), self.stages.append)

    async def artifact(self, block: str, *, task: Digest | None = None) -> Digest:
        """Build a block that must build; its artifact is in the cache then."""
        done = await self.build(block, task=task)
        assert done.artifact is not None, done.report
        return self.put(done.artifact.read_bytes())

    async def run(
        self,
        artifact: Digest,
        *,
        task: Digest | None = None,
        initial: Digest | None = None,
        wall_ns: int = 1500 * MILLISECOND,
        plan: MeasurementPlan = QUICK,
        seed: bytes = b"",
        ref: str = "",
    ) -> JobDone:
        """Check and time an artifact."""
        task = task or self.task
        work = RunSpec(
            task=task,
            artifact=artifact,
            initial_artifact=initial,
            toolchain="cpp",
            target="cpp:native",
            seed=seed or RIG_SEED,
            plan=plan,
        )
        spec = JobSpec(work=work, limits=Limits(wall_ns=wall_ns, memory_bytes=256 << 20, processes=32))
        inputs = self.paths(task, artifact, *([initial] if initial else []))
        return await self.client.run(ref or self.ref("run"), "cpu", spec, inputs, self.stages.append)


def below(pid: int) -> set[int]:
    """Every process below one, by /proc."""
    parents: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError, IndexError):
                text = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
                if text[0] not in "ZX":
                    parents.setdefault(int(text[1]), []).append(int(entry))
    found: set[int] = set()
    waiting = [pid]
    while waiting:
        for child in parents.get(waiting.pop(), ()):
            found.add(child)
            waiting.append(child)
    return found


async def until(condition: Callable[[], bool], seconds: float = 1.0) -> bool:
    """Whether a condition comes to hold within some seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.01)
    return True
