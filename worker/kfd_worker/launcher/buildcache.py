"""Finished builds by the digest of everything that can change their answer. A hit costs no compiler.

Kept are successes and compile errors that the compiler explained. Never kept is what depends on the moment: a
time-out, a limit, a compiler that died, an incident. An entry is one file: a line of JSON with its own checksum,
then the artifact, checked against its digest before it is used; what is damaged is removed and built again. The
folder is bounded in bytes and entries; the longest unused go first. Its only writer is one launcher.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

from kfd.base.codec import decode, encode
from kfd.base.digest import Digest, digest_of
from kfd.base.work import BuildResult, BuildSpec, Limits, Report, Verdict, VerdictCode, build_key

__all__ = ["BuildCache", "cacheable", "key_of"]

_FORMAT = "kfd-build-2"
_MAX_BYTES = 512 << 20
_MAX_ENTRIES = 4096
_MAX_HEAD = 4 << 20


def key_of(spec: BuildSpec, limits: Limits, fingerprint: Digest, backend: str) -> Digest:
    """What an entry is found by. All limits count: a build that fits in 2 GiB may not fit in one."""
    salt = [_FORMAT, backend, limits.memory_bytes, limits.processes, limits.output_bytes, limits.artifact_bytes]
    return build_key(spec, limits, fingerprint, json.dumps(salt))


def cacheable(report: Report) -> bool:
    """Whether the same build would end the same way at any time."""
    outcome, detail = report.outcome, report.detail
    if not isinstance(outcome, Verdict) or not isinstance(detail, BuildResult):
        return False
    if outcome.code is VerdictCode.OK:
        return detail.artifact is not None
    # A compiler that ends without a word about the source may have been killed.
    explained = any("error" in one.severity for one in detail.diagnostics)
    return outcome.code is VerdictCode.COMPILE_ERROR and explained


@dataclass(slots=True)
class _Entry:
    bytes: int


class BuildCache:
    """A folder of entries. A disk that is full or broken makes it useless, never wrong."""

    def __init__(self, folder: Path, *, max_bytes: int = _MAX_BYTES, max_entries: int = _MAX_ENTRIES) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._max_entries = max_entries
        # In order of use, the longest unused first; times of files order what an earlier launcher left.
        self._entries: dict[str, _Entry] = {}
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._read_folder()

    def _read_folder(self) -> None:
        seen = []
        for path in self._folder.iterdir():
            if path.suffix != ".build":
                path.unlink(missing_ok=True)
                continue
            status = path.stat()
            seen.append((status.st_mtime_ns, path.stem, status.st_size))
        for _, name, size in sorted(seen):
            self._entries[name] = _Entry(size)
        self._shrink(0)

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.build"

    def get(self, key: Digest) -> tuple[Report, bytes] | None:
        """The report and the artifact (empty for a compile error) of a build; None when it must be made."""
        if key.hash not in self._entries:
            return None
        try:
            found = self._read(key.hash)
        except (OSError, ValueError, KeyError, TypeError):
            self._drop(key.hash)
            return None
        self._entries[key.hash] = self._entries.pop(key.hash)
        with contextlib.suppress(OSError):
            os.utime(self._path(key.hash))
        return found

    def _read(self, name: str) -> tuple[Report, bytes]:
        """Raises OSError, ValueError, KeyError, TypeError for what is not there or not whole."""
        with open(self._path(name), "rb") as file:
            checksum = file.readline(66).strip().decode("ascii")
            head = file.readline(_MAX_HEAD)
            artifact = file.read(self._max_bytes + 1)
        # The name is in the sum: an entry under another's name is not whole.
        if _checksum(name, head) != checksum:
            raise ValueError("a damaged entry")
        report = decode(Report, json.loads(head))
        detail = report.detail
        if not cacheable(report) or not isinstance(detail, BuildResult):
            raise ValueError("an entry that should not be here")
        if detail.artifact is not None and digest_of(artifact) != detail.artifact:
            raise ValueError("a damaged artifact")
        facts = (*detail.facts, ("build_cache", "hit"))
        return dataclasses.replace(report, detail=dataclasses.replace(detail, facts=facts)), artifact

    def put(self, key: Digest, report: Report, artifact: bytes) -> None:
        """Keep a build, if it is one to keep."""
        if not cacheable(report):
            return
        head = json.dumps(encode(report)).encode() + b"\n"
        data = _checksum(key.hash, head).encode("ascii") + b"\n" + head + artifact
        if len(data) > self._max_bytes // 4 or len(head) >= _MAX_HEAD:
            return
        fresh = self._folder / f"{key.hash}.new"
        with contextlib.suppress(OSError):
            self._shrink(len(data))
            try:
                fresh.write_bytes(data)
                os.replace(fresh, self._path(key.hash))
            except OSError:
                fresh.unlink(missing_ok=True)
                raise
            self._entries.pop(key.hash, None)
            self._entries[key.hash] = _Entry(len(data))

    def _shrink(self, coming: int) -> None:
        room = self._max_bytes - coming
        while self._entries and (
            len(self._entries) >= self._max_entries or sum(one.bytes for one in self._entries.values()) > room
        ):
            self._drop(next(iter(self._entries)))

    def _drop(self, name: str) -> None:
        self._entries.pop(name, None)
        with contextlib.suppress(OSError):
            self._path(name).unlink(missing_ok=True)


def _checksum(name: str, head: bytes) -> str:
    return hashlib.sha256(name.encode() + b"\0" + head).hexdigest()
