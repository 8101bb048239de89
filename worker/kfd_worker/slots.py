"""Which slots an agent offers."""

from __future__ import annotations

import os
import re

from kfd.base.work import SlotKind
from kfd_worker.config import AgentConfig
from kfd_worker.launcher.config import LauncherFacts
from kfd_worker.transport import SlotFacts

__all__ = ["slots_of"]


def _slot_name(device: str) -> str:
    """The slot is the device, so it is named after it, as far as a slot's name can be."""
    return re.sub(r"[^A-Za-z0-9._:-]", "-", device).lstrip("-._:")[:100] or "device"


def slots_of(config: AgentConfig, facts: LauncherFacts) -> list[SlotFacts]:
    """Build lanes, and one run slot for each device, as many as are wanted."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    cores = len(os.sched_getaffinity(0))
    slots = [SlotFacts(name=f"b{n}", kind=SlotKind.BUILD, cores=1, memory_bytes=memory) for n in range(config.lanes)]
    slots += [
        SlotFacts(
            name=_slot_name(device.id),
            kind=SlotKind.RUN,
            device=device.id[:200],
            device_name=device.name[:200],
            device_facts=device.facts[:60],
            cores=cores,
            memory_bytes=memory,
            targets=device.targets,
        )
        for device in facts.devices[: config.run_slots]
    ]
    return slots
