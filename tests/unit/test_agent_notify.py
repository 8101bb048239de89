"""What systemd is told."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from kfd_worker.notify import Notifier


def test_messages_arrive_as_datagrams(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as peer:
        peer.bind(str(tmp_path / "notify"))
        peer.settimeout(5)
        Notifier({"NOTIFY_SOCKET": str(tmp_path / "notify")}).say("READY=1")
        assert peer.recv(100) == b"READY=1"


@pytest.mark.parametrize("socket_path", ["", "/nowhere/at/all", "@nobody-listens-here"])
def test_without_a_listener_nothing_happens(socket_path: str) -> None:
    Notifier({"NOTIFY_SOCKET": socket_path}).say("READY=1")


@pytest.mark.parametrize(
    ("environment", "seconds"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "30000000"}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())}, 30.0),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
    ],
)
def test_the_watchdog_is_ours_only_when_systemd_says_so(environment: dict[str, str], seconds: float | None) -> None:
    assert Notifier(environment).watchdog_seconds == seconds
