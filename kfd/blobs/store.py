"""Blobs as files named by their digest. A blob that is there is whole: it was complete, verified and on disk
before it got its name. File work happens in a few threads of the store's own, never on the loop.
"""

from __future__ import annotations

import asyncio
import errno
import functools
import hashlib
import io
import itertools
import os
import shutil
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any, TypeVar

import structlog

from kfd.base.digest import Digest, digest_of
from kfd.base.failure import BadInput, Exhausted, NotFound, WrongState
from kfd.base.transfer import CHUNK, MAX_BLOB

__all__ = ["BlobStore"]

_T = TypeVar("_T")

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_STALE_SECONDS = 3600.0
_STALL_SECONDS = 60.0
_TRANSFERS = 64


class BlobStore:
    """Files under ``folder``. Safe for any number of tasks of one loop; one process per folder."""

    def __init__(self, folder: Path, *, floor_bytes: int = 256 << 20, max_blob: int = MAX_BLOB) -> None:
        """``floor_bytes`` of the disk stay free. Creates the folder and sweeps what a crash left in it."""
        self._folder = folder
        self._partial = folder / "partial"
        self._aside = folder / "damaged"
        self._floor = floor_bytes
        self._max = max_blob
        self._writing: set[str] = set()
        self._ordinals = itertools.count(1)
        self._transfers = asyncio.Semaphore(_TRANSFERS)
        self._threads = ThreadPoolExecutor(4, thread_name_prefix="kfd-blobs")
        self._log = structlog.get_logger("kfd.blobs")
        for path in (folder, self._partial, self._aside):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.sweep(0.0)

    # ---- whole blobs ----------------------------------------------------------------------------------

    def path(self, digest: Digest) -> Path:
        """Where a blob's file is, or would be."""
        return self._folder / digest.hash[:2] / digest.hash

    async def has(self, digest: Digest) -> bool:
        """Whether a blob is here. Finding it extends its life."""
        return not await self.missing([digest])

    async def missing(self, digests: Iterable[Digest]) -> list[Digest]:
        """Which blobs are not here, in order. Finding the others extends their life."""
        wanted = list(digests)
        return await self._work(lambda: [digest for digest in wanted if not self._touch(digest)])

    async def put(self, data: bytes) -> Digest:
        """Keep bytes; durable when this returns. Raises BadInput (too large) and Exhausted (no space)."""
        return await self._work(self._put, data)

    async def get(self, digest: Digest) -> bytes:
        """The verified bytes of a blob. Raises NotFound, also for a damaged file, which is set aside."""
        return await self._work(self._get, digest)

    async def delete(self, digest: Digest) -> bool:
        """Remove a blob; whether it was here."""
        return await self._work(self._delete, digest)

    async def close(self) -> None:
        """Wait for file work under way and end the threads."""
        await asyncio.to_thread(self._threads.shutdown)

    # ---- transfers ------------------------------------------------------------------------------------

    async def progress(self, digest: Digest) -> tuple[int, bool]:
        """How far an upload got: (bytes, complete)."""
        return await self._work(self._progress, digest)

    async def write(self, digest: Digest, offset: int, chunks: AsyncIterator[bytes]) -> tuple[int, bool]:
        """Take in bytes from ``offset`` on, which must not lie beyond what ``progress`` says.

        Returns (bytes kept, complete). When the chunks end early, what came is kept for a later call. Raises
        BadInput (too large, too many bytes, another digest), WrongState (a gap) and Exhausted (no space).
        """
        if digest.size > self._max:
            raise BadInput(f"a blob of {digest.size} bytes is larger than the limit of {self._max}", mend="Send less.")
        async with self._transfers:
            kept, complete = await self._work(self._progress, digest)
            if complete:
                return kept, True
            # A second writer of the same blob gets a file of its own, so that the two cannot mix.
            shared = digest.hash not in self._writing
            path = self._partial / (digest.hash if shared else self._unshared(digest))
            if shared:
                self._writing.add(digest.hash)
            try:
                return await self._receive(digest, offset if shared else 0, offset, path, chunks)
            finally:
                if shared:
                    self._writing.discard(digest.hash)
                else:
                    await self._work(path.unlink, True)

    async def read(self, digest: Digest, offset: int = 0) -> AsyncGenerator[bytes, None]:
        """Bytes of a blob from ``offset`` on, in chunks; the reader verifies. Raises NotFound, BadInput."""
        if not await self._work(self._here, digest):
            raise self._not_found(digest)
        if not 0 <= offset <= digest.size:
            raise BadInput(f"offset {offset} lies outside of a blob of {digest.size} bytes")
        async with self._transfers:
            # Opened afresh for each chunk: a reader that goes away in the middle leaves nothing open.
            while offset < digest.size:
                data = await self._work(self._read, digest, offset)
                yield data
                offset += len(data)

    def sweep(self, older_seconds: float = _STALE_SECONDS) -> int:
        """Remove unfinished uploads that nobody wrote to for a while; how many. Blocks for file work."""
        now, swept = time.time(), 0
        for path in self._partial.iterdir():
            if path.name not in self._writing and now - path.stat().st_mtime >= older_seconds:
                path.unlink(missing_ok=True)
                swept += 1
        return swept

    # ---- on the loop ----------------------------------------------------------------------------------

    async def _receive(
        self, digest: Digest, offset: int, asked: int, path: Path, chunks: AsyncIterator[bytes]
    ) -> tuple[int, bool]:
        if offset != asked:
            raise WrongState("someone else is uploading this blob", mend="Ask for its progress and try again.")
        file = await self._work(self._resume, digest, path, offset)
        kept = offset
        try:
            while (data := await self._next(chunks)) is not None:
                kept += len(data)
                if kept > digest.size:
                    break
                await self._work(file.write, data)
        finally:
            await self._work(file.close)
        if kept < digest.size:
            return kept, False
        if kept > digest.size:
            await self._work(path.unlink, True)
            raise BadInput(f"more bytes came than the {digest.size} that the blob's name says")
        await self._work(self._commit, digest, path)
        return kept, True

    @staticmethod
    async def _next(chunks: AsyncIterator[bytes]) -> bytes | None:
        """The next chunk; None at the end. A peer that sends nothing for a while is not waited for."""
        try:
            async with asyncio.timeout(_STALL_SECONDS):
                return await anext(chunks, None)
        except TimeoutError:
            raise WrongState(
                f"no data came for {_STALL_SECONDS:.0f} s", mend="Ask for the upload's progress and go on."
            ) from None

    async def _work(self, function: Callable[..., _T], *args: Any) -> _T:
        """Run file work in a thread, and wait for it even when the task is cancelled: a file must not be closed
        under a thread that writes to it."""
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self._threads, functools.partial(function, *args))
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            await asyncio.wait([future])
            if future.done() and not future.cancelled() and future.exception() is None:
                result = future.result()
                if isinstance(result, io.IOBase):
                    result.close()
            raise
        except OSError as error:
            if error.errno in _FULL:
                raise self._full() from error
            raise

    def _full(self) -> Exhausted:
        return Exhausted("the daemon's disk is full", mend="Free space on the daemon's disk, then try again.")

    def _unshared(self, digest: Digest) -> str:
        return f"{digest.hash}.{next(self._ordinals)}"

    # ---- in threads -----------------------------------------------------------------------------------

    def _here(self, digest: Digest) -> bool:
        try:
            return self.path(digest).stat().st_size == digest.size
        except FileNotFoundError:
            return False

    def _touch(self, digest: Digest) -> bool:
        if not self._here(digest):
            return False
        try:
            os.utime(self.path(digest))
        except FileNotFoundError:
            return False
        return True

    def _room_for(self, size: int) -> None:
        if shutil.disk_usage(self._folder).free < self._floor + size:
            raise self._full()

    def _put(self, data: bytes) -> Digest:
        if len(data) > self._max:
            raise BadInput(f"a blob of {len(data)} bytes is larger than the limit of {self._max}")
        digest = digest_of(data)
        if self._touch(digest):
            return digest
        self._room_for(len(data))
        path = self._partial / self._unshared(digest)
        try:
            with path.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            self._name(digest, path)
        finally:
            path.unlink(missing_ok=True)
        return digest

    def _get(self, digest: Digest) -> bytes:
        try:
            data = self.path(digest).read_bytes()
        except FileNotFoundError:
            raise self._not_found(digest) from None
        if digest_of(data) != digest:
            self._set_aside(digest)
            raise self._not_found(digest)
        return data

    def _delete(self, digest: Digest) -> bool:
        try:
            self.path(digest).unlink()
        except FileNotFoundError:
            return False
        return True

    def _read(self, digest: Digest, offset: int) -> bytes:
        try:
            with self.path(digest).open("rb") as file:
                file.seek(offset)
                data = file.read(CHUNK)
        except FileNotFoundError:
            raise self._not_found(digest) from None
        if not data:
            raise self._not_found(digest)
        return data

    def _progress(self, digest: Digest) -> tuple[int, bool]:
        if self._touch(digest):
            return digest.size, True
        try:
            return min((self._partial / digest.hash).stat().st_size, digest.size), False
        except FileNotFoundError:
            return 0, False

    def _resume(self, digest: Digest, path: Path, offset: int) -> IO[bytes]:
        self._room_for(digest.size - offset)
        file = path.open("r+b" if path.exists() else "w+b", buffering=0)
        try:
            size = file.seek(0, os.SEEK_END)
            if offset > size:
                raise WrongState(
                    f"{size} bytes of this blob are here, not {offset}",
                    mend="Ask for its progress and try again.",
                )
            file.truncate(offset)
            file.seek(offset)
        except BaseException:
            file.close()
            raise
        return file

    def _commit(self, digest: Digest, path: Path) -> None:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
            if found == digest.hash:
                os.fsync(file.fileno())
        if found != digest.hash:
            path.unlink(missing_ok=True)
            raise BadInput("the bytes that came have another digest", mend="Send the blob again from its start.")
        self._name(digest, path)

    def _name(self, digest: Digest, path: Path) -> None:
        """Give a complete, synced file its name, durably."""
        target = self.path(digest)
        if not target.parent.is_dir():
            target.parent.mkdir(mode=0o700, exist_ok=True)
            _sync_folder(self._folder)
        path.replace(target)
        _sync_folder(target.parent)

    def _set_aside(self, digest: Digest) -> None:
        self._log.error("blob.damaged", digest=str(digest), note="moved aside; it will be asked for again")
        self.path(digest).replace(self._aside / digest.hash)

    @staticmethod
    def _not_found(digest: Digest) -> NotFound:
        return NotFound(f"no blob {digest.short} of {digest.size} bytes is here", mend="Upload it first.")


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
