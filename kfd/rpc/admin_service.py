"""The operator's service: the fleet and taking workers out of it."""

from __future__ import annotations

import time
from typing import Any

from kfd.api.v1 import admin_pb2, admin_pb2_grpc
from kfd.base.failure import BadInput
from kfd.base.ids import WorkerName
from kfd.core.events import WorkerDrained
from kfd.rpc import translate
from kfd.rpc.port import LiveReactor

__all__ = ["AdminService"]


class AdminService(admin_pb2_grpc.AdminServiceServicer):
    """Looks at the fleet; changes go through the reactor."""

    def __init__(self, reactor: LiveReactor) -> None:
        self._reactor = reactor

    async def ListWorkers(  # noqa: N802
        self, request: admin_pb2.ListWorkersRequest, context: Any
    ) -> admin_pb2.ListWorkersResponse:
        """Every worker that is known, with its slots and what they do."""
        now = time.monotonic_ns()
        fleet = self._reactor.engine.fleet
        return translate.workers_to_pb(fleet.workers(now), fleet.queue_view(now))

    async def DrainWorker(  # noqa: N802
        self, request: admin_pb2.DrainWorkerRequest, context: Any
    ) -> admin_pb2.DrainWorkerResponse:
        """Grant a worker nothing more."""
        if not request.reason.strip():
            raise BadInput("a reason is needed", mend="give --reason")
        await self._drain(request.worker, drain=True, reason=request.reason[:500])
        return admin_pb2.DrainWorkerResponse()

    async def UndrainWorker(  # noqa: N802
        self, request: admin_pb2.UndrainWorkerRequest, context: Any
    ) -> admin_pb2.UndrainWorkerResponse:
        """Put a worker back into service."""
        await self._drain(request.worker, drain=False, reason="")
        return admin_pb2.UndrainWorkerResponse()

    async def _drain(self, worker: str, *, drain: bool, reason: str) -> None:
        name = WorkerName(worker)
        await self._reactor.call(lambda call: WorkerDrained(call=call, worker=name, drain=drain, reason=reason))
