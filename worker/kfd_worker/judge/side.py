"""One run box as the judge sees it: orders out, answers in, a clock, a budget of time.

Every answer must be the one expected: right layout, right kind, right nonce, and nothing after it. Anything
else is a statement about the candidate, because only its code can have made it.
"""

from __future__ import annotations

import json
import secrets
import socket
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kfd.base.instant import MILLISECOND, SECOND, Span, seconds_text
from kfd.base.work import Limits, VerdictCode
from kfd.tasks.tunables import PlanError
from kfd_worker.harness import child
from kfd_worker.judge.device_plan import load_order, map_order
from kfd_worker.judge.faults import CandidateFault, SideLost
from kfd_worker.judge.meter import RUNTIME_NS, Ledger, Meter, Reading
from kfd_worker.sandbox.output import readable
from kfd_worker.toolchains.package import HOST_FORM, ON_GPU

__all__ = ["Side"]

_PINGS = 12
_GAPS = 6
_GAP_S = 0.002
_SETTLE_NS: Span = 100 * MILLISECOND
"""Longest wait for a runtime's threads to sleep: they take a millisecond, many on a machine with much else to do."""
_SETTLE_S = 0.0003
_AWAKE_SHARE = 0.1
_MAX_CORE = 254
_READY_S = 20.0


class Side:
    """The judge's end of one run box's socket."""

    def __init__(
        self,
        name: str,
        channel: socket.socket,
        limits: Limits,
        header: Mapping[str, Any],
        meter: Meter | None = None,
        number: int = 0,
    ) -> None:
        """``header`` is the artifact's package. ``meter`` tells what the box, ``number`` among the launcher's, works
        between timed calls; None: unwatched."""
        self.name = name
        self.ledger = Ledger()
        """What the box has spent between its timed calls."""
        self.timed_ns = 0
        """Time of its timed calls."""
        self._meter = meter
        self._number = number
        self._rested_since: Reading | None = None
        self.overhead_ns = 0
        """Time of an order for no call, taken before any foreign code was loaded in the box."""
        self.busy_ns = 0
        """Time the box has spent on orders so far."""
        self.claimed_cpu_ns = 0
        """CPU time that the box says it has used in calls: for the books, never for a verdict."""
        self._channel = channel
        self._budget_ns = limits.wall_ns
        self._memory_bytes = limits.memory_bytes
        self.header = header
        """What the artifact's package says."""
        self.told = b""
        """Text of the last answer to a call, as it came: a device's program tells its times there."""
        self._phase = "starting"

    def prepare(self) -> None:
        """Wait for the box and measure an empty order. Raises SideLost: nothing of the candidate ran yet."""
        self._channel.settimeout(_READY_S)
        try:
            data = self._channel.recv(child.ANSWER.size + 1)
        except TimeoutError as error:
            raise SideLost(self.name, "starting") from error
        if not data:
            raise SideLost(self.name, "starting")
        took = [self.call(0, []) for _ in range(_PINGS)]
        self.overhead_ns = min(took)
        if self._meter is not None:
            self._meter.note(self._number)
            self.ledger.usual_ns = max(self._idle_cost(self._meter) for _ in range(_GAPS))
        self.busy_ns = 0

    def _idle_cost(self, meter: Meter) -> Span:
        """What the box's first thread spends on having answered one empty order."""
        self.call(0, [])
        after = meter.read(self._number)
        time.sleep(_GAP_S)
        before = meter.read(self._number)
        return max(0, before.process_ns - after.process_ns)

    def load(self, path: str) -> None:
        """Let the box load the payload. Raises CandidateFault with load_error."""
        self._phase = "loading"
        self._order(load_order(self.header, path), child.LOADED)

    def map(self, number: int, sets: list[list[list[Any]]], fds: Sequence[int], sizes: Mapping[str, int]) -> None:
        """Give the box its buffers and arguments of one case with these sizes.

        Raises CandidateFault with incorrect when the kernel's launch plan has no value for them.
        """
        self._phase = "mapping buffers"
        try:
            more = map_order(self.header, sizes, self._memory_bytes)
        except PlanError as error:
            raise CandidateFault(VerdictCode.INCORRECT, f"the launch plan: {error}") from error
        self._order({"do": "map", "map": number, "sets": sets, **more}, child.MAPPED, fds)

    def grant(self, span_ns: Span) -> None:
        """More time for the box's orders: how long a measurement goes on is the plan's choice, not the candidate's."""
        self._budget_ns += span_ns

    def place(self, core: int) -> None:
        """Let the box continue on a core, from which its threads may go where they like. Raises what ``call`` does."""
        self.call(0, [], core=core)

    def timed(
        self, number: int, indices: Sequence[int], patience_ns: Span, core: int, bind: Callable[[], None]
    ) -> Span:
        """A timed call on a core, with what the box does before it and has done since its last one on the books.

        ``bind`` gives the box the scalars of the calls. Returns and raises as ``call`` does; raises OSError when the
        launcher does not tell CPU times.
        """
        meter = self._meter
        if meter is None:
            bind()
            self.place(core)
            return self.call(number, indices, patience_ns)
        before = meter.read(self._number)
        if self._rested_since is not None:
            self.ledger.rested(self._rested_since, before)
        bind()
        self.place(core)
        self.ledger.placed(before, meter.read(self._number))
        took = self.call(number, indices, patience_ns)
        self._rested_since = meter.read(self._number)
        self.timed_ns += took
        if self.header["abi"]["kind"] != HOST_FORM:
            # What the runtime's threads do until they sleep is the runtime's; from then on the box has nothing to do.
            self._settle(meter)
            self._rested_since = meter.read(self._number)
        return took

    def _settle(self, meter: Meter) -> None:
        """Wait until the threads of the device's runtime sleep: they stay awake for a while after a call, and would be
        in the way of whoever is timed next.

        One that uses no CPU time may only be waiting for a processor, and would be awake again in a later gap.
        """
        began = before = meter.read(self._number)
        while before.at_ns - began.at_ns < _SETTLE_NS:
            time.sleep(_SETTLE_S)
            after = meter.read(self._number)
            is_idle = after.process_ns - before.process_ns <= _AWAKE_SHARE * (after.at_ns - before.at_ns)
            if is_idle and meter.awake(self._number) <= 0:
                return
            before = after

    def excess(self) -> str:
        """What the box has worked outside its timed calls that is too much, for people; empty when nothing is.

        On a GPU's side there is no code of the candidate's that could. On a processor a kernel is code like any other,
        and a runtime's threads come to rest a little late.
        """
        kind = self.header["abi"]["kind"]
        if kind in ON_GPU:
            return ""
        return self.ledger.excess(self.timed_ns, 0 if kind == HOST_FORM else RUNTIME_NS)

    def call(self, number: int, indices: Sequence[int], patience_ns: Span = 0, core: int | None = None) -> Span:
        """Let the box call the entry once on each of the sets; the whole time by our clock, in nanoseconds.

        ``patience_ns`` bounds this call when it is given; otherwise what is left of the box's budget does.
        Raises CandidateFault (timeout, a status that is not 0, a wrong answer) or SideLost.
        """
        if indices:
            self._phase = "running"
        nonce = secrets.randbits(64)
        # One byte: on a machine with more cores the others are not chosen.
        where = 0 if core is None or core > _MAX_CORE else core + 1
        order = child.CALL.pack(b"C", where, len(indices), number, nonce) + struct.pack(f"<{len(indices)}H", *indices)
        self._channel.settimeout(patience_ns / SECOND if patience_ns else self._left_s())
        began = time.monotonic_ns()
        try:
            self._channel.send(order)
            data = self._channel.recv(child.ANSWER.size + 1)
        except TimeoutError as error:
            raise self._timeout(patience_ns) from error
        except OSError as error:
            raise SideLost(self.name, self._phase) from error
        took = time.monotonic_ns() - began
        self.busy_ns += took
        status, said = self._check(data, child.DONE, nonce)
        # Bounded by what is possible, because it is only a claim.
        self.claimed_cpu_ns += min(child.ANSWER.unpack(data)[4], 64 * took)
        self.told = child.ANSWER.unpack(data)[5]
        if status:
            raise self._failed(status, said)
        return took

    def _failed(self, status: int, said: str) -> Exception:
        """What a call that ended with a status says."""
        return CandidateFault(VerdictCode.RUNTIME_ERROR, f"the entry function returned {status} instead of 0")

    def quiet(self) -> None:
        """Raises CandidateFault when the box has sent something that nobody asked for."""
        self._channel.setblocking(False)
        try:
            data = self._channel.recv(child.ANSWER.size + 1)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            raise SideLost(self.name, self._phase) from error
        if not data:
            raise SideLost(self.name, self._phase)
        raise CandidateFault(VerdictCode.SUSPECT, "the candidate's box sent an answer that nobody asked for")

    def _order(self, order: dict[str, Any], expected: int, fds: Sequence[int] = ()) -> None:
        nonce = secrets.randbits(63)
        data = b"J" + json.dumps({**order, "nonce": nonce}).encode()
        if len(data) > child.MAX_ORDER:
            raise ValueError(f"an order of {len(data)} bytes")
        self._channel.settimeout(self._left_s())
        began = time.monotonic_ns()
        try:
            if fds:
                socket.send_fds(self._channel, [data], list(fds))
            else:
                self._channel.send(data)
            answer = self._channel.recv(child.ANSWER.size + 1)
        except TimeoutError as error:
            raise self._timeout() from error
        except OSError as error:
            raise SideLost(self.name, self._phase) from error
        self.busy_ns += time.monotonic_ns() - began
        status, text = self._check(answer, expected, nonce)
        if status:
            code = VerdictCode.LOAD_ERROR if order["do"] == "load" else VerdictCode.RUNTIME_ERROR
            raise CandidateFault(code, f"{self._phase} failed: {text}")

    def _check(self, data: bytes, expected: int, nonce: int) -> tuple[int, str]:
        """Status and text of the answer that was expected. Raises CandidateFault or SideLost."""
        if not data:
            raise SideLost(self.name, self._phase)
        if len(data) != child.ANSWER.size or data[:4] != child.MAGIC:
            raise CandidateFault(
                VerdictCode.SUSPECT,
                f"the candidate's box sent {len(data)} bytes that are no answer while {self._phase}",
            )
        _, kind, echoed, status, _, text = child.ANSWER.unpack(data)
        if echoed != nonce or kind not in (expected, child.FAILED) or (kind == child.FAILED and not status):
            raise CandidateFault(VerdictCode.SUSPECT, f"the candidate's box sent a forged answer while {self._phase}")
        return status, readable(text.rstrip(b"\0"), 400)

    def _left_s(self) -> float:
        # A little is always left, so that a spent budget shows as a timeout of the next order.
        return max(0.001, (self._budget_ns - self.busy_ns) / SECOND)

    def _timeout(self, patience_ns: Span = 0) -> CandidateFault:
        if patience_ns:
            text = f"a timed call took longer than {seconds_text(patience_ns)}, far longer than the same call before"
        else:
            text = f"no answer while {self._phase}: the limit of {seconds_text(self._budget_ns)} is spent"
        return CandidateFault(VerdictCode.TIMEOUT, text)
