"""Which job goes to which slot. Indices by key: no event looks at all jobs or all slots.

Campaigns take turns (a ring of lines is ordered by the turn that served each last); jobs of one campaign come
first in, first out. Retries go first, and elsewhere if they can. Runs of one campaign for one target stay on
the device model that took the first of them, since times of different models cannot be compared.
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import islice
from typing import TypeAlias

from kfd.base.ids import CampaignId, JobId, WorkerName
from kfd.base.instant import Instant
from kfd.base.work import BuildSpec, Requirement, SlotKind
from kfd.core.fleet.state import Entry, Key, Line, Slot

__all__ = ["BondKey", "Placement"]

BondKey: TypeAlias = tuple[CampaignId, str, str]
"""(campaign, toolchain, target)"""

_SCAN = 32
"""Retries or ready slots looked at before giving up until the next occasion."""


class Placement:
    """The queue, the slots that wait, and who serves what."""

    def __init__(self) -> None:
        self.lines: dict[Key, OrderedDict[CampaignId, Line]] = {}
        self.retries: dict[Key, dict[WorkerName | None, OrderedDict[JobId, Entry]]] = {}
        self.waiting: dict[Key, OrderedDict[Slot, None]] = {}
        self.serving: dict[Key, dict[WorkerName, int]] = {}
        self.bonds: OrderedDict[BondKey, str] = OrderedDict()
        self.bound: dict[Key, dict[CampaignId, None]] = {}
        self.queued: dict[SlotKind, OrderedDict[JobId, Instant]] = {kind: OrderedDict() for kind in SlotKind}
        self._turn = 0

    # ---- jobs -----------------------------------------------------------------------------------------

    def key_of(self, entry: Entry) -> Key:
        """Queue that a job belongs to now."""
        work = entry.job.spec.work
        if isinstance(work, BuildSpec):
            return (SlotKind.BUILD, work.toolchain, work.target, None)
        model = self.bonds.get((entry.job.campaign, work.toolchain, work.target))
        return (SlotKind.RUN, work.toolchain, work.target, model)

    def push(self, entry: Entry, now: Instant) -> None:
        """Queue a job: behind its campaign's others."""
        key = self.key_of(entry)
        campaign = entry.job.campaign
        ring = self.lines.setdefault(key, OrderedDict())
        line = ring.get(campaign)
        if line is None:
            line = ring[campaign] = Line(campaign, key, self._next_turn())
        line.jobs[entry.job.id] = entry
        entry.line = line
        self.queued[key[0]][entry.job.id] = now

    def push_retry(self, entry: Entry, now: Instant) -> None:
        """Queue a job whose attempt was lost: before others, and elsewhere while ``avoid_until`` holds."""
        key = self.key_of(entry)
        self._file_retry(entry, key)
        self.queued[key[0]][entry.job.id] = now

    def remove(self, entry: Entry) -> None:
        """Take a job out of the queue."""
        job = entry.job
        if entry.line is not None:
            line, entry.line = entry.line, None
            del line.jobs[job.id]
            if not line.jobs:
                self._drop_line(line)
            kind = line.key[0]
        elif entry.retry is not None:
            kind = entry.retry[0]
            self._unfile_retry(entry)
        else:
            raise KeyError(job.id)
        del self.queued[kind][job.id]

    def take(self, slot: Slot, now: Instant) -> Entry | None:
        """The job that a slot should do now, removed from the queue; None when there is none for it."""
        entry = self._find_retry(slot, now) if self.retries else None
        if entry is not None:
            self.remove(entry)
            return entry
        best: Line | None = None
        for key in slot.keys:
            ring = self.lines.get(key)
            if ring:
                line = next(iter(ring.values()))
                if best is None or line.stamp < best.stamp:
                    best = line
        if best is None:
            return None
        _, entry = best.jobs.popitem(last=False)
        entry.line = None
        del self.queued[best.key[0]][entry.job.id]
        if best.jobs:
            best.stamp = self._next_turn()
            self.lines[best.key].move_to_end(best.campaign)
        else:
            self._drop_line(best)
        return entry

    def _find_retry(self, slot: Slot, now: Instant) -> Entry | None:
        for key in slot.keys:
            for bucket in self.retries.get(key, {}).values():
                for entry in islice(bucket.values(), _SCAN):
                    if self._may_take(entry, slot, now):
                        return entry
        return None

    def _may_take(self, entry: Entry, slot: Slot, now: Instant) -> bool:
        """Whether a retry may go to a slot: not beside another suspect, and elsewhere while possible."""
        job, agent = entry.job, slot.agent
        if job.agent_losses and agent.suspects:
            return False
        if job.worker != agent.worker or now >= entry.avoid_until:
            return True
        workers = self.serving.get(self.key_of(entry), {})
        return not any(worker != agent.worker for worker in islice(workers, 2))

    # ---- slots ----------------------------------------------------------------------------------------

    def wait(self, slot: Slot) -> None:
        """A slot waits for work."""
        if not slot.ready:
            slot.ready = True
            for key in slot.keys:
                self.waiting.setdefault(key, OrderedDict())[slot] = None

    def unwait(self, slot: Slot) -> None:
        """A slot no longer waits."""
        if slot.ready:
            slot.ready = False
            for key in slot.keys:
                slots = self.waiting[key]
                del slots[slot]
                if not slots:
                    del self.waiting[key]

    def slot_for(self, entry: Entry, now: Instant) -> Slot | None:
        """A waiting slot for a queued job; the one that waits longest."""
        slots = self.waiting.get(self.key_of(entry))
        if not slots:
            return None
        if entry.retry is None:
            return next(iter(slots))
        return next((slot for slot in islice(slots, _SCAN) if self._may_take(entry, slot, now)), None)

    def count(self, slot: Slot) -> None:
        """A slot serves its keys from now on, whether it is busy or not."""
        if not slot.counted:
            slot.counted = True
            worker = slot.agent.worker
            for key in slot.keys:
                workers = self.serving.setdefault(key, {})
                workers[worker] = workers.get(worker, 0) + 1

    def uncount(self, slot: Slot) -> list[Key]:
        """A slot serves its keys no longer. Keys that nobody serves now and to which campaigns are bound."""
        if not slot.counted:
            return []
        slot.counted = False
        worker = slot.agent.worker
        orphaned = []
        for key in slot.keys:
            workers = self.serving[key]
            workers[worker] -= 1
            if not workers[worker]:
                del workers[worker]
            if not workers:
                del self.serving[key]
                if key in self.bound:
                    orphaned.append(key)
        return orphaned

    # ---- bonds between campaigns and device models -----------------------------------------------------

    def bind(self, campaign: CampaignId, toolchain: str, target: str, model: str) -> bool:
        """Bind a campaign's runs for a target to a device model. False when they are bound already."""
        bond = (campaign, toolchain, target)
        if bond in self.bonds or not model:
            return False
        self.bonds[bond] = model
        key: Key = (SlotKind.RUN, toolchain, target, model)
        self.bound.setdefault(key, {})[campaign] = None
        self._move((SlotKind.RUN, toolchain, target, None), key, campaign)
        return True

    def unbind(self, key: Key) -> list[CampaignId]:
        """Free every campaign that is bound to this key's model, because it is gone. Which they were."""
        campaigns = list(self.bound.pop(key, {}))
        free: Key = (key[0], key[1], key[2], None)
        for campaign in campaigns:
            del self.bonds[(campaign, key[1], key[2])]
            self._move(key, free, campaign)
        return campaigns

    def forget(self, campaign: CampaignId) -> None:
        """A campaign has ended: drop its bonds. Its queued jobs, if any, may then go anywhere."""
        for key in [key for key, campaigns in self.bound.items() if campaign in campaigns]:
            del self.bound[key][campaign]
            if not self.bound[key]:
                del self.bound[key]
            del self.bonds[(campaign, key[1], key[2])]
            self._move(key, (key[0], key[1], key[2], None), campaign)

    def why_not(self, requirement: Requirement) -> bool:
        """Whether nobody serves a requirement."""
        return (requirement.kind, requirement.toolchain, requirement.target, None) not in self.serving

    def _move(self, source: Key, target: Key, campaign: CampaignId) -> None:
        ring = self.lines.get(source)
        if ring is not None and campaign in ring:
            line = ring[campaign]
            self._drop_line(line)
            line.key, line.stamp = target, self._next_turn()
            self.lines.setdefault(target, OrderedDict())[campaign] = line
        moved = [
            entry
            for bucket in self.retries.get(source, {}).values()
            for entry in bucket.values()
            if entry.job.campaign == campaign
        ]
        for entry in moved:
            self._unfile_retry(entry)
            self._file_retry(entry, target)

    def _file_retry(self, entry: Entry, key: Key) -> None:
        bucket = self.retries.setdefault(key, {}).setdefault(entry.job.worker, OrderedDict())
        bucket[entry.job.id] = entry
        entry.retry = key

    def _unfile_retry(self, entry: Entry) -> None:
        key, entry.retry = entry.retry, None
        assert key is not None
        buckets = self.retries[key]
        del buckets[entry.job.worker][entry.job.id]
        if not buckets[entry.job.worker]:
            del buckets[entry.job.worker]
        if not buckets:
            del self.retries[key]

    def _drop_line(self, line: Line) -> None:
        ring = self.lines[line.key]
        del ring[line.campaign]
        if not ring:
            del self.lines[line.key]

    def _next_turn(self) -> int:
        self._turn += 1
        return self._turn
