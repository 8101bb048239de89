"""Task packages: packing, checking and loading what a person writes. Task code is never run here.

``pack(path)`` makes the canonical archive, ``problems(archive)`` lists what is wrong, ``load(archive)``
gives the ``TaskSpec`` and the files, ``unpack(archive, folder)`` writes them. Errors are ``BadInput`` with
file, line and mend.
"""

from kfd.tasks.archive import LIMITS, ArchiveLimits, pack, unpack
from kfd.tasks.loader import Task, load, problems

__all__ = ["LIMITS", "ArchiveLimits", "Task", "load", "pack", "problems", "unpack"]
