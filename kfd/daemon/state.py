"""The state folder: one daemon at a time, a token that only its owner can read, and where clients find both."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from pathlib import Path
from typing import IO

from kfd.base.failure import WrongState

__all__ = ["StateFolder"]


class StateFolder:
    """Files of one daemon. Holding the lock is what makes it the only one."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.database = root / "kfd.sqlite3"
        self.blobs = root / "blobs"
        self.token_file = root / "token"
        self.client_file = root / "client.json"
        self.worker = root / "worker"
        self._lock: IO[str] | None = None

    def take(self) -> None:
        """Make the folder and take its lock. Raises WrongState naming the holder when another daemon has it."""
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.root.chmod(0o700)
        lock = (self.root / "lock").open("a+", encoding="utf-8")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            lock.seek(0)
            holder = lock.read(100).strip() or "unknown"
            lock.close()
            raise WrongState(
                f"another kfd (process {holder}) uses {self.root}",
                mend="stop it, or give this one another state folder with --state-dir",
            ) from error
        lock.seek(0)
        lock.truncate()
        lock.write(str(os.getpid()))
        lock.flush()
        self._lock = lock

    def token(self) -> str:
        """The bearer token; made on first use, readable by its owner only."""
        try:
            text = self.token_file.read_text("ascii").strip()
            if len(text) >= 32:
                self.token_file.chmod(0o600)
                return text
        except FileNotFoundError:
            pass
        token = secrets.token_urlsafe(32)
        self._write_private(self.token_file, token + "\n")
        return token

    def announce(self, address: str) -> None:
        """Write where clients on this machine find the daemon."""
        body = {"address": address, "token_file": str(self.token_file.absolute()), "pid": os.getpid()}
        self._write_private(self.client_file, json.dumps(body) + "\n")

    def last_port(self) -> int | None:
        """The port of the last announcement: agents that outlive a restart come back to it."""
        try:
            address = json.loads(self.client_file.read_text("utf-8"))["address"]
            return int(str(address).rpartition(":")[2])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def release(self) -> None:
        """Let go of the lock."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _write_private(self, path: Path, text: str) -> None:
        temporary = path.with_suffix(".new")
        temporary.unlink(missing_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
