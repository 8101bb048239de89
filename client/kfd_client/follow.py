"""Following a campaign until it ends: events by sequence number, over as many connections as it takes."""

from __future__ import annotations

import queue
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, TextIO

import grpc

from kfd.api.v1 import control_pb2
from kfd_client import render
from kfd_client.exits import Exit, Failure
from kfd_client.interrupt import check
from kfd_client.session import Session, failure_of, is_lost, is_timeout

__all__ = ["Line", "events", "follow", "outcome"]

_STREAM_S = 60.0
"""A stream is opened anew after this long, so that a silent break is noticed."""
_PATIENCE_S = 120.0
"""How long the daemon may be away before following ends; the campaign does not need us."""
_REFRESH_S = 0.5
_GLANCE_S = 0.2
"""How often a waiting command looks whether it was interrupted."""
_INBOX = 1000


class Line:
    """One changing line on a terminal, or nothing where there is no terminal."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._live = self._stream.isatty()
        self._shown = ""

    def show(self, text: str) -> None:
        """Replace the line."""
        if self._live and text != self._shown:
            self._stream.write(f"\r{text}\x1b[K")
            self._stream.flush()
            self._shown = text

    def clear(self) -> None:
        """Take the line away."""
        if self._live and self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._shown = ""


def events(
    session: Session,
    campaign: str,
    *,
    after: int = 0,
    tail: int = 0,
    keep: bool = True,
    on_lost: Callable[[str], None] | None = None,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[control_pb2.Event | None]:
    """Events of a campaign, each once and in order; None when a stream has ended, so that the caller can
    look whether there will be more. A broken connection is taken up after the last event. Raises Failure.
    """
    heard = clock()
    pause = 0.2
    while True:
        request = control_pb2.WatchEventsRequest(after_seq=after, campaign=campaign, follow=keep, tail=tail)
        try:
            for response in _read(session.stream(session.control.WatchEvents, request, _STREAM_S)):
                heard, pause, tail = clock(), 0.2, 0
                if response.event.seq > after:
                    after = response.event.seq
                    yield response.event
            heard = clock()
        except grpc.RpcError as error:
            if is_timeout(error) and _answers(session):
                # Nothing happened in the campaign, for as long as that may take; the daemon is there.
                heard = clock()
            elif not is_lost(error) or clock() - heard > _PATIENCE_S + _STREAM_S:
                raise failure_of(error, session.address, session.timeout_s) from None
            if on_lost is not None and not is_timeout(error):
                on_lost("the daemon is away; the campaign goes on when it is back")
        yield None
        if not keep:
            return
        sleep(pause)
        pause = min(pause * 2, 5.0)


def _answers(session: Session) -> bool:
    """Whether the daemon answers a small question now."""
    try:
        session.raw(session.control.ListCampaigns, control_pb2.ListCampaignsRequest(limit=1), session.timeout_s)
    except grpc.RpcError:
        return False
    return True


def _read(stream: Any) -> Iterator[control_pb2.WatchEventsResponse]:
    """A stream's messages, read by a thread of its own so that Ctrl-C always finds us in plain Python."""
    inbox: queue.Queue[Any] = queue.Queue(_INBOX)
    done = threading.Event()

    def pump() -> None:
        last: Any = None
        try:
            for response in stream:
                while not done.is_set():
                    with suppress(queue.Full):
                        inbox.put(response, timeout=_GLANCE_S)
                        break
        except grpc.RpcError as error:
            last = error
        while not done.is_set():
            with suppress(queue.Full):
                inbox.put(last, timeout=_GLANCE_S)
                return

    threading.Thread(target=pump, daemon=True, name="kfd events").start()
    try:
        while True:
            check()
            try:
                item = inbox.get(timeout=_GLANCE_S)
            except queue.Empty:
                continue
            if item is None:
                return
            if isinstance(item, grpc.RpcError):
                raise item
            yield item
    finally:
        done.set()
        stream.cancel()


def follow(
    session: Session,
    campaign: str,
    line: Line,
    watch: Callable[[control_pb2.Campaign], None] = lambda _: None,
) -> control_pb2.Campaign:
    """Show the progress of a campaign until it has ended. Raises Failure, and what ``watch`` raises at a look at it."""
    last = 0.0
    current = _look(session, campaign)
    if current is not None:
        watch(current)
    while current is not None and current.state not in render.ENDED:
        for event in events(session, campaign, after=current.last_seq, on_lost=line.show):
            check()
            now = time.monotonic()
            if event is not None and now - last < _REFRESH_S:
                continue
            last = now
            seen = _look(session, campaign)
            if seen is None:
                continue
            current = seen
            watch(current)
            line.show(render.progress_line(current, shutil.get_terminal_size().columns))
            if current.state in render.ENDED:
                break
    line.clear()
    if current is None:
        raise Failure("the daemon went away", code=Exit.UNREACHABLE, mend=f"Type `kfd-client status {campaign}`.")
    return current


def _look(session: Session, campaign: str) -> control_pb2.Campaign | None:
    """The campaign as it is now; None while the daemon is away."""
    try:
        request = control_pb2.GetCampaignRequest(campaign=campaign)
        return session.raw(session.control.GetCampaign, request, session.timeout_s).campaign
    except grpc.RpcError as error:
        if is_lost(error):
            return None
        raise failure_of(error, session.address, session.timeout_s) from None


def outcome(campaign: control_pb2.Campaign) -> Exit:
    """Exit code of a campaign as it stands."""
    if campaign.state not in render.ENDED:
        return Exit.RUNNING
    if campaign.state == "cancelled":
        return Exit.FAILED
    if campaign.state == "failed":
        return Exit.INCIDENT if campaign.incidents_unresolved else Exit.FAILED
    best = render.best_speed(campaign)
    if best is None or not campaign.best or campaign.best == campaign.initial or not best.low > 1.0:
        return Exit.NOTHING_BETTER
    return Exit.DONE
