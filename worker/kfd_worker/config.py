"""What an agent is told: options, environment, and a TOML file. Unknown keys are refused, with the nearest known."""

from __future__ import annotations

import difflib
import os
import re
import socket
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from kfd.base.failure import BadInput

__all__ = ["AgentConfig", "default_name", "load_config"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,99}\Z")
_MOST_LANES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    """How an agent works."""

    daemon: str = ""
    """HOST:PORT or unix:PATH."""
    token_file: str = ""
    name: str = ""
    state_dir: str = ""
    build_lanes: int = -1
    """Builds at a time; -1: by cores."""
    run_slots: int = 1
    """Devices to offer, at most."""
    executor: str = "real"
    """real or simulated."""
    accept_unsandboxed: bool = False
    shared_host: bool = False
    """Build while a benchmark runs on this machine, at the price of noisier times."""
    grace_seconds: float = 30.0
    """How long running jobs may go on after SIGTERM."""
    cache_bytes: int = 10 << 30
    log_format: str = "auto"
    """auto, console or json."""
    exit_with_stdin: bool = False
    """End when standard input ends: the parent has died."""

    @property
    def state(self) -> Path:
        """The state folder."""
        return Path(self.state_dir)

    @property
    def lanes(self) -> int:
        """Build lanes, resolved: all cores but two, one at least, eight at most."""
        if self.build_lanes >= 0:
            return self.build_lanes
        return min(8, max(1, len(os.sched_getaffinity(0)) - 2))


def default_name() -> str:
    """The host's name, as far as it can be a worker's name."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname()).strip("-._")[:60] or "worker"


def default_state_dir(environment: Mapping[str, str]) -> str:
    """Where an agent keeps its state when it is not told."""
    if folder := environment.get("STATE_DIRECTORY"):
        return folder.partition(":")[0]
    home = environment.get("XDG_STATE_HOME") or os.path.join(environment.get("HOME", "/tmp"), ".local/state")
    return os.path.join(home, "kfd-worker")


def load_config(path: Path | None, given: Mapping[str, Any], environment: Mapping[str, str]) -> AgentConfig:
    """The configuration: ``given`` options over the environment over the file. Raises BadInput."""
    values: dict[str, Any] = {} if path is None else _read(path)
    for key, variable in (("daemon", "KFD_DAEMON"), ("token_file", "KFD_TOKEN_FILE")):
        if environment.get(variable):
            values[key] = environment[variable]
    values.update({key: value for key, value in given.items() if value is not None})
    config = AgentConfig(**values)
    config = replace(
        config,
        name=config.name or default_name(),
        state_dir=os.path.abspath(config.state_dir or default_state_dir(environment)),
    )
    _check(config)
    return config


def _read(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            values = tomllib.load(file)
    except OSError as error:
        raise BadInput(f"it cannot be read: {error.strerror}", file=str(path)) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"not TOML: {error}", file=str(path)) from error
    known = {field.name: field.type for field in fields(AgentConfig)}
    for key, value in values.items():
        if key not in known:
            near = difflib.get_close_matches(key, known, 1)
            mend = f"Did you mean {near[0]!r}?" if near else f"Known keys: {', '.join(known)}."
            raise BadInput(f"unknown key {key!r}", file=str(path), mend=mend)
        values[key] = _typed(path, key, value, str(known[key]))
    return values


def _typed(path: Path, key: str, value: Any, type_name: str) -> Any:
    kinds: dict[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "float": (int, float), "bool": (bool,)}
    wanted = kinds[type_name]
    if not isinstance(value, wanted) or (isinstance(value, bool) and type_name != "bool"):
        raise BadInput(f"{key} must be a {type_name}, not {value!r}", file=str(path))
    return value


def _check(config: AgentConfig) -> None:
    problems = (
        (not config.daemon, "no daemon is given", "Give --daemon HOST:PORT, or set KFD_DAEMON."),
        (not _NAME.match(config.name), f"not a worker's name: {config.name!r}", "Use letters, digits, ._:- only."),
        (config.executor not in ("real", "simulated"), f"no such executor: {config.executor!r}", "real, simulated"),
        (config.log_format not in ("auto", "console", "json"), f"no such format: {config.log_format!r}", ""),
        (not -1 <= config.build_lanes <= _MOST_LANES, f"{config.build_lanes} build lanes", f"0 to {_MOST_LANES}"),
        (not 0 <= config.run_slots <= _MOST_LANES, f"{config.run_slots} run slots", f"0 to {_MOST_LANES}"),
        (config.lanes + config.run_slots < 1, "neither build lanes nor run slots", "Offer one at least."),
        (not 0 <= config.grace_seconds <= 3600, f"{config.grace_seconds} s of grace", "0 to 3600"),
        (config.cache_bytes < 1 << 20, f"a cache of {config.cache_bytes} bytes", "Give 1 MiB at least."),
    )
    for wrong, text, mend in problems:
        if wrong:
            raise BadInput(text, mend=mend)
