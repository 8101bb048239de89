"""What must always hold in the fleet machine. Broken means a bug of ours, never of a peer."""

from __future__ import annotations

from kfd.base.failure import Bug
from kfd.core.fleet.leases import Leases
from kfd.core.fleet.model import CallId, JobState
from kfd.core.fleet.sessions import Sessions
from kfd.core.fleet.state import Entry, Slot

__all__ = ["check_fleet"]


def check_fleet(leases: Leases, sessions: Sessions, calls: dict[CallId, Slot]) -> None:
    """Raise Bug when an invariant is broken."""
    _check_jobs(leases)
    _check_queue(leases)
    _check_slots(leases, sessions, calls)


def _expect(holds: bool, text: str) -> None:
    if not holds:
        raise Bug(f"fleet invariant broken: {text}")


def _check_jobs(leases: Leases) -> None:
    for job_id, entry in leases.entries.items():
        job = entry.job
        orphaned = job_id in leases.orphans.get(job.worker, {}) if job.worker is not None else False
        places = [entry.queued, entry.slot is not None, orphaned]
        _expect(job.id == job_id, f"{job_id} is filed under another name")
        _expect(sum(places) == 1, f"{job_id} is in {sum(places)} places")
        _expect(job.state is not JobState.SETTLED, f"{job_id} is settled and still open")
        _expect(entry.queued == (job.state is JobState.QUEUED), f"{job_id} is {job.state} in the wrong place")
        _expect(not (entry.queued and job.cancelled), f"{job_id} is cancelled and waits")
        if entry.slot is not None:
            _expect(entry.slot.entry is entry, f"{job_id} is not what its slot holds")
            _expect(entry.slot.deadline.due is not None, f"{job_id} has a lease without a deadline")
        if orphaned:
            _expect(entry.timer is not None and entry.timer.due is not None, f"{job_id} waits for ever")
        if entry.retry is not None:
            _expect(entry.timer is not None and entry.timer.due is not None, f"retry {job_id} is never looked at")
    for bucket in leases.orphans.values():
        for entry in bucket.values():
            _expect(leases.entries.get(entry.job.id) is entry, f"orphan {entry.job.id} is not open")


def _check_queue(leases: Leases) -> None:
    placement = leases.placement
    filed: dict[str, Entry] = {}
    for key, ring in placement.lines.items():
        stamps = [line.stamp for line in ring.values()]
        _expect(stamps == sorted(stamps), f"turns of {key} are out of order")
        for line in ring.values():
            _expect(bool(line.jobs) and line.key == key, f"line of {line.campaign} is misfiled")
            for entry in line.jobs.values():
                _expect(entry.line is line and entry.job.id not in filed, f"{entry.job.id} waits twice")
                _expect(placement.key_of(entry) == key, f"{entry.job.id} waits in the wrong queue")
                filed[entry.job.id] = entry
    for key, buckets in placement.retries.items():
        for worker, bucket in buckets.items():
            for entry in bucket.values():
                right = entry.retry == key and entry.job.worker == worker and entry.job.id not in filed
                _expect(right, f"retry {entry.job.id} is misfiled")
                _expect(placement.key_of(entry) == key, f"retry {entry.job.id} waits in the wrong queue")
                filed[entry.job.id] = entry
    counted = {job_id for waits in placement.queued.values() for job_id in waits}
    _expect(counted == set(filed), "the queue's count is off")
    _expect(all(leases.entries.get(entry.job.id) is entry for entry in filed.values()), "a stranger waits")


def _check_slots(leases: Leases, sessions: Sessions, calls: dict[CallId, Slot]) -> None:
    serving: dict[object, int] = {}
    for agent in sessions.agents.values():
        _expect(agent.session is None or sessions.by_session.get(agent.session) is agent, "a session is misfiled")
        parked = 0
        for slot in agent.slots.values():
            _expect(slot.call is None or calls.get(slot.call) is slot, f"a call of {slot.name} is misfiled")
            _expect(not slot.ready or slot.call is not None, f"{slot.name} waits without a call")
            _expect(not slot.ready or slot.entry is None, f"{slot.name} waits and holds a lease")
            _expect(slot.call is None or slot.hold.due is not None, f"a call of {slot.name} is held for ever")
            if slot.entry is not None:
                _expect(leases.entries.get(slot.entry.job.id) is slot.entry, f"{slot.name} holds a closed job")
            parked += slot.call is not None
            for key in slot.keys if slot.counted else ():
                serving[key] = serving.get(key, 0) + 1
        _expect(parked == agent.parked, f"parked calls of {agent.worker} are miscounted")
    _expect(len(calls) == sum(agent.parked for agent in sessions.agents.values()), "calls are miscounted")
    real = {key: sum(workers.values()) for key, workers in leases.placement.serving.items()}
    _expect(real == serving, "who serves what is miscounted")
