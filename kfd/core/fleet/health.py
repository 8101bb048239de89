"""When a slot is no longer trusted with work."""

from __future__ import annotations

from dataclasses import dataclass, field

from kfd.base.ids import JobId, candidate_of
from kfd.base.work import Incident, IncidentCode, Stopped, Verdict

__all__ = ["SlotHealth"]

# Incidents that speak about the slot. A missing blob, a full disk of the daemon, a reference that fails or a
# lease lost to the network say nothing about this device or this lane.
_SPEAKS_OF_SLOT = frozenset({IncidentCode.SANDBOX, IncidentCode.TOOLCHAIN, IncidentCode.DEVICE, IncidentCode.INTERNAL})


@dataclass(slots=True)
class SlotHealth:
    """Incidents in a row on one slot, counted per different candidate so that one bad kernel cannot take a
    device out."""

    limit: int
    candidates: set[str] = field(default_factory=set)
    last: str = ""
    aside: str = ""
    """Why the slot is set aside; empty while it is trusted."""

    def note(self, job: JobId, outcome: Verdict | Incident | Stopped) -> bool:
        """Take in how a job ended here. True when this is what sets the slot aside."""
        if isinstance(outcome, Verdict):
            self.candidates.clear()
            return False
        if not isinstance(outcome, Incident) or outcome.code not in _SPEAKS_OF_SLOT:
            return False
        return self.fault(job, f"{outcome.code.value}: {outcome.text[:200]}")

    def fault(self, job: JobId, text: str) -> bool:
        """Take in a fault of the slot itself. True when this is what sets the slot aside."""
        self.candidates.add(candidate_of(job) or job)
        self.last = text
        if self.aside or len(self.candidates) < self.limit:
            return False
        self.aside = (
            f"{len(self.candidates)} incidents in a row by different candidates, last {text}; "
            "mend the worker and restart its agent"
        )
        return True

    def trust(self) -> None:
        """Forget what was: the agent has registered the slot afresh."""
        self.candidates.clear()
        self.aside = ""
        self.last = ""
