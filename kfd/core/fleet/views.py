"""What people see of the fleet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kfd.base.ids import JobId
from kfd.base.instant import Instant, Span
from kfd.base.work import Requirement, SlotKind
from kfd.core.fleet.leases import Leases
from kfd.core.fleet.model import FleetPolicy, QueueClass, QueueView, SlotOffer, WorkerSeen
from kfd.core.fleet.state import Agent, Key, Phase, Slot, served

__all__ = ["lacking", "queue", "reasons", "workers"]

_REASONS = 20
"""Lines of explanation that one answer holds."""
_ABSENT = "absent."
"""What the fact of a host begins with that says what to install for the toolchain named after it."""
_MEND = 300


def workers(agents: Iterable[Agent], policy: FleetPolicy, now: Instant) -> list[WorkerSeen]:
    """Read model of every worker, by name."""
    return [_worker(agent, now) for agent in sorted(agents, key=lambda agent: agent.worker)]


def _worker(agent: Agent, now: Instant) -> WorkerSeen:
    if agent.session is None or not agent.live:
        state, reason = "down", agent.reason
    elif agent.drained is not None:
        state, reason = "draining", agent.drained
    else:
        state, reason = "up", ""
    return WorkerSeen(
        worker=agent.worker,
        state=state,
        reason=reason,
        agent_version=agent.version,
        last_seen=now - agent.last_seen,
        slots=tuple(_slot(slot, now) for slot in agent.slots.values()),
        toolchains=agent.toolchains,
        settled=agent.settled,
    )


def _slot(slot: Slot, now: Instant) -> tuple[SlotOffer, str, JobId | None, Span, str, str]:
    job = slot.entry.job.id if slot.entry is not None else None
    why = slot.health.aside or slot.why
    if not slot.agent.live:
        state = "down"
    elif job is not None:
        state = "running" if slot.phase is Phase.ACTIVE else "offered"
    elif slot.call is None and not slot.agent.parked:
        state, why = "down", why or "disconnected"
    elif slot.health.aside or not slot.accepting:
        state, why = "not_ready", why or "not accepting"
    else:
        state = "idle"
    return slot.offer, state, job, max(0, now - slot.since), why, slot.stage


def queue(leases: Leases, halted: str, now: Instant) -> QueueView:
    """Read model of the queue. Costs as much as there are kinds of waiting jobs, not as there are jobs."""
    placement = leases.placement
    sizes: dict[Key, int] = {}
    for key, ring in placement.lines.items():
        sizes[key] = sizes.get(key, 0) + sum(len(line.jobs) for line in ring.values())
    for key, buckets in placement.retries.items():
        sizes[key] = sizes.get(key, 0) + sum(len(bucket) for bucket in buckets.values())
    queued = placement.queued
    builds, runs = len(queued[SlotKind.BUILD]), len(queued[SlotKind.RUN])
    oldest = min((next(iter(waits.values())) for waits in queued.values() if waits), default=now)
    return QueueView(
        queued_builds=builds,
        queued_runs=runs,
        leased=len(leases.entries) - builds - runs,
        oldest_queued=max(0, now - oldest),
        classes=tuple(
            QueueClass(
                kind=key[0],
                toolchain=key[1],
                target=key[2],
                device_name=key[3] or "",
                queued=size,
                served=key in placement.serving,
            )
            for key, size in sizes.items()
        ),
        halted=halted,
    )


def lacking(host: Sequence[tuple[str, str]]) -> dict[str, str]:
    """What a worker's host would have to be given, by toolchain, from the facts that it registered with."""
    return {key.removeprefix(_ABSENT): text[:_MEND] for key, text in host if key.startswith(_ABSENT)}


def reasons(agents: Iterable[Agent], requirement: Requirement) -> list[str]:
    """Why no slot serves a requirement: the first mismatch of each worker, for people."""
    lines: dict[str, None] = {}
    for agent in agents:
        mend = lacking(agent.host).get(requirement.toolchain, "")
        lines[f"worker {agent.worker}: {_mismatch(agent, requirement, mend)}"] = None
        if len(lines) > _REASONS:
            break
    if not lines:
        return ["no worker has registered: start one with `kfd-worker run`"]
    told = list(lines)
    return [*told[:_REASONS], "and more"] if len(told) > _REASONS else told


def _mismatch(agent: Agent, requirement: Requirement, mend: str) -> str:
    slots = [slot for slot in agent.slots.values() if slot.offer.kind is requirement.kind]
    if agent.session is None or not agent.live:
        return f"is down ({agent.reason})"
    if agent.drained is not None:
        return f"is drained ({agent.drained})"
    if not slots:
        return f"has no {requirement.kind.value} slot"
    can = list(dict.fromkeys(pair for slot in slots for pair in served(slot.offer, agent.toolchains)))
    if (requirement.toolchain, requirement.target) not in can:
        does = "run" if requirement.kind is SlotKind.RUN else "build"
        serves = ", ".join(target for _, target in can) or "nothing"
        told = f"does not {does} {requirement.target} with {requirement.toolchain} (it can {does} {serves})"
        return f"{told}; {mend}, then restart its agent" if mend else told
    aside = next((slot for slot in slots if slot.health.aside), None)
    if aside is not None:
        return f"slot {aside.name} is set aside ({aside.health.aside})"
    return f"its {requirement.kind.value} slots do not serve {requirement.target} yet"
