"""How a run ends before its end. One class for each side that can be at fault."""

from __future__ import annotations

from kfd.base.work import IncidentCode, VerdictCode

__all__ = ["BaselineFault", "CandidateFault", "DeviceFault", "Disagreement", "ReferenceFault", "SideLost"]


class CandidateFault(Exception):
    """The candidate did something that is a verdict."""

    def __init__(self, code: VerdictCode, text: str) -> None:
        super().__init__(text)
        self.code = code


class SideLost(Exception):
    """A box hung up. Why is for the launcher to say, which sees the box's end."""

    def __init__(self, side: str, phase: str) -> None:
        super().__init__(f"{side} ended while {phase}")
        self.side = side
        self.phase = phase


class BaselineFault(Exception):
    """The initial kernel did not do its part: an incident, never the candidate's verdict."""


class ReferenceFault(Exception):
    """The task's own code failed or gave something it should not: an incident, never a verdict."""


class DeviceFault(Exception):
    """A device or our own program on it failed: an incident with its code, never a verdict."""

    def __init__(self, code: IncidentCode, text: str) -> None:
        super().__init__(text)
        self.code = code


class Disagreement(DeviceFault):
    """Two clocks tell different times: nobody's verdict, and the measurement is lost."""

    def __init__(self, text: str) -> None:
        super().__init__(IncidentCode.NOISE, text)
