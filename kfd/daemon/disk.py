"""Watching the disk: below a floor no new work is begun; results that come in are still taken."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kfd.core.events import SpaceChanged

__all__ = ["SpaceRule", "watch_space"]

LOOK_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceRule:
    """When the disk is too full. Hysteresis: room is back only at one and a half times the floor."""

    floor_bytes: int

    def is_low(self, free_bytes: int, was_low: bool) -> bool:
        """Whether new work must wait."""
        return free_bytes < (self.floor_bytes * 3 // 2 if was_low else self.floor_bytes)


async def watch_space(folder: Path, rule: SpaceRule, post: Callable[[SpaceChanged], None]) -> None:
    """Look at the free space for ever and post each change."""
    was_low = False
    while True:
        free = await asyncio.to_thread(lambda: shutil.disk_usage(folder).free)
        is_low = rule.is_low(free, was_low)
        if is_low != was_low:
            was_low = is_low
            floor, have = rule.floor_bytes >> 20, free >> 20
            text = (
                f"the disk under the state folder has {have} MiB free, less than the floor of {floor} MiB: no new work "
                "until space is freed"
                if is_low
                else f"the disk under the state folder has {have} MiB free again"
            )
            post(SpaceChanged(low=is_low, text=text))
        await asyncio.sleep(LOOK_SECONDS)
