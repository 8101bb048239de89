"""One job on its way through the launcher: its folder, its boxes, its stages, its stop."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from kfd.base.instant import Span
from kfd.base.work import Stage, Verdict, VerdictCode
from kfd_worker.launcher.places import Inputs
from kfd_worker.sandbox.box import Box, Ended, Limit
from kfd_worker.sandbox.runner import RunningBox, Sandbox

__all__ = ["Job", "boxed", "limit_verdict"]


class Job:
    """State of one running job."""

    def __init__(self, ref: str, folder: Path, inputs: Inputs, tell: Callable[[Stage], None]) -> None:
        self.ref = ref
        self.folder = folder
        self.inputs = inputs
        self.artifact: Path | None = None
        self.log: Path | None = None
        self.stop_reason = ""
        self.stopping = False
        self._tell = tell
        self._boxes: set[RunningBox] = set()
        self._stages: list[tuple[str, Span]] = []
        self._stage = ""
        self._since = time.monotonic_ns()

    def stage(self, stage: Stage) -> None:
        """The job has come to a stage."""
        self._end_stage()
        self._stage = str(stage)
        self._tell(stage)

    def _end_stage(self) -> None:
        now = time.monotonic_ns()
        if self._stage:
            self._stages.append((self._stage, now - self._since))
        self._since = now

    def stages(self) -> tuple[tuple[str, Span], ...]:
        """Time spent in each stage so far."""
        self._end_stage()
        self._stage = ""
        return tuple(self._stages)

    def keep_log(self, log: bytes) -> None:
        """Keep the log for the agent."""
        if log:
            self.log = self.folder / "log.txt"
            self.log.write_bytes(log)

    def start(self, sandbox: Sandbox, box: Box) -> RunningBox:
        """Start a box of this job. A job that is being stopped gets one that is already ended."""
        running = sandbox.start(box)
        self._boxes.add(running)
        if self.stopping:
            running.kill(Limit.STOPPED)
        return running

    def stop(self, reason: str) -> None:
        """End everything of the job now; its report says so."""
        if not self.stopping:
            self.stopping = True
            self.stop_reason = reason
        for running in self._boxes:
            running.kill(Limit.STOPPED)

    def stopped(self) -> bool:
        """Whether the job has been stopped by now."""
        return self.stopping

    async def end_boxes(self) -> None:
        """End what still lives and wait for it."""
        for running in self._boxes:
            await running.end(Limit.STOPPED)


async def boxed(job: Job, sandbox: Sandbox, box: Box) -> Ended:
    """Run one box of a job to its end."""
    return await job.start(sandbox, box).wait()


def limit_verdict(ended: Ended, who: str) -> Verdict | None:
    """The verdict for a box that was ended at a limit; None when it was not."""
    if ended.limit is Limit.WALL:
        return Verdict(code=VerdictCode.TIMEOUT, text=f"{who} was not done within the time limit")
    if ended.limit is Limit.MEMORY:
        return Verdict(code=VerdictCode.RESOURCE_LIMIT, text=f"{who} used more memory than allowed")
    if ended.limit is Limit.OUTPUT:
        return Verdict(code=VerdictCode.RESOURCE_LIMIT, text=f"{who} wrote more output than allowed")
    return None
