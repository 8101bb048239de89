"""What a toolchain is to the launcher: it names a box to run and reads what came out of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kfd.base.digest import Digest
from kfd.base.work import BuildSpec, Diagnostic, Verdict
from kfd_worker.sandbox.box import Ended

__all__ = ["BuildRequest", "Refused", "SelfTest", "Toolchain"]

SOURCE = "/job/source"
"""Folder in a build box that holds the kernel file under its own path."""


class Refused(Exception):
    """The build asks for something that this toolchain never does (a flag outside the allow-list)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildRequest:
    """What to run in a build box. The artifact comes out on standard output, messages on standard error."""

    argv: tuple[str, ...]
    scratch_bytes: int


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
        """Compile and look; blocking, bounded in time. Raises OSError or ValueError with the reason."""
        ...

    def request(self, spec: BuildSpec) -> BuildRequest:
        """The command for a build. Raises Refused."""
        ...

    def diagnostics(self, spec: BuildSpec, ended: Ended) -> tuple[Diagnostic, ...]:
        """Compiler messages of a finished box, bounded in number and size."""
        ...

    def verdict(self, spec: BuildSpec, ended: Ended, messages: Sequence[Diagnostic]) -> Verdict | None:
        """What a box that ended with an error says about the candidate; None: it says nothing about it."""
        ...

    def facts(self, spec: BuildSpec, artifact: Path) -> tuple[tuple[str, str], ...]:
        """Short facts about an artifact, read without running it."""
        ...
