"""Files of the agent: digests, the lock of its state folder, who it is."""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import time
from pathlib import Path
from typing import IO

from kfd.base.digest import Digest, digest_of
from kfd.base.failure import WrongState

__all__ = ["digest_of_file", "machine_id", "take_lock"]


def digest_of_file(path: Path) -> Digest:
    """Digest of a file's bytes. Blocks; raises OSError."""
    with path.open("rb") as file:
        hash_ = hashlib.file_digest(file, "sha256").hexdigest()
        return Digest(hash_, os.fstat(file.fileno()).st_size)


def take_lock(folder: Path, patience_seconds: float = 0.0) -> IO[str]:
    """Lock a state folder for as long as the file is open. Blocks for at most ``patience_seconds``.

    Raises WrongState when another agent has it.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = (folder / "agent.lock").open("a+")
    until = time.monotonic() + patience_seconds
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except OSError:
            if time.monotonic() < until:
                time.sleep(0.05)
                continue
        file.seek(0)
        holder = file.read(20).strip()
        file.close()
        raise WrongState(
            f"an agent is at work in {folder} already" + (f" (process {holder})" if holder else ""),
            mend="Stop it first, or give this one another --state-dir and --name.",
        )
    file.truncate(0)
    file.write(f"{os.getpid()}\n")
    file.flush()
    return file


def machine_id(state: Path, system: Path = Path("/etc/machine-id")) -> str:
    """Who this machine is: a digest of the system's id (which should not travel), or an id of our own."""
    try:
        text = system.read_text("ascii").strip()
    except (OSError, ValueError):
        text = ""
    if text:
        return digest_of(f"kfd:{text}".encode()).hash[:32]
    own = state / "machine-id"
    try:
        return own.read_text("ascii").strip()[:64]
    except FileNotFoundError:
        text = secrets.token_hex(16)
        own.write_text(text)
        return text
