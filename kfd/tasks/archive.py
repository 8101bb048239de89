"""The canonical archive of a task: what ``pack`` makes of a folder, tar or zip, and what every digest names.

A canonical archive is a ustar with sorted names, no folders, zeroed owners and times and modes 0644 or 0755,
so equal tasks have equal digests on every machine. Nothing is unpacked before all names, kinds and sizes
have been checked.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from kfd.base.failure import BadInput
from kfd.tasks import tar, zips
from kfd.tasks.names import check_name, clashes, left_out
from kfd.tasks.tar import Entry

__all__ = ["LIMITS", "ArchiveLimits", "pack", "read", "unpack"]

_SUFFIXES = "a folder, .tar, .tar.gz, .tgz or .zip"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveLimits:
    """Bounds of a task package, held before anything is unpacked."""

    files: int = 1000
    total_bytes: int = 32 << 20
    """Sum of all files, unpacked."""
    packed_bytes: int = 34 << 20
    """Bytes of the archive itself, as it lies on disk."""


LIMITS = ArchiveLimits()


def pack(path: str | os.PathLike[str], limits: ArchiveLimits = LIMITS) -> bytes:
    """Canonical archive of a task at ``path``. Raises BadInput."""
    place = Path(path)
    try:
        if place.is_dir():
            return _canonical(_from_folder(place, limits), limits)
        if not place.exists():
            raise BadInput(f"there is no task at {path}", mend=f"Give the path of {_SUFFIXES}.")
        if not place.is_file():
            raise BadInput(f"{path} is not a regular file", mend=f"Give the path of {_SUFFIXES}.")
        with place.open("rb") as file:
            data = file.read(limits.packed_bytes + 1)
    except OSError as error:
        raise BadInput(
            f"cannot read {error.filename or path}: {error.strerror}",
            mend="Check the path and its permissions.",
        ) from None
    if len(data) > limits.packed_bytes:
        raise BadInput(
            f"{place.name} is larger than {limits.packed_bytes} bytes", mend="Leave data out of the package."
        )
    return _canonical(_strip_top(_from_file(place.name, data, limits)), limits)


def read(archive: bytes, limits: ArchiveLimits = LIMITS) -> dict[str, Entry]:
    """Entries of a canonical archive, by name. Raises BadInput for anything that ``pack`` would not have
    made."""
    entries = list(tar.read(archive, limits.files, limits.total_bytes))
    if tar.write(_checked(entries, limits)) != archive:
        raise BadInput(
            "the task archive is not in canonical form",
            mend="Pack it with kfd-client, or with kfd.tasks.pack.",
        )
    return {entry.name: entry for entry in entries}


def unpack(archive: bytes, folder: str | os.PathLike[str], limits: ArchiveLimits = LIMITS) -> None:
    """Write a canonical archive's files below ``folder``, which is made when missing and must be empty.

    Raises BadInput for a bad archive or a folder that is not empty, OSError when the disk refuses.
    """
    entries = read(archive, limits)
    root = Path(folder)
    root.mkdir(parents=True, exist_ok=True)
    if any(root.iterdir()):
        raise BadInput(f"{root} is not empty", mend="Unpack a task into an empty folder.")
    for name, entry in entries.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
        mode = 0o755 if entry.executable else 0o644
        with open(os.open(place, flags, mode), "wb") as file:
            file.write(entry.data)


def _canonical(entries: list[Entry], limits: ArchiveLimits) -> bytes:
    kept = [entry for entry in entries if not left_out(entry.name)]
    return tar.write(_checked(kept, limits))


def _checked(entries: list[Entry], limits: ArchiveLimits) -> list[Entry]:
    if not entries:
        raise BadInput("the package holds no files", mend="Put config.yaml, task.py and the kernel into it.")
    if len(entries) > limits.files:
        raise BadInput(f"more than {limits.files} files", mend="Leave data and build results out of the package.")
    if sum(len(entry.data) for entry in entries) > limits.total_bytes:
        raise BadInput(f"more than {limits.total_bytes} bytes unpacked", mend="Leave data out of the package.")
    for entry in entries:
        check_name(entry.name)
    clash = clashes(entry.name for entry in entries)
    if clash:
        raise BadInput(clash, file=entries[0].name if len(entries) == 1 else "", mend="Rename one of them.")
    return entries


def _from_file(name: str, data: bytes, limits: ArchiveLimits) -> list[Entry]:
    if data[:2] == b"PK":
        return zips.read(data, limits.files, limits.total_bytes)
    if data[:2] == b"\x1f\x8b":
        # Twice the payload leaves room for headers and padding of many small files, and bounds a bomb.
        data = tar.gunzip(data, limits.total_bytes * 2)
    if not tar.looks_like(data):
        raise BadInput(f"{name} is not a task package", mend=f"Give {_SUFFIXES}.")
    return [entry for entry in tar.read(data, limits.files * 2, limits.total_bytes) if not left_out(entry.name)]


def _strip_top(entries: list[Entry]) -> list[Entry]:
    """Entries without the one folder that holds everything, as most archivers make it."""
    kept = [entry for entry in entries if not left_out(entry.name)]
    tops = {entry.name.partition("/")[0] for entry in kept}
    if len(tops) != 1 or any("/" not in entry.name for entry in kept):
        return kept
    return [Entry(entry.name.partition("/")[2], entry.data, entry.executable) for entry in kept]


def _from_folder(root: Path, limits: ArchiveLimits) -> list[Entry]:
    entries: list[Entry] = []
    budget = limits.total_bytes
    for name, path, info in _walk(root):
        if not stat.S_ISREG(info.st_mode):
            kind = "a symbolic link" if stat.S_ISLNK(info.st_mode) else "not a regular file"
            raise BadInput(f"{name} is {kind}", file=name, mend="Replace it by a plain file or take it away.")
        check_name(name)
        if info.st_size > budget or len(entries) >= limits.files:
            raise BadInput(
                f"the folder holds more than {limits.files} files or {limits.total_bytes} bytes",
                file=name,
                mend="Leave data and build results out of the task's folder.",
            )
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)), "rb") as file:
            data = file.read(budget + 1)
        budget -= len(data)
        entries.append(Entry(name, data, bool(info.st_mode & 0o111)))
    return entries


def _walk(root: Path) -> Iterable[tuple[str, str, os.stat_result]]:
    """Files below root in no order, without what is left out; a folder's links are not followed."""
    stack = [("", str(root))]
    while stack:
        prefix, folder = stack.pop()
        with os.scandir(folder) as listing:
            for item in listing:
                name = f"{prefix}{item.name}"
                if left_out(name):
                    continue
                if item.is_dir(follow_symlinks=False):
                    check_name(name)
                    stack.append((f"{name}/", item.path))
                else:
                    yield name, item.path, item.stat(follow_symlinks=False)


def texts_of(entries: Mapping[str, Entry]) -> dict[str, bytes]:
    """Only the bytes, by name."""
    return {name: entry.data for name, entry in entries.items()}


def suffix_of(name: str) -> str:
    """Lower-case suffix of a file name, with its dot."""
    return PurePosixPath(name).suffix.lower()
