"""Control groups, version 1 or 2, where this process may make them; otherwise none.

Version 1 keeps memory and pids in separate trees, version 2 in one. Both are found from what the kernel
says about this very process, so that a container or a delegated unit works as a whole machine does.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Cgroup", "CgroupTree", "find_tree", "own_paths"]

_PREFIX = "kfd-box-"


@dataclass(frozen=True, slots=True)
class Cgroup:
    """The control group of one box."""

    folders: tuple[Path, ...]
    memory: Path | None

    @property
    def procs(self) -> tuple[str, ...]:
        """Files into which the box's first process writes its number."""
        return tuple(str(folder / "cgroup.procs") for folder in self.folders)

    def pids(self) -> set[int]:
        """Processes in the group now."""
        found: set[int] = set()
        for folder in self.folders:
            with contextlib.suppress(OSError, ValueError):
                found |= {int(word) for word in (folder / "cgroup.procs").read_text().split()}
        return found

    def kill(self) -> None:
        """End every process of the group; safe to repeat."""
        for folder in self.folders:
            with contextlib.suppress(OSError):
                (folder / "cgroup.kill").write_text("1")
        for pid in self.pids():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)

    def out_of_memory(self) -> bool:
        """Whether the kernel has killed for memory in this group."""
        if self.memory is None:
            return False
        for name in ("memory.events", "memory.oom_control"):
            with contextlib.suppress(OSError, ValueError):
                for line in (self.memory / name).read_text().splitlines():
                    key, _, value = line.partition(" ")
                    if key == "oom_kill" and int(value) > 0:
                        return True
        return False

    def peak_bytes(self) -> int:
        """Highest memory use, 0 when unknown."""
        if self.memory is not None:
            for name in ("memory.peak", "memory.max_usage_in_bytes"):
                with contextlib.suppress(OSError, ValueError):
                    return int((self.memory / name).read_text())
        return 0

    def anonymous_bytes(self) -> int:
        """Memory that the group holds and that no file gives back, 0 when unknown."""
        if self.memory is not None:
            with contextlib.suppress(OSError, ValueError, IndexError):
                sums = dict(line.split()[:2] for line in (self.memory / "memory.stat").read_text().splitlines())
                # Version 1 counts what is shared and anonymous (shmem) apart from the rest (rss), version 2 under anon.
                return int(sums["rss"]) if "rss" in sums else int(sums.get("anon", "0"))
        return 0

    def cpu_ns(self) -> int:
        """CPU time of all that ever ran in the group, 0 when unknown."""
        for folder in self.folders:
            with contextlib.suppress(OSError, ValueError):
                return int((folder / "cpuacct.usage").read_text())
            with contextlib.suppress(OSError, ValueError, IndexError):
                return int((folder / "cpu.stat").read_text().split("usage_usec", 1)[1].split()[0]) * 1000
        return 0

    def remove(self, patience_s: float = 1.0) -> bool:
        """Remove the empty group; False when it would not go within the patience."""
        deadline = time.monotonic() + patience_s
        left = [folder for folder in self.folders if folder.exists()]
        while left:
            for folder in list(left):
                with contextlib.suppress(OSError):
                    folder.rmdir()
                if not folder.exists():
                    left.remove(folder)
            if left and time.monotonic() > deadline:
                return False
            if left:
                self.kill()
                time.sleep(0.002)
        return True


@dataclass(frozen=True, slots=True)
class CgroupTree:
    """Where groups can be made."""

    version: int
    parents: tuple[tuple[str, Path], ...]
    """Controller (``memory``, ``pids``, ``cpuacct``) and the folder below which it is applied."""

    @property
    def controllers(self) -> tuple[str, ...]:
        """What can be limited here."""
        return tuple(name for name, _ in self.parents)

    def create(self, name: str, *, memory_bytes: int, processes: int) -> Cgroup:
        """Make a group with its limits. Raises OSError."""
        folders: dict[Path, None] = {}
        memory: Path | None = None
        try:
            for controller, parent in self.parents:
                folder = parent / f"{_PREFIX}{os.getpid()}-{name}"
                folder.mkdir(exist_ok=True)
                folders[folder] = None
                if controller == "cpuacct":
                    continue
                if controller == "pids":
                    (folder / "pids.max").write_text(str(processes))
                    continue
                memory = folder
                limit = "memory.max" if self.version == 2 else "memory.limit_in_bytes"
                (folder / limit).write_text(str(memory_bytes))
                self._no_swap(folder, memory_bytes)
        except OSError:
            Cgroup(tuple(folders), None).remove()
            raise
        return Cgroup(tuple(folders), memory)

    def _no_swap(self, folder: Path, memory_bytes: int) -> None:
        # Swap accounting is optional in both versions: without it the memory limit alone holds.
        with contextlib.suppress(OSError):
            if self.version == 2:
                (folder / "memory.swap.max").write_text("0")
                (folder / "memory.oom.group").write_text("1")
            else:
                (folder / "memory.memsw.limit_in_bytes").write_text(str(memory_bytes))

    def sweep(self) -> int:
        """End and remove groups left by launchers that no longer live; returns how many."""
        swept = 0
        for parent in {folder for _, folder in self.parents}:
            for folder in sorted(parent.glob(f"{_PREFIX}*-*")):
                owner = folder.name.removeprefix(_PREFIX).partition("-")[0]
                if owner.isdigit() and not Path(f"/proc/{owner}").exists():
                    group = Cgroup((folder,), None)
                    group.kill()
                    swept += group.remove()
        return swept


def own_paths(cgroup_text: str, mounts_text: str) -> tuple[dict[str, Path], Path | None]:
    """Folders of this process's own groups: by version 1 controller, and the version 2 one.

    ``cgroup_text`` is /proc/self/cgroup, ``mounts_text`` /proc/self/mounts. Paths may not exist.
    """
    mounted: dict[str, Path] = {}
    unified: Path | None = None
    for line in mounts_text.splitlines():
        _, target, kind, options, *_ = [*line.split(), "", "", "", ""]
        if kind == "cgroup2" and unified is None:
            unified = Path(target)
        elif kind == "cgroup":
            for option in options.split(","):
                mounted.setdefault(option, Path(target))
    first: dict[str, Path] = {}
    second: Path | None = None
    for line in cgroup_text.splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if not controllers and unified is not None:
            second = unified / path.lstrip("/")
        for controller in filter(None, controllers.split(",")):
            if controller in mounted:
                first[controller] = mounted[controller] / path.lstrip("/")
                if not first[controller].is_dir():
                    # In a container the path is the host's, while the mount shows only our part.
                    first[controller] = mounted[controller]
    if second is not None and unified is not None and not second.is_dir():
        second = unified
    return first, second


def find_tree() -> CgroupTree | None:
    """The tree in which this process can limit memory and processes, or None."""
    try:
        first, second = own_paths(Path("/proc/self/cgroup").read_text(), Path("/proc/self/mounts").read_text())
    except OSError:
        return None
    if second is not None and _open_unified(second):
        return _proved(CgroupTree(2, (("memory", second), ("pids", second))))
    found = [(name, first[name]) for name in ("memory", "pids", "cpuacct") if name in first]
    usable = [(name, path) for name, path in found if _proved(CgroupTree(1, ((name, path),))) is not None]
    return CgroupTree(1, tuple(usable)) if usable else None


def _proved(tree: CgroupTree) -> CgroupTree | None:
    try:
        group = tree.create("probe", memory_bytes=64 << 20, processes=16)
    except OSError:
        return None
    group.remove()
    return tree


def _open_unified(folder: Path) -> bool:
    """Make memory and pids available to children of a version 2 group; False when that is not ours to do."""
    try:
        offered = (folder / "cgroup.controllers").read_text().split()
        if not {"memory", "pids"} <= set(offered):
            return False
        control = folder / "cgroup.subtree_control"
        if {"memory", "pids"} <= set(control.read_text().split()):
            return True
        try:
            control.write_text("+memory +pids")
        except OSError:
            # A group with processes of its own cannot have limited children: step aside into a leaf.
            # Only the launcher and its agent are moved; a group that others share is left alone.
            ours = {os.getpid(), os.getppid()}
            members = {int(word) for word in (folder / "cgroup.procs").read_text().split()}
            if not members <= ours:
                return False
            leaf = folder / "kfd-main"
            leaf.mkdir(exist_ok=True)
            for pid in members:
                (leaf / "cgroup.procs").write_text(str(pid))
            control.write_text("+memory +pids")
    except (OSError, ValueError):
        return False
    return True
