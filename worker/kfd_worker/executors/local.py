"""Real work: the launcher process, started again when it dies."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

import structlog

from kfd.base.failure import KfdError
from kfd.base.work import Incident, IncidentCode, JobSpec, Report, Stage
from kfd_worker.launcher.client import LauncherClient
from kfd_worker.launcher.config import JobDone, LauncherConfig, LauncherFacts

__all__ = ["LocalExecutor"]


class LocalExecutor:
    """A launcher that is there when it is needed. The first is started before anything imports gRPC."""

    def __init__(self, config: LauncherConfig, launcher: LauncherClient) -> None:
        self._config = config
        self._launcher = launcher
        self._starting = asyncio.Lock()
        self._closed = False
        self._log = structlog.get_logger("kfd.executor")

    @classmethod
    async def start(cls, config: LauncherConfig) -> LocalExecutor:
        """Start the launcher. Raises LauncherError."""
        return cls(config, await LauncherClient.start(config))

    async def facts(self) -> LauncherFacts:
        """What the launcher offers. Raises LauncherError."""
        return await self._launcher.facts()

    async def run(
        self, ref: str, slot: str, spec: JobSpec, inputs: Mapping[str, Path], on_stage: Callable[[Stage], None]
    ) -> JobDone:
        """Do a job in a box."""
        try:
            launcher = await self._alive()
        except KfdError as error:
            text = f"the launcher died and cannot be started again: {error}"
            return JobDone(report=Report(outcome=Incident(code=IncidentCode.SANDBOX, text=text)))
        return await launcher.run(ref, slot, spec, inputs, on_stage)

    async def stop(self, ref: str, reason: str) -> None:
        """Stop a job."""
        await self._launcher.stop(ref, reason)

    async def discard(self, ref: str) -> None:
        """A job's files are no longer needed."""
        await self._launcher.discard(ref)

    async def close(self) -> None:
        """End the launcher and every box."""
        self._closed = True
        await self._launcher.close()

    async def _alive(self) -> LauncherClient:
        async with self._starting:
            if not self._launcher.alive and not self._closed:
                self._log.warning("launcher.restarting")
                await self._launcher.close()
                self._launcher = await LauncherClient.start(self._config)
                await self._launcher.facts()
            return self._launcher
