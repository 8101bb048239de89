"""The reactor: the one loop that owns the engine.

Take a batch of events, run the pure engine, commit one transaction, and only then answer and start effects.
Nothing is visible outside before it is durable. A commit that finds the disk full waits for space and is
tried again as it is: nothing is lost, and nothing new becomes visible meanwhile.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Protocol

import structlog

from kfd.base.plain import plain_line
from kfd.core.campaign.mutation import MutationRequest
from kfd.core.commands import (
    Command,
    DraftRequest,
    Refuse,
    ReplyTo,
    StartDraft,
    StartMutation,
    StopDraft,
    StopMutation,
)
from kfd.core.engine import Engine
from kfd.core.events import CallDropped, DaemonStopping, Event, Ticked
from kfd.core.fleet.model import NEVER, CallId, Fact, Reply
from kfd.store.journal import CHECKPOINT_PAGES, Batch, Journal, StoreStalled

__all__ = ["Effects", "Reactor"]

BATCH_EVENTS = 256
GATHER_SECONDS = 0.003
STALL_RETRY_SECONDS = (0.2, 0.5, 1.0, 2.0)
IDLE_CHECKPOINT_SECONDS = 5.0
LOG_TEXT = 500
"""Characters of a text that the log shows; all of it is in the event."""


class Effects(Protocol):
    """What the reactor starts on the engine's behalf. Each start ends by posting an event."""

    def start_draft(self, request: DraftRequest) -> None:
        """Ask a generator."""
        ...

    def stop_draft(self, candidate: str) -> None:
        """Stop asking."""
        ...

    def start_mutation(self, request: MutationRequest) -> None:
        """Ask a meta-prompter."""
        ...

    def stop_mutation(self, mutation: str) -> None:
        """Stop asking it."""
        ...


class Reactor:
    """Events in, one transaction, then replies and effects."""

    def __init__(self, engine: Engine, journal: Journal, boot: bytes) -> None:
        self._engine = engine
        self._journal = journal
        self._boot = boot
        self._effects: Effects | None = None
        # Unbounded, because every poster is bounded by its kind: one event a draft, a mutation, a slot, a waiting call,
        # a timer.
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._calls: dict[CallId, asyncio.Future[Any]] = {}
        self._next_call = itertools.count(1)
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = NEVER
        self._committed = asyncio.Event()
        self._log = structlog.get_logger("kfd.reactor")
        self._pages = 0
        self.stalled_since: float | None = None
        """Monotonic seconds since which the store takes no writes; None while it does."""
        self.lag_ns = 0
        """How long the newest batch's first event had waited."""

    @property
    def boot(self) -> bytes:
        """Random id of this daemon process."""
        return self._boot

    @property
    def engine(self) -> Engine:
        """The engine, for read models; only the reactor changes it."""
        return self._engine

    @property
    def last_seq(self) -> int:
        """Number of the newest durable event."""
        return self._journal.last_seq

    def post(self, event: Event) -> None:
        """Post an event that nobody waits for."""
        self._events.put_nowait(event)

    async def call(self, make_event: Callable[[CallId], Event]) -> Any:
        """Post the event made with a fresh call id and wait for its reply. Raises CallerError."""
        call = next(self._next_call)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._calls[call] = future
        try:
            self._events.put_nowait(make_event(call))
            return await future
        except asyncio.CancelledError:
            self._events.put_nowait(CallDropped(call=call))
            raise
        finally:
            self._calls.pop(call, None)

    async def committed(self, timeout_seconds: float) -> bool:
        """Wait until something was committed; False when nothing was in time."""
        try:
            async with asyncio.timeout(timeout_seconds):
                await self._committed.wait()
        except TimeoutError:
            return False
        return True

    async def run(self, effects: Effects, first: list[Command]) -> None:
        """Run until cancelled. ``first`` are the commands that loading the store called for."""
        self._effects = effects
        await self._finish(first)
        now = time.monotonic_ns()
        await self._finish(self._engine.owed(now))
        while True:
            batch = await self._take()
            now = time.monotonic_ns()
            commands: list[Command] = []
            for event in batch:
                commands += self._engine.handle(event, now)
            await self._finish(commands)

    async def stop(self) -> None:
        """Have every parked call answered, so that none is cancelled, and the time spent written."""
        await self.call(lambda call: DaemonStopping(call=call))

    # ---- one batch ------------------------------------------------------------------------------------

    async def _take(self) -> list[Event]:
        if self._events.empty():
            try:
                async with asyncio.timeout(IDLE_CHECKPOINT_SECONDS):
                    batch = [await self._events.get()]
            except TimeoutError:
                if self._pages:
                    self._pages = 0
                    await self._journal.checkpoint(idle=True)
                batch = [await self._events.get()]
        else:
            # More is coming in than one event at a time: let a few gather, for each commit costs an fsync whatever it
            # holds.
            await asyncio.sleep(GATHER_SECONDS)
            batch = [self._events.get_nowait()]
        while len(batch) < BATCH_EVENTS and not self._events.empty():
            batch.append(self._events.get_nowait())
        return batch

    async def _finish(self, commands: list[Command]) -> None:
        batch = self._journal.prepare(commands, datetime.now(UTC).isoformat(timespec="milliseconds"))
        await self._write(batch)
        self._release(commands)
        if batch.facts:
            self._committed.set()
            self._committed = asyncio.Event()
        self._arm()

    async def _write(self, batch: Batch) -> None:
        attempt = 0
        while True:
            try:
                await self._journal.write(batch)
                break
            except StoreStalled as stall:
                if self.stalled_since is None:
                    self.stalled_since = time.monotonic()
                    self._log.error("store.stalled", reason=str(stall), next="free space under the state folder")
                await asyncio.sleep(STALL_RETRY_SECONDS[min(attempt, len(STALL_RETRY_SECONDS) - 1)])
                attempt += 1
        if self.stalled_since is not None:
            self._log.info("store.resumed", after_s=round(time.monotonic() - self.stalled_since, 1))
            self.stalled_since = None
        self._pages += sum(len(part) for _, part in batch.parts())
        if self._pages >= CHECKPOINT_PAGES:
            self._pages = 0
            await self._journal.checkpoint(idle=False)

    def _release(self, commands: list[Command]) -> None:
        for command in commands:
            match command:
                case Reply(call=call, answer=answer):
                    self._resolve(call, answer)
                case ReplyTo(call=call, value=value):
                    self._resolve(call, value)
                case Refuse(call=call, error=error):
                    future = self._calls.get(call)
                    if future is not None and not future.done():
                        future.set_exception(error)
                case StartDraft() | StopDraft() | StartMutation() | StopMutation():
                    if self._effects is not None:
                        _start(self._effects, command)
                case Fact():
                    self._tell(command)
                case _:
                    pass

    def _tell(self, fact: Fact) -> None:
        """Log a fact. Texts of models, compilers and workers reach no terminal with their control characters."""
        if not self._log.is_enabled_for(logging.INFO):
            return
        shown = {
            key: plain_line(value, LOG_TEXT) if isinstance(value, str) else value
            for key, value in (("campaign", fact.campaign), *fact.body)
            if value is not None
        }
        self._log.info(fact.kind, **shown)

    def _resolve(self, call: CallId, value: object) -> None:
        future = self._calls.get(call)
        if future is not None and not future.done():
            future.set_result(value)

    def _arm(self) -> None:
        now = time.monotonic_ns()
        wake = self._engine.next_wake(now)
        if wake == self._timer_at and self._timer is not None:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timer_at = wake
        if wake < NEVER:
            delay = max(0.001, (wake - now) / 1e9)
            self._timer = asyncio.get_running_loop().call_later(delay, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._timer_at = NEVER
        self._events.put_nowait(Ticked())


def _start(effects: Effects, command: StartDraft | StopDraft | StartMutation | StopMutation) -> None:
    """Start or stop one effect."""
    match command:
        case StartDraft(request=draft):
            effects.start_draft(draft)
        case StopDraft(candidate=candidate):
            effects.stop_draft(candidate)
        case StartMutation(request=mutation):
            effects.start_mutation(mutation)
        case StopMutation(mutation=stopped):
            effects.stop_mutation(stopped)
