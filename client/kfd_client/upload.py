"""Sending a task's archive to the blob store, resuming where a broken connection left it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import grpc

from kfd.api.v1 import blob_pb2, common_pb2
from kfd.base.digest import Digest, digest_of
from kfd.base.transfer import CHUNK
from kfd_client.exits import Exit, Failure
from kfd_client.session import Session, failure_of, is_lost

__all__ = ["upload"]

_ATTEMPTS = 5
_WRITE_S = 120.0


def upload(session: Session, data: bytes, sleep: Callable[[float], None] = time.sleep) -> Digest:
    """Make sure that the daemon holds ``data``. Raises Failure."""
    digest = digest_of(data)
    name = common_pb2.Digest(hash=digest.hash, size=digest.size)
    for attempt in range(_ATTEMPTS):
        try:
            if _send(session, name, data):
                return digest
        except grpc.RpcError as error:
            if not is_lost(error) or attempt + 1 == _ATTEMPTS:
                raise failure_of(error, session.address, session.timeout_s) from None
        sleep(min(0.2 * 2**attempt, 2.0))
    raise Failure(
        f"the daemon took the upload {_ATTEMPTS} times without completing it",
        code=Exit.FAILED,
        mend="Look into the daemon's log; its disk may be full.",
    )


def _send(session: Session, name: common_pb2.Digest, data: bytes) -> bool:
    """Send what is missing; whether the blob is complete."""
    request = blob_pb2.FindMissingRequest(digests=[name])
    if not session.raw(session.blobs.FindMissing, request, session.timeout_s).missing:
        return True
    state = session.raw(session.blobs.QueryWrite, blob_pb2.QueryWriteRequest(digest=name), session.timeout_s)
    if state.complete:
        return True
    offset = state.committed_bytes if state.committed_bytes <= len(data) else 0

    def parts() -> Iterator[blob_pb2.WriteRequest]:
        yield blob_pb2.WriteRequest(header=blob_pb2.WriteHeader(digest=name, offset=offset))
        for at in range(offset, len(data), CHUNK):
            yield blob_pb2.WriteRequest(data=data[at : at + CHUNK])

    return session.raw(session.blobs.Write, parts(), _WRITE_S).complete
