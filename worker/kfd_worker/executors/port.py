"""What the agent needs of whoever carries out jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from kfd.base.work import JobSpec, Stage
from kfd_worker.launcher.config import JobDone, LauncherFacts

__all__ = ["Executor"]


class Executor(Protocol):
    """Laws: ``run`` always returns, with a report, and leaves nothing running; ``stop`` makes it return soon;
    files that it hands back stay until ``discard``."""

    async def facts(self) -> LauncherFacts:
        """What can be done here, after self-tests. Raises KfdError when nothing can."""
        ...

    async def run(
        self, ref: str, slot: str, spec: JobSpec, inputs: Mapping[str, Path], on_stage: Callable[[Stage], None]
    ) -> JobDone:
        """Do a job. ``ref`` names it (``job/attempt``), ``inputs`` are files by the hash of their digest."""
        ...

    async def stop(self, ref: str, reason: str) -> None:
        """Stop a job; unknown ones are ignored."""
        ...

    async def discard(self, ref: str) -> None:
        """A job's files are no longer needed."""
        ...

    async def close(self) -> None:
        """End everything."""
        ...
