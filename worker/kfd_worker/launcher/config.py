"""What the agent tells the launcher, and what the launcher tells back about the machine. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kfd.base.digest import Digest
from kfd.base.work import Report

__all__ = ["DeviceFact", "JobDone", "LauncherConfig", "LauncherFacts", "ToolchainFact"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LauncherConfig:
    """How a launcher works."""

    state_dir: str
    """Absolute folder of the launcher's own, mode 0700; jobs live below it."""
    build_lanes: int = 1
    run_slots: int = 1
    """Devices to offer at most, the processor last; one judge is kept for each."""
    accept_unsandboxed: bool = False
    cores: tuple[int, ...] = ()
    """Cores that run boxes and judges may use; empty: all that the launcher may."""
    threads: int = 0
    """Threads of every measured side; 0: one for each core."""
    hide: tuple[str, ...] = ()
    """Parts of the sandbox not to be used even if they work: ``bwrap``, ``unshare``, ``cgroup``, ``userns``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolchainFact:
    """A toolchain that has passed its self-test."""

    name: str
    version: str
    fingerprint: Digest
    targets: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFact:
    """A device with a run slot."""

    id: str
    name: str
    facts: tuple[tuple[str, str], ...]
    targets: tuple[str, ...]
    """What it runs, whoever built it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LauncherFacts:
    """What this machine offers."""

    toolchains: tuple[ToolchainFact, ...]
    devices: tuple[DeviceFact, ...]
    sandbox: tuple[tuple[str, str], ...]
    problems: tuple[tuple[str, str], ...] = ()
    """Name and reason of what is not offered: a toolchain that failed its self-test, a device that is not there."""
    absent: tuple[tuple[str, str], ...] = ()
    """Toolchains that are not installed here, each with what to install; nobody needs all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDone:
    """The end of one job."""

    report: Report
    artifact: Path | None = None
    """The artifact's file, kept until ``discard``."""
    log: Path | None = None
    """The whole kept log, kept until ``discard``."""
