"""What a simulated kernel does: read from its source, or drawn from its digest. Pure, the same for ever.

A comment in the source may say it::

    // sim: verdict=ok speedup=1.40 build_ms=5 run_ms=20
    // sim: incident=device at=run attempts=1
    // sim: crash_agent=run
    // sim: hang=run

Without such a comment the outcome is drawn from the SHA-256 of the source.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

from kfd.base.digest import digest_of
from kfd.base.work import IncidentCode, VerdictCode

__all__ = ["Script", "script_of"]

_LINE = re.compile(r"\bsim:([^\n]*)")
_WORD = re.compile(r"([a-z_]+)=([^\s;,]+)")
_LONGEST_MS = 600_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """What happens when a source is built and run."""

    verdict: VerdictCode
    speedup: float
    """Reference time over kernel time."""
    build_ms: float = 0.0
    run_ms: float = 0.0
    incident: IncidentCode | None = None
    at: str = "run"
    """Stage of the incident: build or run."""
    attempts: int = 1_000_000
    """The incident happens in this many first attempts, then no more."""
    crash_agent: str = ""
    """Stage in which the whole agent dies: build or run."""
    hang: str = ""
    """Stage that never ends by itself."""


def script_of(source: bytes) -> Script:
    """The script of a source. Words that are not understood are ignored; numbers are clamped."""
    script = _drawn(source)
    for line in _LINE.findall(source.decode("utf-8", "replace")):
        for key, value in _WORD.findall(line):
            script = _apply(script, key, value)
    return script


def _drawn(source: bytes) -> Script:
    number = int(digest_of(source).hash[:8], 16) % 1000
    speedup = 0.5 + (int(digest_of(source).hash[8:16], 16) % 10_000) / 4_000
    bounds = (
        (150, VerdictCode.COMPILE_ERROR),
        (220, VerdictCode.INCORRECT),
        (250, VerdictCode.RUNTIME_ERROR),
        (270, VerdictCode.TIMEOUT),
    )
    verdict = next((code for bound, code in bounds if number < bound), VerdictCode.OK)
    return Script(verdict=verdict, speedup=speedup)


def _apply(script: Script, key: str, value: str) -> Script:
    if key == "verdict" and value in set(VerdictCode):
        return replace(script, verdict=VerdictCode(value))
    if key == "incident" and value in set(IncidentCode):
        return replace(script, incident=IncidentCode(value))
    stage = value if value in ("build", "run") else "run"
    if key == "at":
        return replace(script, at=stage)
    if key == "crash_agent":
        return replace(script, crash_agent=stage)
    if key == "hang":
        return replace(script, hang=stage)
    return _apply_number(script, key, value)


def _apply_number(script: Script, key: str, value: str) -> Script:
    try:
        number = float(value)
    except ValueError:
        return script
    if math.isnan(number):
        return script
    if key == "speedup":
        return replace(script, speedup=min(max(number, 1e-3), 1e3))
    if key == "build_ms":
        return replace(script, build_ms=min(max(number, 0.0), _LONGEST_MS))
    if key == "run_ms":
        return replace(script, run_ms=min(max(number, 0.0), _LONGEST_MS))
    if key == "attempts":
        return replace(script, attempts=int(min(max(number, 0), 1_000_000)))
    return script
