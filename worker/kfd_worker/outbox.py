"""Finished reports that the daemon has not acknowledged: one file each, on disk before the first send.

A file is the report's message, named after its lease and its own digest, so that damage is seen. Damaged files
are set aside with a line in the log; they never stop the agent.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

import structlog
from google.protobuf.message import DecodeError

from kfd.api import convert, reports
from kfd.api.v1 import worker_pb2
from kfd.base.digest import digest_of
from kfd.base.failure import BadInput
from kfd.base.work import LeaseRef, Report

__all__ = ["Outbox"]

_MOST = 1024
"""Reports kept; beyond that (which takes as many crashes) the oldest are set aside."""


class Outbox:
    """Files in one folder. Calls block for file work and a sync: call them in a thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._aside = folder / "damaged"
        self._log = structlog.get_logger("kfd.outbox")
        for path in (folder, self._aside):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)

    def save(self, lease: LeaseRef, report: Report) -> None:
        """Keep a report; durable when this returns. Raises OSError (a full disk)."""
        data = worker_pb2.FinishedJob(
            lease=convert.lease_to_pb(lease), report=reports.report_to_pb(report)
        ).SerializeToString(deterministic=True)
        path = self._folder / f"{_stem(lease)}.{digest_of(data).hash}"
        temporary = self._folder / f".{path.name}.new"
        try:
            with temporary.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
        self._sync()

    def drop(self, lease: LeaseRef) -> None:
        """The daemon has it."""
        for path in self._folder.glob(f"{_stem(lease)}.*"):
            path.unlink(missing_ok=True)

    def load(self) -> list[tuple[LeaseRef, Report]]:
        """What a past life of this agent left, oldest first."""
        for path in self._folder.glob(".*.new"):
            path.unlink(missing_ok=True)
        files = sorted((path for path in self._folder.iterdir() if path.is_file()), key=_age)
        for path in files[:-_MOST]:
            self._set_aside(path, "too many")
        kept = []
        for path in files[-_MOST:]:
            try:
                kept.append(self._read(path))
            except (BadInput, DecodeError, ValueError) as error:
                self._set_aside(path, str(error))
            except OSError as error:
                if error.errno not in (errno.EIO, errno.EACCES):
                    raise
                self._log.error("outbox.unreadable", file=path.name, reason=str(error))
        return kept

    def _read(self, path: Path) -> tuple[LeaseRef, Report]:
        data = path.read_bytes()
        if digest_of(data).hash != path.name.rpartition(".")[2]:
            raise ValueError("its digest is another")
        message = worker_pb2.FinishedJob.FromString(data)
        return convert.lease_from_pb(message.lease), reports.report_from_pb(message.report)

    def _set_aside(self, path: Path, reason: str) -> None:
        self._log.error("outbox.damaged", file=path.name, reason=reason[:200], moved_to=str(self._aside))
        path.replace(self._aside / path.name)

    def _sync(self) -> None:
        descriptor = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _stem(lease: LeaseRef) -> str:
    return digest_of(str(lease).encode()).hash[:32]


def _age(path: Path) -> tuple[int, str]:
    return path.stat().st_mtime_ns, path.name
