"""The embedded agent: a child process of the daemon, started again when it dies."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import time
from pathlib import Path

import structlog

from kfd.daemon.config import WorkerConfig

__all__ = ["EmbeddedAgent", "agent_command"]

RESTART_SECONDS = (0.5, 1.0, 2.0, 5.0, 10.0)
STEADY_SECONDS = 60.0
EXIT_NO_RESTART = 78
"""The agent's way to say that starting it again makes no sense (wrong protocol, no sandbox)."""


def agent_command(config: WorkerConfig, address: str, token_file: Path, state: Path, name: str) -> list[str]:
    """Command line of the embedded agent."""
    command = [
        sys.executable,
        "-m",
        "kfd_worker.cli",
        "run",
        "--daemon",
        address,
        "--token-file",
        str(token_file),
    ]
    command += ["--state-dir", str(state), "--name", name, "--exit-with-stdin", "--executor", config.executor]
    if config.build_lanes:
        command += ["--build-lanes", str(config.build_lanes)]
    if config.accept_unsandboxed:
        command.append("--accept-unsandboxed")
    return command


class EmbeddedAgent:
    """Keeps one agent running. Its standard input is a pipe that ends with the daemon, however that ends."""

    def __init__(self, command: list[str], stop_seconds: float) -> None:
        self._command = command
        self._stop_seconds = stop_seconds
        self._process: asyncio.subprocess.Process | None = None
        self._log = structlog.get_logger("kfd.agent")

    async def run(self) -> None:
        """Run until cancelled; cancelling stops the agent in good order."""
        deaths = 0
        try:
            while True:
                started = time.monotonic()
                self._process = await asyncio.create_subprocess_exec(
                    *self._command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL
                )
                code = await self._process.wait()
                deaths = 0 if time.monotonic() - started > STEADY_SECONDS else deaths + 1
                self._log.warning("agent.ended", exit_code=code, deaths=deaths)
                if code == EXIT_NO_RESTART:
                    self._log.error("agent.refused", next="read its last message above; the daemon goes on without it")
                    return
                await asyncio.sleep(RESTART_SECONDS[min(deaths, len(RESTART_SECONDS) - 1)])
        finally:
            await self._stop()

    async def _stop(self) -> None:
        process = self._process
        if process is None or process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(self._stop_seconds):
                await process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
