"""Judges: one for each run slot, started ahead, kept warm, replaced when it dies or hangs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kfd.base.instant import SECOND
from kfd_worker.launcher.frames import read_frame
from kfd_worker.launcher.harnesses import Harness
from kfd_worker.launcher.places import interpreter_mounts, judge_code, package_folders, thread_environment
from kfd_worker.sandbox.box import Box, BoxError, BoxLimits, Limit
from kfd_worker.sandbox.output import readable
from kfd_worker.sandbox.runner import RunningBox, Sandbox

__all__ = ["JudgeDied", "JudgeProcess"]

_READY_S = 120.0
_NEVER_NS = 10**9 * SECOND
_SCRATCH_BYTES = 1 << 30
_NOBODY = (("USER", "judge"), ("TORCHINDUCTOR_CACHE_DIR", "/scratch/inductor"))
"""The judge's user has no entry in the system's list, and PyTorch asks for a name and a folder of its own."""
_BOOT = (
    "import os, sys; fd, scratch, threads, code = sys.argv[1:5]; "
    "sys.path[:0] = [os.path.dirname(code)]; sys.path += sys.argv[6:]; "
    "from kfd_worker.judge.main import main; main(int(fd), scratch, int(threads))"
)


class JudgeDied(Exception):
    """The judge ended or went silent; the text says what is known."""


class JudgeProcess:
    """One judge. Orders one at a time; the caller holds ``lock``."""

    def __init__(
        self, sandbox: Sandbox, name: str, uid: int, threads: int, cpus: tuple[int, ...], device: Harness | None = None
    ) -> None:
        """``device`` is what kernels see of a device that the reference runs on too."""
        self._device = device
        self.lock = asyncio.Lock()
        self._sandbox = sandbox
        self._name = name
        self._uid = uid
        self._threads = threads
        self._cpus = cpus
        self._box: RunningBox | None = None
        self._socket: socket.socket | None = None
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def start(self) -> None:
        """Start it unless it is up, and wait until it is ready. Raises JudgeDied, BoxError."""
        if self._box is not None:
            return
        ours, theirs = socket.socketpair()
        try:
            self._box = self._sandbox.start(self._describe(theirs.fileno()))
        except BoxError:
            ours.close()
            raise
        finally:
            theirs.close()
        # One duplicate reads by the loop, the other sends descriptors, which streams cannot.
        self._socket = ours
        self._reader, self._writer = await asyncio.open_connection(sock=ours.dup(), limit=1 << 20)
        first = await self._next(_READY_S)
        if first.get("type") != "ready":
            raise JudgeDied(f"the judge began with {first}")

    def _describe(self, fd: int) -> Box:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        code, device = judge_code(), self._device
        return Box(
            name=f"judge-{self._name}",
            # -B: no bytecode is written; -I: nothing from the environment or the folder is imported.
            # The virtual environment's interpreter by its own name, so that its packages are found.
            argv=(
                sys.executable,
                "-I",
                "-B",
                "-W",
                "ignore",
                "-c",
                _BOOT,
                str(fd),
                "/scratch",
                str(self._threads),
                *(one.target for one in code),
                *package_folders(),
            ),
            mounts=(*interpreter_mounts(packages=True), *code, *(device.system if device else ())),
            env=(*thread_environment(self._threads), *_NOBODY, *(device.env if device else ())),
            nodes=device.nodes if device else (),
            scratch_bytes=_SCRATCH_BYTES,
            fds=(fd,),
            uid=self._uid,
            cpus=self._cpus,
            limits=BoxLimits(
                wall_ns=_NEVER_NS,
                memory_bytes=memory,
                processes=512,
                file_bytes=1 << 40,
                flood_bytes=1 << 40,
                open_files=1024,
            ),
        )

    async def run(
        self,
        order: dict[str, Any],
        task: Path,
        sockets: list[socket.socket],
        silence_s: float,
        tell: Callable[[dict[str, Any]], None],
    ) -> dict[str, Any]:
        """Give an order and wait for its end; stages are told as they come.

        Raises JudgeDied when the judge ends, says nothing for ``silence_s`` seconds or cannot be reached.
        """
        assert self._socket is not None
        body = json.dumps(order, allow_nan=False).encode()
        descriptor = os.open(task, os.O_RDONLY | os.O_CLOEXEC)
        try:
            # A small message into an empty socket buffer: this does not block.
            fds = [descriptor, *(one.fileno() for one in sockets)]
            socket.send_fds(self._socket, [len(body).to_bytes(4, "little") + body], fds)
        except OSError as error:
            raise JudgeDied(f"the judge cannot be reached: {error}") from error
        finally:
            os.close(descriptor)
        phase = "starting"
        while True:
            try:
                message = await self._next(silence_s)
            except JudgeDied as error:
                raise JudgeDied(f"{error} (it was at: {phase})") from error
            if message["type"] == "done":
                return message
            phase = str(message.get("phase", message.get("stage", phase)))
            tell(message)

    async def _next(self, patience_s: float) -> dict[str, Any]:
        assert self._reader is not None
        try:
            async with asyncio.timeout(patience_s):
                message = await read_frame(self._reader)
        except TimeoutError:
            raise JudgeDied(f"the judge said nothing for {patience_s:.0f} s") from None
        if message is None:
            raise JudgeDied("the judge ended")
        return message

    async def kill(self) -> str:
        """End it; returns the tail of its log. It can be started again."""
        text = ""
        if self._writer is not None:
            self._writer.close()
            with contextlib.suppress(OSError):
                await self._writer.wait_closed()
            self._writer = self._reader = None
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._box is not None:
            box, self._box = self._box, None
            text = readable((await box.end(Limit.STOPPED)).log[-4000:])
        return text
