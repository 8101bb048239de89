"""Bytes in and out, by digest."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from typing import Any, Protocol

from kfd.api import convert
from kfd.api.v1 import blob_pb2, blob_pb2_grpc
from kfd.base.digest import Digest
from kfd.base.failure import BadInput

__all__ = ["BlobService", "Blobs"]

_DIGESTS = 10_000


class Blobs(Protocol):
    """Where the bytes lie (``kfd.blobs.BlobStore``); errors are CallerErrors."""

    async def missing(self, digests: Iterable[Digest]) -> list[Digest]:
        """Which are not here."""
        ...

    async def progress(self, digest: Digest) -> tuple[int, bool]:
        """Bytes of an upload that are here, and whether it is complete."""
        ...

    async def write(self, digest: Digest, offset: int, chunks: AsyncIterator[bytes]) -> tuple[int, bool]:
        """Take in bytes; (bytes kept, complete)."""
        ...

    def read(self, digest: Digest, offset: int = 0) -> AsyncGenerator[bytes, None]:
        """Bytes from an offset on."""
        ...


class BlobService(blob_pb2_grpc.BlobServiceServicer):
    """Translates; the store does the work."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs

    async def FindMissing(  # noqa: N802 - the contract's name
        self, request: blob_pb2.FindMissingRequest, context: Any
    ) -> blob_pb2.FindMissingResponse:
        """Which blobs are not here. Raises BadInput."""
        if len(request.digests) > _DIGESTS:
            raise BadInput(f"{len(request.digests)} digests, more than {_DIGESTS}", mend="Ask in parts.")
        missing = await self._blobs.missing([convert.digest_from_pb(item) for item in request.digests])
        return blob_pb2.FindMissingResponse(missing=[convert.digest_to_pb(item) for item in missing])

    async def QueryWrite(  # noqa: N802
        self, request: blob_pb2.QueryWriteRequest, context: Any
    ) -> blob_pb2.QueryWriteResponse:
        """How far an upload got. Raises BadInput."""
        kept, complete = await self._blobs.progress(convert.digest_from_pb(request.digest))
        return blob_pb2.QueryWriteResponse(committed_bytes=kept, complete=complete)

    async def Write(  # noqa: N802
        self, request_iterator: AsyncIterator[blob_pb2.WriteRequest], context: Any
    ) -> blob_pb2.WriteResponse:
        """Take in a blob, or a part of it. Raises BadInput, WrongState, Exhausted."""
        first = await anext(aiter(request_iterator), None)
        if first is None or first.WhichOneof("part") != "header":
            raise BadInput("an upload begins with its header")
        digest = convert.digest_from_pb(first.header.digest)
        kept, complete = await self._blobs.write(digest, first.header.offset, _data(request_iterator))
        return blob_pb2.WriteResponse(committed_bytes=kept, complete=complete)

    async def Read(  # noqa: N802
        self, request: blob_pb2.ReadRequest, context: Any
    ) -> AsyncIterator[blob_pb2.ReadResponse]:
        """Hand out a blob. Raises BadInput, NotFound."""
        chunks = self._blobs.read(convert.digest_from_pb(request.digest), request.offset)
        async with contextlib.aclosing(chunks):
            async for data in chunks:
                yield blob_pb2.ReadResponse(data=data)


async def _data(requests: AsyncIterator[blob_pb2.WriteRequest]) -> AsyncIterator[bytes]:
    async for request in requests:
        if request.WhichOneof("part") != "data":
            raise BadInput("an upload has one header")
        yield request.data
