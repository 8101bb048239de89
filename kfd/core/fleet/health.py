"""When a slot is no longer trusted with work."""

from __future__ import annotations

from dataclasses import dataclass, field

from kfd.base.ids import JobId, candidate_of
from kfd.base.instant import MINUTE, Instant, Span
from kfd.base.work import Incident, IncidentCode, Stopped, Verdict

__all__ = ["DEVICE_WINDOW", "SlotHealth"]

# Incidents that speak about the slot. A missing blob, a full disk of the daemon, a reference that fails or a
# lease lost to the network say nothing about this device or this lane.
_SPEAKS_OF_SLOT = frozenset({IncidentCode.SANDBOX, IncidentCode.TOOLCHAIN, IncidentCode.DEVICE, IncidentCode.INTERNAL})

DEVICE_WINDOW: Span = 10 * MINUTE
"""How long a device's fault is held against it: faults come back between jobs that go well."""


@dataclass(slots=True)
class SlotHealth:
    """Incidents on one slot, counted per different candidate so that one bad kernel cannot take a device out.

    Incidents in a row count until a verdict shows that the slot works. Faults of the device count for
    ``DEVICE_WINDOW``, whatever goes well in between.
    """

    limit: int
    candidates: set[str] = field(default_factory=set)
    device_faults: dict[str, Instant] = field(default_factory=dict)
    """When each candidate last met a fault of the device; at most ``limit`` candidates."""
    last: str = ""
    aside: str = ""
    """Why the slot is set aside; empty while it is trusted."""

    def note(self, job: JobId, outcome: Verdict | Incident | Stopped, now: Instant) -> bool:
        """Take in how a job ended here. True when this is what sets the slot aside."""
        if isinstance(outcome, Verdict):
            self.candidates.clear()
            return False
        if not isinstance(outcome, Incident) or outcome.code not in _SPEAKS_OF_SLOT:
            return False
        text = f"{outcome.code.value}: {outcome.text[:200]}"
        return (outcome.code is IncidentCode.DEVICE and self._device_fault(job, text, now)) or self.fault(job, text)

    def fault(self, job: JobId, text: str) -> bool:
        """Take in a fault of the slot itself. True when this is what sets the slot aside."""
        self.candidates.add(candidate_of(job) or job)
        self.last = text
        return self._set_aside(len(self.candidates), "incidents in a row", text)

    def _device_fault(self, job: JobId, text: str, now: Instant) -> bool:
        recent = {who: at for who, at in self.device_faults.items() if now - at <= DEVICE_WINDOW}
        if len(recent) < self.limit:
            recent[candidate_of(job) or job] = now
        self.device_faults = recent
        return self._set_aside(len(recent), f"faults of the device within {DEVICE_WINDOW // MINUTE} minutes", text)

    def _set_aside(self, count: int, what: str, text: str) -> bool:
        if self.aside or count < self.limit:
            return False
        self.last = text
        self.aside = (
            f"{count} {what} by different candidates; its agent offers it again after a rest, at once when it is "
            f"restarted; the last: {text}"
        )
        return True

    def trust(self) -> None:
        """Forget what was: the agent has registered the slot afresh."""
        self.candidates.clear()
        self.device_faults.clear()
        self.aside = ""
        self.last = ""
