"""Starting boxes, reading what they write, ending them. Asyncio; one ``Sandbox`` for the launcher."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from kfd.base.instant import SECOND
from kfd_worker.sandbox.box import Backend, Box, BoxError, Ended, Limit
from kfd_worker.sandbox.cgroups import Cgroup, CgroupTree
from kfd_worker.sandbox.command import STARTED, Tools, box_command, box_environment, plain_box
from kfd_worker.sandbox.output import HeadTail
from kfd_worker.sandbox.processes import anonymous_bytes, cpu_ns, descendants, end_tree

__all__ = ["RunningBox", "Sandbox"]

_CHUNK = 1 << 18
_WATCH_S = 0.1
_FULL = 0.97
_LOOKS = 5
_END_S = 5.0


@dataclass
class Sandbox:
    """How boxes are made here; made by ``detect.detect``."""

    backend: Backend
    tools: Tools
    system: tuple[tuple[str, str, str], ...]
    tree: CgroupTree | None
    facts: tuple[tuple[str, str], ...] = ()
    _live: set[RunningBox] = field(default_factory=set)
    _count: int = 0

    def start(self, box: Box) -> RunningBox:
        """Start a box. Raises BoxError when the machine does not let us; a running loop is needed."""
        self._count += 1
        group = None
        if self.tree is not None:
            limits = box.limits
            try:
                # Four more than the program may have: the links of the chain that are alive beside it.
                group = self.tree.create(
                    f"{self._count}-{box.name}", memory_bytes=limits.memory_bytes, processes=limits.processes + 4
                )
            except OSError as error:
                raise BoxError(f"cannot make a control group for {box.name}: {error}") from error
        scratch = ""
        try:
            if self.backend is Backend.PLAIN:
                scratch = tempfile.mkdtemp(prefix="kfd-scratch-")
                os.chmod(scratch, 0o1777)
                box = plain_box(box, scratch)
            running = RunningBox(self, box, group, scratch)
        except OSError as error:
            if group is not None:
                group.remove(0.2)
            if scratch:
                shutil.rmtree(scratch, ignore_errors=True)
            raise BoxError(f"cannot start a box for {box.name}: {error}") from error
        self._live.add(running)
        return running

    async def run(self, box: Box) -> Ended:
        """Start a box and wait for its end; a cancelled caller leaves nothing behind."""
        running = self.start(box)
        try:
            return await running.wait()
        finally:
            await running.end(Limit.STOPPED)

    def roots(self) -> set[int]:
        """First processes of the boxes that live."""
        return {running.pid for running in self._live}

    def forget(self, running: RunningBox) -> None:
        """A box has ended."""
        self._live.discard(running)

    async def close(self) -> None:
        """End every box."""
        await asyncio.gather(*(running.end(Limit.STOPPED) for running in list(self._live)))


class RunningBox:
    """A box that has been started."""

    def __init__(self, sandbox: Sandbox, box: Box, group: Cgroup | None, scratch: str) -> None:
        self._sandbox = sandbox
        self._box = box
        self._group = group
        self._scratch = scratch
        self._loop = asyncio.get_running_loop()
        self._log = HeadTail(box.limits.log_bytes)
        self._stdout = bytearray()
        self._status = b""
        self._info = b""
        self._init_pid = 0
        self._init_fd = -1
        self._limit = Limit.NONE
        self._peak = 0
        self._readers: dict[int, Callable[[bytes], None]] = {}
        self._ended: asyncio.Future[Ended] = self._loop.create_future()
        self._finishing: asyncio.Task[None] | None = None
        self._started_ns = time.monotonic_ns()
        self._spawn()
        self._timers = [self._loop.call_later(box.limits.wall_ns / SECOND, self.kill, Limit.WALL)]
        self._full = 0
        self._timers.append(self._loop.call_later(_WATCH_S, self._watch))

    def _spawn(self) -> None:
        box, sandbox = self._box, self._sandbox
        ours: list[int] = []
        theirs: list[int] = []

        def pipe(take: Callable[[bytes], None]) -> int:
            read, write = os.pipe2(os.O_CLOEXEC)
            os.set_blocking(read, False)
            ours.append(read)
            theirs.append(write)
            self._readers[read] = take
            return write

        try:
            status, log = pipe(self._take_status), pipe(self._take_log)
            stdout = pipe(self._take_stdout) if box.limits.stdout_bytes else log
            info = pipe(self._take_info) if sandbox.backend is Backend.BWRAP else -1
            argv = box_command(
                box, sandbox.backend, sandbox.tools, sandbox.system, self._group.procs if self._group else (), info
            )
            # The launcher keeps the handle itself, so that the usage of the whole tree can be read.
            process = subprocess.Popen(
                argv,
                stdin=status,
                stdout=stdout,
                stderr=log,
                env=box_environment(box),
                cwd="/",
                pass_fds=(*box.fds, *([info] if info >= 0 else [])),
                start_new_session=True,
            )
        except BaseException:
            for fd in ours:
                os.close(fd)
            raise
        finally:
            for fd in theirs:
                os.close(fd)
        self.pid = process.pid
        process.returncode = 0  # ours to reap, see _finish
        self._fd = os.pidfd_open(self.pid)
        self._loop.add_reader(self._fd, self._on_exit)
        for fd in self._readers:
            self._loop.add_reader(fd, self._on_data, fd)

    # What the box writes.

    def _on_data(self, fd: int) -> None:
        try:
            data = os.read(fd, _CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._readers[fd](data)
        else:
            self._close_reader(fd)

    def _close_reader(self, fd: int) -> None:
        self._loop.remove_reader(fd)
        del self._readers[fd]
        os.close(fd)

    def _take_log(self, data: bytes) -> None:
        self._log.feed(data)
        if self._log.total > self._box.limits.flood_bytes:
            self.kill(Limit.OUTPUT)

    def _take_stdout(self, data: bytes) -> None:
        room = self._box.limits.stdout_bytes - len(self._stdout)
        self._stdout += data[: max(0, room)]
        if len(data) > room:
            self.kill(Limit.OUTPUT)

    def _take_status(self, data: bytes) -> None:
        # Only the first bytes matter: they are written before the program exists.
        self._status = (self._status + data)[:256]
        words = self._status.split()
        if self._sandbox.backend is Backend.UNSHARE and self._status.startswith(b"pid ") and len(words) > 1:
            self._found_init(words[1])

    def _take_info(self, data: bytes) -> None:
        self._info = (self._info + data)[:4096]
        with contextlib.suppress(ValueError, KeyError):
            self._found_init(json.loads(self._info)["child-pid"])

    def _found_init(self, pid: bytes | int) -> None:
        if self._init_fd < 0:
            with contextlib.suppress(OSError, ValueError):
                self._init_pid = int(pid)
                self._init_fd = os.pidfd_open(self._init_pid)

    # Its end.

    def kill(self, limit: Limit) -> None:
        """End the box now; the first reason given is the one that is told. Safe at any time."""
        if self._finishing is not None or self._ended.done():
            return
        if self._limit is Limit.NONE:
            self._limit = limit
        if self._sandbox.backend is Backend.PLAIN:
            end_tree(self.pid, self._sandbox.roots() - {self.pid})
        for fd in (self._init_fd, self._fd):
            if fd >= 0:
                with contextlib.suppress(OSError):
                    signal.pidfd_send_signal(fd, signal.SIGKILL)
        if self._group is not None:
            self._group.kill()

    def cpu_now_ns(self) -> int:
        """CPU time that the living box has used so far, in nanoseconds."""
        if self._group is not None and self._group.cpu_ns():
            return self._group.cpu_ns()
        return cpu_ns([self.pid, *descendants(self.pid)])

    def _watch(self) -> None:
        """Hold the memory bound where no control group does, and where the kernel does not come to it: a group that
        is full of private pages can read its own program from disk again and again for many seconds instead."""
        if self._ended.done():
            return
        if self._group is not None and self._group.memory is not None:
            full = self._group.anonymous_bytes() > _FULL * self._box.limits.memory_bytes
            self._full = self._full + 1 if full else 0
            is_over = self._full >= _LOOKS
        else:
            used = anonymous_bytes([self.pid, *descendants(self.pid)])
            self._peak = max(self._peak, used)
            is_over = used > self._box.limits.memory_bytes
        if is_over:
            self.kill(Limit.MEMORY)
        else:
            self._timers[-1] = self._loop.call_later(_WATCH_S, self._watch)

    def _on_exit(self) -> None:
        self._loop.remove_reader(self._fd)
        self._finishing = self._loop.create_task(self._finish())

    async def _finish(self) -> None:
        for timer in self._timers:
            timer.cancel()
        # Its pidfd was readable, so this does not wait.
        _, status, usage = os.wait4(self.pid, 0)  # noqa: ASYNC222
        os.close(self._fd)
        self._fd = -1
        if self._sandbox.backend is Backend.PLAIN:
            end_tree(self.pid, self._sandbox.roots() - {self.pid})
        await self._await_init()
        for fd in list(self._readers):
            # Everything that held the other end is dead; what is left in the pipe is bounded by its size.
            for _ in range(64):
                if fd in self._readers:
                    self._on_data(fd)
            if fd in self._readers:
                self._close_reader(fd)
        limit = self._limit
        used_ns = round((usage.ru_utime + usage.ru_stime) * SECOND)
        peak = max(self._peak, usage.ru_maxrss * 1024 if self._group is None else 0)
        if self._group is not None:
            peak = max(peak, self._group.peak_bytes())
            used_ns = max(used_ns, self._group.cpu_ns())
            if limit is Limit.NONE and self._group.out_of_memory():
                limit = Limit.MEMORY
            await self._remove_group(self._group)
        if self._scratch:
            shutil.rmtree(self._scratch, ignore_errors=True)
        code = os.waitstatus_to_exitcode(status)
        self._sandbox.forget(self)
        self._ended.set_result(
            Ended(
                code=code if code >= 0 else 128 - code,
                started=STARTED in self._status,
                limit=limit,
                log=self._log.value(),
                log_dropped=self._log.dropped,
                stdout=bytes(self._stdout),
                wall_ns=time.monotonic_ns() - self._started_ns,
                cpu_ns=used_ns,
                peak_bytes=peak,
            )
        )

    async def _await_init(self) -> None:
        """Wait until the PID namespace's init is gone: the kernel ends all others before it."""
        for fd in list(self._readers):
            if self._readers.get(fd) in (self._take_info, self._take_status):
                self._on_data(fd)
        if self._init_fd < 0:
            return
        with contextlib.suppress(OSError):
            signal.pidfd_send_signal(self._init_fd, signal.SIGKILL)
        gone: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_reader(self._init_fd, _resolve, gone)
        try:
            async with asyncio.timeout(_END_S):
                await gone
        except TimeoutError:
            self._log.feed(f"\nkfd: process {self._init_pid} does not end; the machine is in trouble\n".encode())
        finally:
            self._loop.remove_reader(self._init_fd)
            os.close(self._init_fd)
            self._init_fd = -1

    async def _remove_group(self, group: Cgroup) -> None:
        for _ in range(100):
            if group.remove(0.0):
                return
            await asyncio.sleep(0.01)

    async def wait(self) -> Ended:
        """Wait for the end, however it comes; the wall limit bounds this."""
        return await asyncio.shield(self._ended)

    async def end(self, limit: Limit) -> Ended:
        """End the box if it lives and wait until nothing of it does."""
        self.kill(limit)
        return await self.wait()


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
