"""What a toolchain is to the launcher: it names a box to run and reads what came out of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from kfd.base.digest import Digest
from kfd.base.work import BuildSpec, Diagnostic, Verdict
from kfd.tasks.launchplan import LaunchPlan
from kfd.tasks.spec import TaskSpec
from kfd_worker.sandbox.box import Ended, Mount

__all__ = ["BuildRequest", "NotInstalled", "Refused", "SelfTest", "Toolchain", "Unusable"]

SOURCE = "/job/source"
"""Folder in a build box that holds the kernel file under its own path."""


class Refused(Exception):
    """The build asks for something that this toolchain never does (a flag outside the allow-list)."""


class Unusable(Exception):
    """What a build gave cannot be loaded or launched: the text says why."""


class NotInstalled(ValueError):
    """The compiler is not on this machine, which is no fault of it; the text says what to install."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildRequest:
    """What to run in a build box. The artifact comes out on standard output, messages on standard error."""

    argv: tuple[str, ...]
    scratch_bytes: int
    mounts: tuple[Mount, ...] = ()
    """What the compiler needs beside the source and the system."""
    env: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfTest:
    """What a toolchain knows of itself once it has compiled something on this machine."""

    version: str
    fingerprint: Digest
    """Of everything that can change its output: compiler, assembler, linker, C library, flags, CPU."""


class Toolchain(Protocol):
    """One compiler with its targets."""

    name: str
    targets: tuple[str, ...]

    def self_test(self) -> SelfTest:
        """Compile and look; blocking, bounded in time. Raises NotInstalled, OSError or ValueError with the reason."""
        ...

    def request(self, spec: BuildSpec, task: TaskSpec, plan: LaunchPlan | None) -> BuildRequest:
        """The command for a build; ``plan`` is the source's launch plan in device form. Raises Refused."""
        ...

    def diagnostics(self, spec: BuildSpec, ended: Ended) -> tuple[Diagnostic, ...]:
        """Compiler messages of a finished box, bounded in number and size."""
        ...

    def verdict(self, spec: BuildSpec, ended: Ended, messages: Sequence[Diagnostic]) -> Verdict | None:
        """What a box that ended with an error says about the candidate; None: it says nothing about it."""
        ...

    def artifact(self, spec: BuildSpec, task: TaskSpec, plan: LaunchPlan | None, ended: Ended) -> bytes:
        """The artifact's bytes out of a box that ended well. Raises Unusable."""
        ...

    def facts(self, spec: BuildSpec, ended: Ended) -> tuple[tuple[str, str], ...]:
        """Short facts about what a box that ended well has built, read without running it."""
        ...
