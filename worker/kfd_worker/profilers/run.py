"""Running a profiler and keeping what it printed: a thin shell around the parsers."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from kfd.base.instant import SECOND, Span
from kfd_worker.profilers.evidence import Evidence, NoProfile, Parser

__all__ = ["Profiled", "run"]

_MAX_OUTPUT = 4 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Profiled:
    """Evidence with the whole output behind it, or why there is none."""

    evidence: Evidence | None
    reason: str
    output: bytes
    """At most 4 MiB of standard output and error, for the job's log."""


def run(command: Sequence[str], parser: Parser, *, limit_ns: Span, env: dict[str, str] | None = None) -> Profiled:
    """Run a profiler for at most ``limit_ns``; blocking. A profile is evidence and no verdict: it never raises."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=limit_ns / SECOND,
            check=False,
            env=env if env is not None else {"PATH": os.environ.get("PATH", ""), "LANG": "C"},
        )
    except FileNotFoundError:
        return Profiled(evidence=None, reason=f"{command[0]} is not installed", output=b"")
    except (OSError, subprocess.TimeoutExpired) as error:
        return Profiled(evidence=None, reason=f"{command[0]}: {type(error).__name__}: {error}"[:300], output=b"")
    output = done.stdout[:_MAX_OUTPUT]
    try:
        return Profiled(evidence=parser(output.decode("utf-8", "replace")), reason="", output=output)
    except NoProfile as error:
        return Profiled(evidence=None, reason=str(error), output=output)
