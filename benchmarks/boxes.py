"""A launcher for benchmarks: real boxes, real compiler, real judge, no daemon."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from kfd.base.digest import Digest, digest_of
from kfd.base.instant import SECOND
from kfd.base.work import BuildSpec, JobSpec, Limits, MeasurementPlan, Report, RunSpec
from kfd.tasks import load, pack
from kfd.tasks.spec import TaskSpec
from kfd_worker.launcher.client import LauncherClient
from kfd_worker.launcher.config import LauncherConfig

__all__ = ["Bench", "cpu_s", "tree"]

_LIMITS = Limits(wall_ns=60 * SECOND, memory_bytes=2 << 30)


def tree(pid: int) -> Iterator[int]:
    """A process and every process below it."""
    parents: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                text = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents.setdefault(int(text[1]), []).append(int(entry))
    waiting = [pid]
    while waiting:
        one = waiting.pop()
        yield one
        waiting += parents.get(one, ())


def cpu_s(pid: int) -> float:
    """CPU seconds of a process and of all living ones below it; those that have ended are not in it."""
    ticks = 0
    for one in tree(pid):
        try:
            fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += sum(int(field) for field in fields[11:13])
    return ticks / os.sysconf("SC_CLK_TCK")


class Bench:
    """One launcher and one task."""

    def __init__(self, client: LauncherClient, folder: Path, task: Path) -> None:
        self.client = client
        self._folder = folder
        archive = pack(task)
        self.spec: TaskSpec = load(archive).spec
        self.task = self._put(archive)
        self._count = 0

    @classmethod
    async def start(cls, folder: Path, task: Path, *, cores: tuple[int, ...] = ()) -> Bench:
        """Start a launcher on some cores (all when empty) with its state below ``folder``."""
        (folder / "cache").mkdir(parents=True)
        accept = os.environ.get("KFD_ACCEPT_UNSANDBOXED") == "1"
        client = await LauncherClient.start(
            LauncherConfig(state_dir=str(folder / "state"), cores=cores, accept_unsandboxed=accept)
        )
        await client.facts()
        return cls(client, folder, task)

    def _put(self, data: bytes) -> Digest:
        digest = digest_of(data)
        (self._folder / "cache" / digest.hash).write_bytes(data)
        return digest

    def _paths(self, *digests: Digest) -> dict[str, Path]:
        return {digest.hash: self._folder / "cache" / digest.hash for digest in digests}

    def _ref(self, kind: str) -> str:
        self._count += 1
        return f"{kind}-{self._count}/1"

    async def build(self, text: str) -> Digest:
        """Build a kernel that must build. Raises RuntimeError when it does not."""
        toolchain = self.spec.toolchain
        work = BuildSpec(
            task=self.task,
            source=text,
            kernel_path=self.spec.kernel.path,
            toolchain=toolchain,
            target=self.spec.targets[0],
            flags=self.spec.flags,
        )
        ref = self._ref("build")
        done = await self.client.run(
            ref, "build-0", JobSpec(work=work, limits=_LIMITS), self._paths(self.task), lambda _: None
        )
        if done.artifact is None:
            raise RuntimeError(f"the benchmark's kernel does not build: {done.report.outcome} {done.report.log_tail}")
        digest = self._put(done.artifact.read_bytes())
        await self.client.discard(ref)
        return digest

    async def run(
        self, artifact: Digest, initial: Digest | None, plan: MeasurementPlan, incumbent: Digest | None = None
    ) -> Report:
        """One run job in fresh boxes with a fresh secret, beside the initial kernel and an incumbent when given."""
        work = RunSpec(
            task=self.task,
            artifact=artifact,
            initial_artifact=initial,
            toolchain=self.spec.toolchain,
            target=self.spec.targets[0],
            seed=secrets.token_bytes(32),
            plan=plan,
            incumbent_artifact=incumbent,
        )
        inputs = self._paths(self.task, artifact, *(one for one in (initial, incumbent) if one is not None))
        ref = self._ref("run")
        done = await self.client.run(ref, "cpu", JobSpec(work=work, limits=_LIMITS), inputs, lambda _: None)
        await self.client.discard(ref)
        return done.report

    async def close(self) -> None:
        """End it."""
        await self.client.close()
