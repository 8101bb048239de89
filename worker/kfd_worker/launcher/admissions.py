"""What judges have found out about tasks, kept on disk by the task's digest so that a restart does not ask again."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

from kfd.base.digest import Digest

__all__ = ["Admissions"]

_MAX_FILES = 1000
_MAX_BYTES = 1 << 20


class Admissions:
    """A folder with one small file for each task. Losing it costs a few seconds of a judge's time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, task: Digest) -> dict[str, Any] | None:
        """What is known of a task; None when nothing is, or nothing that can be read."""
        try:
            with open(self._folder / f"{task.hash}.json", encoding="utf-8") as file:
                data = json.loads(file.read(_MAX_BYTES))
        except (OSError, ValueError):
            return None
        return data if isinstance(data, dict) else None

    def put(self, task: Digest, found: dict[str, Any]) -> None:
        """Keep an admission. A full disk keeps none, and that is all."""
        text = json.dumps(found)
        if len(text) > _MAX_BYTES:
            return
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            names = sorted(self._folder.iterdir(), key=lambda path: path.stat().st_mtime_ns)
            for old in names[: max(0, len(names) - _MAX_FILES + 1)]:
                old.unlink()
            fresh = self._folder / f"{task.hash}.new"
            fresh.write_text(text, encoding="utf-8")
            os.replace(fresh, self._folder / f"{task.hash}.json")
