"""The changing line, and what stays when there is no terminal."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from kfd.api.v1 import control_pb2
from kfd_client.commands.validate import Unserved
from kfd_client.exits import Exit, Failure
from kfd_client.follow import Line, events


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_sees_one_line_that_changes_and_goes() -> None:
    stream = Terminal()
    line = Line(stream)
    line.show("one")
    line.show("one")
    line.show("two")
    line.clear()
    line.clear()
    assert stream.getvalue() == "\rone\x1b[K\rtwo\x1b[K\r\x1b[K"


def test_a_file_sees_nothing_of_it() -> None:
    stream = io.StringIO()
    line = Line(stream)
    line.show("one")
    line.clear()
    assert stream.getvalue() == ""


class Broken(grpc.RpcError):
    def __init__(self, code: grpc.StatusCode) -> None:
        self._code = code

    def code(self) -> grpc.StatusCode:
        return self._code


class Quiet:
    """A session whose streams end without an event, and whose daemon answers small questions or not."""

    def __init__(self, code: grpc.StatusCode, *, answers: bool) -> None:
        self.control = SimpleNamespace(WatchEvents=None, ListCampaigns=None)
        self.address, self.timeout_s = "x", 1.0
        self.now = 0.0
        self._code, self._answers = code, answers

    def stream(self, *_: object) -> Any:
        self.now += 60.0

        class Stream:
            def __init__(self, code: grpc.StatusCode) -> None:
                self._code = code

            def __iter__(self) -> Any:
                raise Broken(self._code)

            def cancel(self) -> None:
                return

        return Stream(self._code)

    def raw(self, *_: object) -> object:
        if not self._answers:
            raise Broken(grpc.StatusCode.DEADLINE_EXCEEDED)
        return None


def rounds(session: Quiet, most: int) -> int:
    """Streams that are opened before following gives up, at most ``most``."""
    made = events(session, "c", sleep=lambda _: None, clock=lambda: session.now)  # type: ignore[arg-type]
    count = 0
    try:
        for count, _ in enumerate(made, start=1):
            if count == most:
                break
    except Failure:
        pass
    return count


def test_a_campaign_in_which_nothing_happens_for_hours_is_still_followed() -> None:
    assert rounds(Quiet(grpc.StatusCode.DEADLINE_EXCEEDED, answers=True), 200) == 200


@pytest.mark.parametrize("code", [grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNAVAILABLE])
def test_a_daemon_that_stays_away_ends_the_following(code: grpc.StatusCode) -> None:
    assert rounds(Quiet(code, answers=False), 200) == 3


def test_a_validation_that_nobody_serves_says_what_is_missing() -> None:
    now = [0.0]
    look = Unserved(30.0, clock=lambda: now[0])
    waiting = control_pb2.Campaign(state="baselining", waiting_for=["run slot: no worker offers cuda:sm_90"])
    look(waiting)
    now[0] = 29.0
    look(waiting)
    look(control_pb2.Campaign(state="baselining"))
    now[0] = 40.0
    look(waiting)
    now[0] = 71.0
    with pytest.raises(Failure, match=r"no worker can do it \(run slot: no worker offers cuda:sm_90\)") as caught:
        look(waiting)
    assert caught.value.code is Exit.WRONG_STATE
    assert "--no-worker" in caught.value.mend
