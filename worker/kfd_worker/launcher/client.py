"""The agent's side of the launcher. Asyncio; imports no gRPC, so that a launcher can share the file."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kfd.base.codec import decode, encode
from kfd.base.failure import KfdError
from kfd.base.work import Incident, IncidentCode, JobSpec, Report, Stage
from kfd_worker.launcher.config import JobDone, LauncherConfig, LauncherFacts
from kfd_worker.launcher.frames import read_frame, write_frame

__all__ = ["LauncherClient", "LauncherError"]

_FACTS_S = 180.0
_CLOSE_S = 10.0
# Nothing else of the agent's environment is inherited: it may hold tokens and keys.
_PASSED = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "PYTHONPATH", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "SYSTEMROOT")


class LauncherError(KfdError):
    """The launcher could not be started."""


@dataclass
class _Waiting:
    on_stage: Callable[[Stage], None]
    done: asyncio.Future[JobDone] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class LauncherClient:
    """One launcher process. Made by ``start``; ``run`` always returns, whatever happens to the launcher."""

    def __init__(
        self, process: subprocess.Popen[bytes], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer
        self._facts: asyncio.Future[LauncherFacts] = asyncio.get_running_loop().create_future()
        self._waiting: dict[str, _Waiting] = {}
        self._gone = False
        self._listening = asyncio.create_task(self._listen())

    @classmethod
    async def start(cls, config: LauncherConfig) -> LauncherClient:
        """Start a launcher. Its facts come later. Raises LauncherError when there can be no process at all."""
        state = Path(config.state_dir)
        try:
            os.makedirs(state, exist_ok=True, mode=0o700)
            log = os.open(state / "launcher.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise LauncherError(f"the state folder {config.state_dir} cannot be used: {error}") from error
        ours, theirs = socket.socketpair()
        try:
            process = subprocess.Popen(  # noqa: ASYNC220 - a few milliseconds, once
                [sys.executable, "-m", "kfd_worker.launcher", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={name: os.environ[name] for name in _PASSED if name in os.environ},
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            raise LauncherError(f"the launcher cannot be started: {error}") from error
        finally:
            theirs.close()
            os.close(log)
        reader, writer = await asyncio.open_connection(sock=ours, limit=1 << 20)
        client = cls(process, reader, writer)
        write_frame(writer, {"config": encode(config)})
        return client

    @property
    def alive(self) -> bool:
        """Whether the launcher can take jobs."""
        return not self._gone

    @property
    def pid(self) -> int:
        """The launcher's process."""
        return self._process.pid

    async def facts(self) -> LauncherFacts:
        """What the machine offers, after self-tests. Raises LauncherError when the launcher refuses or dies."""
        try:
            async with asyncio.timeout(_FACTS_S):
                return await asyncio.shield(self._facts)
        except TimeoutError:
            raise LauncherError(f"the launcher's self-tests took longer than {_FACTS_S:.0f} s") from None

    async def run(
        self, ref: str, slot: str, spec: JobSpec, inputs: Mapping[str, Path], on_stage: Callable[[Stage], None]
    ) -> JobDone:
        """Do a job: ``inputs`` are files by the hash of their digest, ``on_stage`` is called on each new stage.

        Always returns; a cancelled call stops the job.
        """
        if self._gone:
            return _gone()
        if ref in self._waiting:
            return _internal(f"job {ref} runs already")
        waiting = self._waiting[ref] = _Waiting(on_stage)
        paths = {key: str(path) for key, path in inputs.items()}
        try:
            write_frame(self._writer, {"do": "run", "ref": ref, "slot": slot, "spec": encode(spec), "inputs": paths})
            return await waiting.done
        except ValueError as error:
            return _internal(f"the job cannot be handed to the launcher: {error}")
        except asyncio.CancelledError:
            await self.stop(ref, "the agent gave the job up")
            raise
        finally:
            self._waiting.pop(ref, None)

    async def stop(self, ref: str, reason: str) -> None:
        """Stop a job: its ``run`` returns with Stopped, or with its result when that was first."""
        if not self._gone:
            write_frame(self._writer, {"do": "stop", "ref": ref, "reason": reason})

    async def discard(self, ref: str) -> None:
        """The job's artifact and log are no longer needed."""
        if not self._gone:
            write_frame(self._writer, {"do": "discard", "ref": ref})

    async def close(self) -> None:
        """End the launcher and with it every box."""
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()
        await self._end()
        self._listening.cancel()
        await asyncio.gather(self._listening, return_exceptions=True)

    # What the launcher says.

    async def _listen(self) -> None:
        try:
            while (frame := await read_frame(self._reader)) is not None:
                self._hear(frame)
        except (ValueError, KeyError) as error:
            self._lost(f"the launcher talks nonsense: {error}")
        else:
            self._lost("the launcher ended")

    def _hear(self, frame: dict[str, Any]) -> None:
        kind = frame["is"]
        waiting = self._waiting.get(str(frame.get("ref")))
        if kind == "facts":
            if not self._facts.done():
                self._facts.set_result(decode(LauncherFacts, frame["facts"]))
        elif kind == "refused":
            self._fail_facts(str(frame["text"]))
        elif kind == "stage" and waiting is not None:
            waiting.on_stage(Stage(frame["stage"]))
        elif kind == "done" and waiting is not None and not waiting.done.done():
            artifact, log = frame.get("artifact"), frame.get("log")
            waiting.done.set_result(
                JobDone(
                    report=decode(Report, frame["report"]),
                    artifact=Path(artifact) if artifact else None,
                    log=Path(log) if log else None,
                )
            )

    def _fail_facts(self, text: str) -> None:
        if not self._facts.done():
            self._facts.set_exception(LauncherError(text))
            self._facts.exception()  # looked at, so that nobody warns when no one asks for the facts

    def _lost(self, text: str) -> None:
        self._gone = True
        self._fail_facts(f"{text}; see launcher.log in its state folder")
        for waiting in self._waiting.values():
            if not waiting.done.done():
                waiting.done.set_result(_gone())

    async def _end(self) -> None:
        """Wait for the process; one that does not go is killed, and its boxes die with it."""
        self._gone = True
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(None, self._process.wait, _CLOSE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            await loop.run_in_executor(None, self._process.wait, _CLOSE_S)


def _internal(text: str) -> JobDone:
    return JobDone(report=Report(outcome=Incident(code=IncidentCode.INTERNAL, text=text)))


def _gone() -> JobDone:
    return _internal("the launcher ended while the job was running")
