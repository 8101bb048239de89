"""Bytes for jobs: a verified cache of bounded size, and transfers that resume where they were cut."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import secrets
import shutil
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import IO

import grpc
import structlog

from kfd.api import convert
from kfd.api.v1 import blob_pb2, blob_pb2_grpc
from kfd.base.digest import Digest
from kfd.base.transfer import CHUNK
from kfd_worker.transport import CallFailed, Token, failure_of

__all__ = ["BlobCache", "BlobClient", "BlobMissing"]

_MOST_BYTES = 10 << 30
_CALL_SECONDS = 20.0
_SLOWEST_BYTES_PER_SECOND = 256 << 10


class BlobMissing(Exception):
    """The daemon does not have a blob, or what it has is not what its name says."""

    def __init__(self, digest: Digest, text: str) -> None:
        super().__init__(text)
        self.digest = digest


class BlobClient:
    """The blob service's calls. Failures are CallFailed, with partial progress kept on both sides."""

    def __init__(self, channel: grpc.aio.Channel, token: Token) -> None:
        self._stub = blob_pb2_grpc.BlobServiceStub(channel)
        self._token = token

    async def upload(self, digest: Digest, path: Path) -> None:
        """Send a file unless the daemon has it. Raises CallFailed."""
        name = convert.digest_to_pb(digest)
        try:
            found = await self._stub.FindMissing(
                blob_pb2.FindMissingRequest(digests=[name]), timeout=_CALL_SECONDS, metadata=self._token.metadata
            )
            if not found.missing:
                return
            state = await self._stub.QueryWrite(
                blob_pb2.QueryWriteRequest(digest=name), timeout=_CALL_SECONDS, metadata=self._token.metadata
            )
            if state.complete:
                return
            call = self._stub.Write(
                _parts(name, path, state.committed_bytes),
                timeout=_seconds_for(digest.size),
                metadata=self._token.metadata,
            )
            done = await call
        except grpc.aio.AioRpcError as error:
            raise failure_of(error) from None
        if not done.complete:
            raise CallFailed("the upload was cut short", code="CUT", down=False, refused=False)

    async def download(self, digest: Digest, file: IO[bytes], offset: int) -> None:
        """Append a blob from ``offset`` on to a file. Raises CallFailed, BlobMissing."""
        request = blob_pb2.ReadRequest(digest=convert.digest_to_pb(digest), offset=offset)
        call = self._stub.Read(request, timeout=_seconds_for(digest.size), metadata=self._token.metadata)
        received = offset
        try:
            async for response in call:
                received += len(response.data)
                if received > digest.size:
                    raise BlobMissing(digest, "the daemon sends more than the blob's name says")
                await asyncio.to_thread(file.write, response.data)
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.NOT_FOUND:
                raise BlobMissing(digest, "the daemon does not have it") from None
            raise failure_of(error) from None
        finally:
            call.cancel()


async def _parts(name: object, path: Path, offset: int) -> AsyncIterator[blob_pb2.WriteRequest]:
    yield blob_pb2.WriteRequest(header=blob_pb2.WriteHeader(digest=name, offset=offset))  # type: ignore[arg-type]
    with path.open("rb") as file:
        file.seek(offset)
        while data := await asyncio.to_thread(file.read, CHUNK):
            yield blob_pb2.WriteRequest(data=data)


def _seconds_for(size: int) -> float:
    return _CALL_SECONDS + size / _SLOWEST_BYTES_PER_SECOND


class BlobCache:
    """Files by digest, least recently used out first. Survives restarts; each file is verified before its first
    use after a start. Files in use are never thrown out."""

    def __init__(self, folder: Path, max_bytes: int = _MOST_BYTES) -> None:
        self._folder = folder
        self._partial = folder / "partial"
        self._max = max_bytes
        self._files: OrderedDict[str, int] = OrderedDict()
        """Hash to size, least recently used first."""
        self._verified: set[str] = set()
        self._pins: Counter[str] = Counter()
        self._locks: dict[str, asyncio.Lock] = {}
        self._users: Counter[str] = Counter()
        """Fetches under way, by hash: they share a lock, and the download."""
        self._log = structlog.get_logger("kfd.cache")
        for path in (folder, self._partial):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in self._partial.iterdir():
            path.unlink(missing_ok=True)
        found = [path for path in folder.iterdir() if path.is_file()]
        for path in sorted(found, key=lambda path: path.stat().st_mtime_ns):
            self._files[path.name] = path.stat().st_size
        self._shrink()

    def path(self, digest: Digest) -> Path:
        """Where a blob's file is, or would be."""
        return self._folder / digest.hash

    @contextlib.contextmanager
    def pinned(self, digests: list[Digest]) -> Iterator[None]:
        """Keep these files while the block runs."""
        names = [digest.hash for digest in digests]
        self._pins.update(names)
        try:
            yield
        finally:
            self._pins.subtract(names)
            self._pins += Counter()
            self._shrink()

    async def fetch(self, digest: Digest, client: BlobClient) -> Path:
        """The verified file of a blob, downloaded if need be. Raises CallFailed, BlobMissing, OSError."""
        lock = self._locks.setdefault(digest.hash, asyncio.Lock())
        self._users[digest.hash] += 1
        try:
            async with lock:
                if not await self._have(digest):
                    await self._download(digest, client)
                return self.path(digest)
        finally:
            self._users[digest.hash] -= 1
            if not self._users[digest.hash]:
                del self._users[digest.hash], self._locks[digest.hash]

    async def add(self, digest: Digest, source: Path) -> None:
        """Keep a copy of a file whose digest is known, such as an artifact that was built here. Raises OSError."""
        if digest.hash in self._files:
            return
        temporary = self._partial / f"{digest.hash}.{secrets.token_hex(4)}"
        try:
            await asyncio.to_thread(shutil.copyfile, source, temporary)
            await asyncio.to_thread(temporary.replace, self.path(digest))
        finally:
            temporary.unlink(missing_ok=True)
        self._enter(digest)

    async def _have(self, digest: Digest) -> bool:
        if digest.hash not in self._files:
            return False
        if digest.hash not in self._verified:
            if not await asyncio.to_thread(_matches, self.path(digest), digest):
                self._log.warning("cache.damaged", digest=digest.short)
                self._forget(digest.hash)
                return False
            self._verified.add(digest.hash)
        self._files.move_to_end(digest.hash)
        with contextlib.suppress(FileNotFoundError):
            os.utime(self.path(digest))
            return True
        self._forget(digest.hash)
        return False

    async def _download(self, digest: Digest, client: BlobClient) -> None:
        temporary = self._partial / digest.hash
        with temporary.open("ab") as file:
            try:
                await client.download(digest, file, file.tell())
            except BlobMissing:
                temporary.unlink(missing_ok=True)
                raise
        if not await asyncio.to_thread(_matches, temporary, digest):
            temporary.unlink(missing_ok=True)
            raise BlobMissing(digest, "the daemon's bytes are not what the blob's name says")
        temporary.replace(self.path(digest))
        self._enter(digest)

    def _enter(self, digest: Digest) -> None:
        self._files[digest.hash] = digest.size
        self._files.move_to_end(digest.hash)
        self._verified.add(digest.hash)
        self._shrink()

    def _forget(self, name: str) -> None:
        self._files.pop(name, None)
        self._verified.discard(name)
        (self._folder / name).unlink(missing_ok=True)

    def _shrink(self) -> None:
        total = sum(self._files.values())
        for name in list(self._files):
            if total <= self._max:
                return
            if self._pins[name] <= 0:
                total -= self._files[name]
                self._forget(name)


def _matches(path: Path, digest: Digest) -> bool:
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size != digest.size:
                return False
            return hashlib.file_digest(file, "sha256").hexdigest() == digest.hash
    except FileNotFoundError:
        return False
