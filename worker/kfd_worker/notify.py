"""Telling systemd that we are up, and that we are useful; without systemd nothing happens."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping

__all__ = ["Notifier"]


class Notifier:
    """The protocol of sd_notify(3): one datagram per message."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._address = environment.get("NOTIFY_SOCKET", "")
        if self._address.startswith("@"):
            self._address = "\0" + self._address[1:]
        watched = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        micros = environment.get("WATCHDOG_USEC", "") if watched else ""
        self.watchdog_seconds: float | None = int(micros) / 1e6 if micros.isdigit() and int(micros) > 0 else None
        """How often systemd wants to hear of us at the latest; None when it does not."""

    def say(self, message: str) -> None:
        """Send a message such as ``READY=1``; failures are not worth dying for."""
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as peer:
                peer.sendto(message.encode(), self._address)
        except OSError:
            return
