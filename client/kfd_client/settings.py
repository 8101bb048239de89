"""Where the daemon is and what lets us in: flags, then the environment, then what the daemon wrote."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kfd_client.exits import Exit, Failure

__all__ = ["Place", "find_daemon", "state_folder"]

_MAX_FILE = 64 << 10


@dataclass(frozen=True, slots=True)
class Place:
    """An address and, when there is one, a token."""

    address: str
    token: str


def state_folder(environment: Mapping[str, str]) -> Path:
    """The daemon's state folder on this machine."""
    given = environment.get("KFD_STATE_DIR", "")
    return Path(given).expanduser() if given else Path.home() / ".local" / "state" / "kfd"


def find_daemon(address: str, token_file: str, environment: Mapping[str, str]) -> Place:
    """Address and token. ``address`` and ``token_file`` are the flags' values, empty when absent. Raises
    Failure."""
    written = state_folder(environment) / "client.json"
    announced: dict[str, str] = {}
    where = address or environment.get("KFD_ADDRESS", "")
    if not where or not (token_file or environment.get("KFD_TOKEN_FILE", "")):
        announced = _announced(written)
    found = where or announced.get("address", "")
    if not found:
        raise Failure(
            f"no daemon is known: {written} does not exist",
            code=Exit.UNREACHABLE,
            mend="Start one with `kfd serve --with-worker`, or give --address HOST:PORT.",
        )
    _check_address(found)
    file = token_file or environment.get("KFD_TOKEN_FILE", "")
    if not file and announced.get("token_file") and announced.get("address") == found:
        file = os.path.join(written.parent, announced["token_file"])
    return Place(found, _token(file) if file else "")


def _announced(file: Path) -> dict[str, str]:
    try:
        with file.open(encoding="utf-8") as opened:
            data = json.loads(opened.read(_MAX_FILE))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise Failure(
            f"cannot read {file}: {error.strerror}",
            code=Exit.NOT_ALLOWED,
            mend="Run as the daemon's user, or give --address and --token-file.",
        ) from None
    except ValueError:
        data = None
    if not isinstance(data, dict):
        raise Failure(f"{file} is damaged", code=Exit.FAILED, mend="Restart `kfd serve`; it writes the file anew.")
    return {key: value for key, value in data.items() if isinstance(value, str)}


def _token(file: str) -> str:
    try:
        with open(Path(file).expanduser(), encoding="ascii") as opened:
            token = opened.read(_MAX_FILE).strip()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise Failure(
            f"cannot read the token file {file}: {reason}",
            code=Exit.NOT_ALLOWED,
            mend="Run as the daemon's user, or give --token-file a copy that you may read.",
        ) from None
    if not token or not token.isprintable() or " " in token:
        raise Failure(f"{file} holds no token", code=Exit.NOT_ALLOWED, mend="Give --token-file STATE_DIR/token.")
    return token


def _check_address(address: str) -> None:
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdigit() or not 0 < int(port) < 65536 or "/" in host:
        raise Failure(f"{address!r} is not an address", code=Exit.USAGE, mend="Give HOST:PORT, such as 127.0.0.1:7411.")
    name = host.strip("[]")
    if name not in ("localhost", "::1") and not name.startswith("127."):
        # The connection is plain text: a token would be readable on the way.
        raise Failure(
            f"{host} is another machine, and the connection is not encrypted",
            code=Exit.NOT_ALLOWED,
            mend=f"Open a tunnel, `ssh -L {port}:127.0.0.1:{port} {name}`, and give --address 127.0.0.1:{port}.",
        )
