"""The daemon's configuration: TOML, every key documented here, unknown keys refused with the nearest known one."""

from __future__ import annotations

import difflib
import ipaddress
import os
import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from kfd.base.failure import BadInput
from kfd.base.instant import SECOND
from kfd.base.work import MeasurementPlan
from kfd.core.search.proposals import ANY_MODEL, SearchPolicy
from kfd.core.search.settings import SettingsError, policy_of
from kfd.llm.config import LlmConfig, Section

__all__ = ["SEARCH", "Config", "load_config", "state_dir"]

SEARCH = SearchPolicy()
"""The search that a campaign has unless it is configured (docs/search.md)."""


class ServerConfig(Section):
    """Where the daemon listens and keeps its state."""

    listen: str = Field(
        default="127.0.0.1:7440", description="Address and port; loopback only. Port 0 takes a free one."
    )
    state_dir: Path | None = Field(
        default=None, description="State folder; default $KFD_STATE_DIR or ~/.local/state/kfd."
    )
    stop_seconds: float = Field(default=8.0, gt=0, le=60, description="How long an orderly stop may take.")

    @field_validator("listen")
    @classmethod
    def _loopback(cls, value: str) -> str:
        host, colon, port = value.rpartition(":")
        if not colon or not port.isdecimal() or int(port) > 65535:
            raise ValueError("listen is HOST:PORT")
        name = host.strip("[]")
        try:
            is_loopback = name == "localhost" or ipaddress.ip_address(name).is_loopback
        except ValueError as error:
            raise ValueError(f"{host} is not an IP address") from error
        if not is_loopback:
            raise ValueError(f"{host} is not a loopback address; without TLS the daemon listens on loopback only")
        return value


class LogConfig(Section):
    """How the daemon logs."""

    format: Literal["auto", "console", "json"] = Field(
        default="auto", description="auto: console on a terminal, else json."
    )
    level: Literal["debug", "info", "warning", "error"] = Field(default="info", description="Least severe level shown.")


class DiskConfig(Section):
    """When the disk is too full for new work."""

    floor_mb: int = Field(
        default=256, ge=0, description="Free MiB under the state folder below which no new work begins."
    )


_PLAN = MeasurementPlan()
"""What the benchmarks measure with is what campaigns measure with."""


class MeasureConfig(Section):
    """How long candidates are measured."""

    min_rounds: int = Field(default=_PLAN.min_rounds, ge=3, le=1000, description="Fewest rounds.")
    max_rounds: int = Field(default=_PLAN.max_rounds, ge=3, le=10_000, description="Most rounds.")
    target_half_width: float = Field(
        default=_PLAN.target_half_width, gt=0, lt=1, description="Stop when the interval's half-width is below."
    )
    max_seconds: float = Field(
        default=_PLAN.max_ns / SECOND, gt=0, le=600, description="Longest measurement of one candidate."
    )

    @model_validator(mode="after")
    def _check(self) -> MeasureConfig:
        if self.max_rounds < self.min_rounds:
            raise ValueError(f"max_rounds ({self.max_rounds}) is below min_rounds ({self.min_rounds})")
        return self

    def plan(self) -> MeasurementPlan:
        """As the wire wants it."""
        return MeasurementPlan(
            min_rounds=self.min_rounds,
            max_rounds=self.max_rounds,
            target_half_width=self.target_half_width,
            max_ns=round(self.max_seconds * SECOND),
        )


class CampaignConfig(Section):
    """Defaults of campaigns."""

    in_flight: int = Field(default=4, ge=1, le=256, description="Candidates in flight per campaign.")
    search: dict[str, Any] = Field(default_factory=dict, description="How candidates are asked for: sections below.")
    measure: MeasureConfig = MeasureConfig()

    def policy(self) -> SearchPolicy:
        """The search as the core wants it. Raises SettingsError."""
        return policy_of(self.search, SEARCH)


class WorkerConfig(Section):
    """The embedded agent of ``kfd serve --with-worker``."""

    build_lanes: int = Field(default=0, ge=0, le=256, description="Build lanes; 0 lets the agent choose.")
    executor: Literal["real", "simulated"] = Field(default="real", description="simulated: no kernel is built or run.")
    accept_unsandboxed: bool = Field(
        default=False, description="Run kernels without a sandbox; they can harm this machine."
    )


class Config(Section):
    """All of it."""

    server: ServerConfig = ServerConfig()
    log: LogConfig = LogConfig()
    disk: DiskConfig = DiskConfig()
    campaign: CampaignConfig = CampaignConfig()
    worker: WorkerConfig = WorkerConfig()
    llm: LlmConfig = LlmConfig()

    def model_shares(self) -> tuple[tuple[str, float], ...]:
        """Models to ask when a campaign names none: those of the search's settings, else all that have a weight."""
        if "models" in self.campaign.search:
            return self.campaign.policy().models
        return tuple((model.name, model.weight) for model in self.llm.models if model.weight > 0)


def load_config(path: Path | None) -> Config:
    """Read a file (or the defaults). Raises BadInput naming file, key and what to do."""
    if path is None:
        return Config()
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"cannot be read: {error}", file=str(path), mend="name a readable TOML file") from error
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"is not TOML: {error}", file=str(path), mend="mend the syntax") from error
    try:
        config = Config.model_validate(data)
        _check_search(config)
    except ValidationError as error:
        # A misspelt key explains a missing one, so it is named first.
        first = min(error.errors(include_url=False), key=lambda one: one["type"] != "extra_forbidden")
        key = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            raise BadInput(f"unknown key {key}", file=str(path), mend=_suggest(first["loc"])) from error
        raise BadInput(
            f"{key}: {first['msg'].removeprefix('Value error, ')}", file=str(path), mend=f"correct {key}"
        ) from error
    except SettingsError as error:
        text, _, mend = str(error).replace("search.", "campaign.search.").partition("; ")
        raise BadInput(text, file=str(path), mend=mend or "correct the value") from error
    return config


def _check_search(config: Config) -> None:
    """Raise SettingsError when the search cannot be used, or shares out models that are not configured."""
    policy = config.campaign.policy()
    known = [ANY_MODEL, *(model.name for model in config.llm.models)]
    named = [("search.models", name) for name, _ in policy.models]
    named += [("search.prompts.model", policy.prompts.model)] if policy.prompts.model else []
    for key, name in named:
        if name not in known or (name == ANY_MODEL and key != "search.models"):
            near = difflib.get_close_matches(name, known[1:], n=1, cutoff=0.5)
            mend = f"did you mean {near[0]}?" if near else "add it as [[llm.models]], or leave it out"
            raise SettingsError(f"{key} names {name[:80]!r}, which is not configured; {mend}")


def _suggest(loc: tuple[int | str, ...]) -> str:
    model: Any = Config
    for part in loc[:-1]:
        if isinstance(part, int):
            continue
        annotation = model.model_fields[part].annotation
        arguments = getattr(annotation, "__args__", None)
        model = arguments[0] if arguments else annotation
    known = sorted(model.model_fields)
    near = difflib.get_close_matches(str(loc[-1]), known, n=1, cutoff=0.5)
    return f"did you mean {near[0]}?" if near else f"keys here: {', '.join(known)}"


def state_dir(config: Config) -> Path:
    """The state folder: configured, from the environment, or the user's own."""
    if config.server.state_dir is not None:
        return config.server.state_dir.expanduser()
    named = os.environ.get("KFD_STATE_DIR")
    return Path(named) if named else Path.home() / ".local" / "state" / "kfd"
