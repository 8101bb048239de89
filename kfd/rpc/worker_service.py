"""The agents' door: registration, the standing call of each slot, and leaving."""

from __future__ import annotations

from typing import Any

from kfd.api.v1 import worker_pb2, worker_pb2_grpc
from kfd.base.failure import BadInput
from kfd.base.ids import SessionId
from kfd.core.events import AgentLeft, AgentRegistered, SlotSynced
from kfd.core.fleet.model import FleetPolicy, SyncAnswer
from kfd.core.fleet.model import RegisterAnswer as Answer
from kfd.rpc.port import Reactor
from kfd.rpc.worker_translate import (
    register_answer_to_pb,
    registration_from_pb,
    sync_answer_to_pb,
    sync_from_pb,
)

__all__ = ["WorkerService"]


def _need_deadline(context: Any) -> None:
    """A call without a deadline could be held for ever; a held call ends with its caller's patience."""
    remaining = context.time_remaining()
    # gRPC reports a missing deadline as None or as some centuries, depending on the release.
    if remaining is None or remaining > 24 * 3600:
        raise BadInput("this call has no deadline", mend="Set a deadline of at most a day on each call.")


class WorkerService(worker_pb2_grpc.WorkerServiceServicer):
    """Translates, and hands everything to the reactor, which answers when it is durable."""

    def __init__(self, reactor: Reactor, policy: FleetPolicy | None = None) -> None:
        """``policy`` must be the fleet machine's, since agents are told its times; None: the default one."""
        self._reactor = reactor
        self._policy = policy or FleetPolicy()

    async def Register(  # noqa: N802 - the contract's name
        self, request: worker_pb2.RegisterRequest, context: Any
    ) -> worker_pb2.RegisterResponse:
        """Open a session. Raises BadInput."""
        _need_deadline(context)
        registration = registration_from_pb(request)
        answer: Answer = await self._reactor.call(lambda call: AgentRegistered(call=call, registration=registration))
        return register_answer_to_pb(answer, self._policy)

    async def Sync(  # noqa: N802
        self, request: worker_pb2.SyncRequest, context: Any
    ) -> worker_pb2.SyncResponse:
        """Say what is, wait for what should be. Raises BadInput."""
        _need_deadline(context)
        report = sync_from_pb(request)
        answer: SyncAnswer = await self._reactor.call(lambda call: SlotSynced(call=call, report=report))
        return sync_answer_to_pb(answer)

    async def Leave(  # noqa: N802
        self, request: worker_pb2.LeaveRequest, context: Any
    ) -> worker_pb2.LeaveResponse:
        """End a session in good order."""
        _need_deadline(context)
        session, reason = SessionId(request.session[:128]), request.reason[:200]
        await self._reactor.call(lambda call: AgentLeft(call=call, session=session, reason=reason))
        return worker_pb2.LeaveResponse()
