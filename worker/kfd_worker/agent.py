"""The agent's shell: carries out what the slot and session machines decide, and tells them what happened."""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import shutil
import time
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import structlog

from kfd.base.failure import CallerError
from kfd.base.instant import SECOND, Instant, seconds_text
from kfd.base.work import LeaseRef, Report, SlotKind, Stage
from kfd_worker.blobs import BlobCache, BlobClient
from kfd_worker.config import AgentConfig
from kfd_worker.core.rest import Rest
from kfd_worker.core.session import (
    Complain,
    Exit,
    Opened,
    RegisterStatus,
    SendLeave,
    SendRegister,
    SessionMachine,
    SessionOutput,
)
from kfd_worker.core.slot import Phase, SlotMachine
from kfd_worker.core.values import (
    DropReport,
    NeedSession,
    Output,
    Policy,
    SaveReport,
    SendSync,
    StartJob,
    StopJob,
)
from kfd_worker.executors.port import Executor
from kfd_worker.files import machine_id
from kfd_worker.jobs import JobRunner, StopOrder
from kfd_worker.launcher.config import LauncherFacts
from kfd_worker.notify import Notifier
from kfd_worker.outbox import Outbox
from kfd_worker.slots import slots_of
from kfd_worker.transport import CallFailed, SlotFacts, Token, Transport, open_channel

__all__ = ["Agent"]

_AFTER_GRACE_SECONDS = 5.0
"""For stopped jobs to be reported once the grace is over."""
_LOOK_SECONDS = 5.0
"""How often the agent looks at itself."""
_FLOOR_BYTES = 256 << 20
"""Free space below which no job is taken."""
_USEFUL_SECONDS = 90.0
"""How long the daemon may be silent before the watchdog is left to bite."""


@dataclass(slots=True)
class _Slot:
    facts: SlotFacts
    machine: SlotMachine
    order: StopOrder = field(default_factory=StopOrder)


class Agent:
    """One agent process. All state is touched on one loop only."""

    def __init__(self, config: AgentConfig, executor: Executor, facts: LauncherFacts) -> None:
        self._config = config
        self._executor = executor
        self._facts = facts
        self._log = structlog.get_logger("kfd.worker")
        token = Token(Path(config.token_file) if config.token_file else None)
        self._channel = open_channel(config.daemon)
        self._blob_channel = open_channel(config.daemon, own_connection=True)
        nonce = secrets.token_bytes(16)
        self._transport = Transport(self._channel, token, config.name, nonce, machine_id(config.state))
        self._outbox = Outbox(config.state / "outbox")
        cache = BlobCache(config.state / "blobs", config.cache_bytes)
        self._jobs = JobRunner(executor, cache, BlobClient(self._blob_channel, token))
        self._slots = {slot.name: _Slot(facts=slot, machine=SlotMachine(Policy())) for slot in slots_of(config, facts)}
        self._session = SessionMachine()
        self._left: list[tuple[LeaseRef, Report]] = []
        """Reports of a past life, which belong to no slot."""
        self._benchmarks: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._wake = asyncio.Event()
        self._over: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._draining = False
        self._last_complaint = ""
        self._disk = ""
        """Why no job is taken although slots are free: the disk."""
        self._heard = time.monotonic()
        self._rest = Rest()

    # ---- life -----------------------------------------------------------------------------------------

    async def run(self) -> int:
        """Work until drained or refused; the exit status."""
        self._left = await asyncio.to_thread(self._outbox.load)
        self._log.info(
            "agent.started",
            name=self._config.name,
            daemon=self._config.daemon,
            slots=len(self._slots),
            toolchains=[item.name for item in self._facts.toolchains],
            outbox=len(self._left),
        )
        try:
            self._session_does(self._session.need(_now()))
            self._spawn(self._keep_time())
            self._spawn(self._look_after())
            return await self._over
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await self._channel.close(None)
            await self._blob_channel.close(None)

    def drain(self) -> None:
        """Take nothing more, let jobs finish for the grace time, then stop them, report, and leave."""
        if self._draining:
            return
        self._draining = True
        self._log.info("agent.draining", grace=f"{self._config.grace_seconds} s")
        for slot in self._slots.values():
            self._slot_does(slot, slot.machine.drain(_now()))
        self._spawn(self._end_of_grace())
        self._leave_when_idle()

    def abandon(self) -> None:
        """End now, whatever runs."""
        self._finish(130)

    async def _end_of_grace(self) -> None:
        await asyncio.sleep(self._config.grace_seconds)
        for slot in self._slots.values():
            self._slot_does(slot, slot.machine.stop("the agent is shutting down"))
        await asyncio.sleep(_AFTER_GRACE_SECONDS)
        self._log.warning("agent.unfinished", note="unacknowledged reports stay in the outbox")
        self._session_does(self._session.leave("shutting down"))

    def _leave_when_idle(self) -> None:
        if self._draining and all(slot.machine.phase is Phase.IDLE for slot in self._slots.values()):
            self._session_does(self._session.leave("drained"))

    def _finish(self, code: int) -> None:
        if not self._over.done():
            self._over.set_result(code)

    async def _keep_time(self) -> None:
        while True:
            wakes: list[Instant | None] = [slot.machine.next_wake() for slot in self._slots.values()]
            wakes += [self._session.next_wake(), self._rest.next_wake()]
            due = min((wake for wake in wakes if wake is not None), default=None)
            self._wake.clear()
            if due is None or due > _now():
                try:
                    async with asyncio.timeout(None if due is None else (due - _now()) / SECOND):
                        await self._wake.wait()
                except TimeoutError:
                    pass
                continue
            if self._rest.over(_now()):
                self._log.info("slots.offered_again", note="what was set aside has rested")
                self._session_does(self._session.need(_now()))
            self._session_does(self._session.ticked(_now()))
            for slot in self._slots.values():
                self._slot_does(slot, slot.machine.ticked(_now()))

    async def _look_after(self) -> None:
        """Look at the disk, and tell systemd that we are useful: heard lately, or known to be waiting."""
        notifier = Notifier(os.environ)
        notifier.say("READY=1")
        while True:
            try:
                free = shutil.disk_usage(self._config.state).free
                self._disk = "the worker's disk is full" if free < _FLOOR_BYTES else ""
            except OSError as error:
                self._disk = f"the worker's state folder is gone: {error.strerror}"
            self._say_readiness()
            if notifier.watchdog_seconds and time.monotonic() - self._heard < _USEFUL_SECONDS:
                notifier.say("WATCHDOG=1")
            await asyncio.sleep(min(_LOOK_SECONDS, (notifier.watchdog_seconds or 60.0) / 3))

    # ---- what the session machine wants -----------------------------------------------------------------

    def _session_does(self, outputs: Iterable[SessionOutput]) -> None:
        for output in outputs:
            if isinstance(output, SendRegister):
                self._spawn(self._register())
            elif isinstance(output, Opened):
                self._opened(output)
            elif isinstance(output, SendLeave):
                self._spawn(self._leave(output.reason))
            elif isinstance(output, Complain):
                self._complain("register.refused", output.text)
            else:
                self._exit(output)
        self._wake.set()

    async def _register(self) -> None:
        try:
            answer = await self._transport.register(
                self._facts, [slot.facts for slot in self._slots.values()], self._host(), self._left
            )
        except (CallFailed, CallerError) as error:
            self._complain("register.failed", str(error))
            if isinstance(error, CallFailed) and error.down:
                self._heard = time.monotonic()
                for slot in self._slots.values():
                    slot.machine.peer_down()
            self._session_does(self._session.register_failed(random.random(), _now()))
            return
        if answer.status is RegisterStatus.OK:
            taken = set(answer.acknowledged)
            await asyncio.to_thread(self._drop_all, taken)
            self._left = [item for item in self._left if item[0] not in taken]
            if self._left and taken:
                # They did not all fit into one message. Slots open once nothing of a past life is left.
                await self._register()
                return
        self._session_does(self._session.registered(answer, random.random(), _now()))

    def _opened(self, opened: Opened) -> None:
        self._log.info("session.opened", session=opened.answer.session)
        self._last_complaint = ""
        self._heard = time.monotonic()
        for slot in self._slots.values():
            machine = slot.machine
            self._slot_does(slot, machine.opened(opened.answer.policy, opened.sent, _now()))
            for lease in opened.answer.acknowledged:
                self._slot_does(slot, machine.acknowledged(lease, _now()))
        self._leave_when_idle()

    async def _leave(self, reason: str) -> None:
        try:
            await self._transport.leave(reason)
        except CallFailed as error:
            self._complain("leave.failed", str(error))
        self._session_does(self._session.left())

    def _exit(self, output: Exit) -> None:
        if output.text:
            self._log.error("agent.refused", reason=output.text)
        self._finish(output.code)

    def _complain(self, event: str, text: str) -> None:
        """Once for each new reason: a daemon that is away for hours must not fill the log."""
        if text != self._last_complaint:
            self._last_complaint = text
            self._log.warning(event, reason=text, next="trying again")

    # ---- what the slot machines want --------------------------------------------------------------------

    def _slot_does(self, slot: _Slot, outputs: Iterable[Output]) -> None:
        for output in outputs:
            if isinstance(output, SendSync):
                self._spawn(self._sync(slot, output))
            elif isinstance(output, StartJob):
                slot.order = StopOrder()
                self._spawn(self._work(slot, output))
            elif isinstance(output, StopJob):
                slot.order.give(output.reason)
            elif isinstance(output, SaveReport):
                self._spawn(self._save(slot, output))
            elif isinstance(output, DropReport):
                self._spawn(self._drop(output.lease))
            elif isinstance(output, NeedSession):
                self._reopen()
        self._wake.set()

    def _reopen(self) -> None:
        for slot in self._slots.values():
            slot.machine.closed()
        self._session_does(self._session.need(_now()))

    async def _sync(self, slot: _Slot, send: SendSync) -> None:
        machine = slot.machine
        try:
            answer, notices = await self._transport.sync(slot.facts.name, send)
        except CallFailed as error:
            self._complain("sync.failed", str(error))
            if error.down:
                self._heard = time.monotonic()
            outputs = machine.call_failed(send.seq, random.random(), _now(), down=error.down)
        except CallerError as error:
            self._complain("sync.unreadable", str(error))
            outputs = machine.call_failed(send.seq, random.random(), _now(), down=False)
        else:
            self._heard = time.monotonic()
            for kind, text in notices:
                self._complain(f"notice.{kind}", text)
                if kind == "set_aside" and (rest := self._rest.set_aside(_now())) is not None:
                    self._log.warning("slot.rests", slot=slot.facts.name, offered_again_in=seconds_text(rest))
            outputs = machine.answered(send.seq, answer, _now())
        self._slot_does(slot, outputs)

    async def _work(self, slot: _Slot, start: StartJob) -> None:
        name = slot.facts.name

        def on_stage(stage: Stage) -> None:
            slot.machine.progressed(start.lease, stage.value, _now())
            self._quieten(name, slot.facts.kind is SlotKind.RUN and stage is Stage.BENCHMARK)

        began = _now()
        place = slot.facts.device or name  # the launcher knows devices by their own ids
        try:
            report = await self._jobs.run(start.lease, place, start.spec, slot.order, on_stage)
        finally:
            self._quieten(name, benchmarking=False)
        self._log.debug("slot.done", slot=name, lease=str(start.lease), took=seconds_text(_now() - began))
        self._slot_does(slot, slot.machine.ended(start.lease, report))

    def _quieten(self, name: str, benchmarking: bool) -> None:
        """Builds disturb measurements on the same machine: none begins while one runs."""
        if self._config.shared_host or benchmarking == (name in self._benchmarks):
            return
        if benchmarking:
            self._benchmarks.add(name)
        else:
            self._benchmarks.discard(name)
        self._say_readiness()

    def _say_readiness(self) -> None:
        for slot in self._slots.values():
            quiet = "quiet" if self._benchmarks and slot.facts.kind is SlotKind.BUILD else ""
            self._slot_does(slot, slot.machine.set_not_ready(self._disk or quiet, _now()))

    async def _save(self, slot: _Slot, save: SaveReport) -> None:
        try:
            await asyncio.to_thread(self._outbox.save, save.lease, save.report)
        except OSError as error:
            # It is still in memory and is sent at once; only a crash now would lose it, and the job is then redone.
            self._log.error("outbox.failed", lease=str(save.lease), reason=str(error))
        self._slot_does(slot, slot.machine.saved(save.lease, _now()))

    async def _drop(self, lease: LeaseRef) -> None:
        await asyncio.to_thread(self._drop_all, {lease})
        await self._executor.discard(str(lease))
        self._leave_when_idle()

    def _drop_all(self, leases: set[LeaseRef]) -> None:
        for lease in leases:
            self._outbox.drop(lease)

    # ---- helpers --------------------------------------------------------------------------------------

    def _host(self) -> list[tuple[str, str]]:
        """Facts of the sandbox, and what is missing for each toolchain: ``absent.NAME`` (``kfd.core.fleet.views``)."""
        sign = "toolchain "
        lacks = [(f"absent.{name}", mend) for name, mend in self._facts.absent]
        lacks += [(f"absent.{name[len(sign) :]}", why) for name, why in self._facts.problems if name.startswith(sign)]
        return [(key[:200], value[:500]) for key, value in (*self._facts.sandbox[:40], *lacks[:20])]

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._reap)
        return task

    def _reap(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled() or task.exception() is None:
            return
        # A fault of ours: the unit starts us again, the daemon grants our leases anew, the outbox is on disk.
        self._log.critical("agent.fault", exc_info=task.exception())
        self._finish(1)


def _now() -> Instant:
    return time.monotonic_ns()
