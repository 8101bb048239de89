"""The agent's end of the wire: channels, calls, and what a failed call means."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from kfd.api import convert, reports
from kfd.api.v1 import common_pb2, worker_pb2, worker_pb2_grpc
from kfd.base.failure import BadInput, CallerError
from kfd.base.instant import SECOND, Span
from kfd.base.version import PROTOCOL_MAX, PROTOCOL_MIN, VERSION
from kfd.base.work import LeaseRef, Report, SlotKind
from kfd_worker.core.session import RegisterAnswer, RegisterStatus
from kfd_worker.core.values import Answer, Idle, Policy, Running, SendSync, Start, Status, Stop
from kfd_worker.launcher.config import LauncherFacts

__all__ = ["CallFailed", "SlotFacts", "Token", "Transport", "check_address", "open_channel"]

MAX_MESSAGE = 4 << 20
_OUTBOX_BYTES = 2 << 20
_CALL_SECONDS = 20.0

_OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.keepalive_time_ms", 8_000),
    ("grpc.keepalive_timeout_ms", 4_000),
    ("grpc.http2.ping_timeout_ms", 4_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.max_receive_message_length", MAX_MESSAGE),
    ("grpc.max_send_message_length", MAX_MESSAGE),
    # The agent backs off by itself, with jitter; the channel must be ready to try when it does.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1_000),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    ("grpc.enable_retries", 0),
)

# What the C core says when there is no process at the other end, as opposed to no word from it.
_DOWN = re.compile(r"connection refused|connection reset|socket closed|broken pipe|no such file", re.IGNORECASE)

_REGISTERED = {
    worker_pb2.REGISTER_STATUS_OK: RegisterStatus.OK,
    worker_pb2.REGISTER_STATUS_NAME_IN_USE: RegisterStatus.NAME_IN_USE,
    worker_pb2.REGISTER_STATUS_WRONG_PROTOCOL: RegisterStatus.WRONG_PROTOCOL,
}
_SYNCED = {
    worker_pb2.SYNC_STATUS_OK: Status.OK,
    worker_pb2.SYNC_STATUS_SUPERSEDED: Status.SUPERSEDED,
    worker_pb2.SYNC_STATUS_REREGISTER: Status.REREGISTER,
}


class CallFailed(Exception):
    """A call was not answered. ``down``: there is no process at the other end; ``refused``: it was answered with a
    refusal that trying again does not mend by itself."""

    def __init__(self, text: str, *, code: str, down: bool, refused: bool) -> None:
        super().__init__(text)
        self.code = code
        self.down = down
        self.refused = refused


def failure_of(error: grpc.aio.AioRpcError) -> CallFailed:
    """What a failed call means."""
    code, details = error.code(), error.details() or ""
    down = code is grpc.StatusCode.UNAVAILABLE and _DOWN.search(details) is not None
    refused = code in (
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.UNIMPLEMENTED,
        grpc.StatusCode.FAILED_PRECONDITION,
    )
    trailing: Iterable[Any] = error.trailing_metadata() or ()
    mend = next((value for key, value in trailing if key == "kfd-mend" and isinstance(value, str)), "")
    text = f"{code.name}: {details}"[:500] + (f" ({mend[:300]})" if mend else "")
    return CallFailed(text, code=code.name, down=down, refused=refused)


def check_address(address: str) -> None:
    """Refuse addresses that would send the token over a network in clear. Raises BadInput."""
    if address.startswith("unix:"):
        return
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdigit() or not 0 < int(port) < 65536:
        raise BadInput(f"not an address: {address!r}", mend="Give HOST:PORT, as the daemon printed it.")
    bare = host.strip("[]")
    try:
        loopback = ipaddress.ip_address(bare).is_loopback
    except ValueError:
        loopback = bare == "localhost"
    if not loopback:
        raise BadInput(
            f"{host} is another machine, and this version sends its token in clear",
            mend="Bring the daemon's port here with `ssh -L`, and give --daemon 127.0.0.1:PORT.",
        )


def open_channel(address: str, *, own_connection: bool = False) -> grpc.aio.Channel:
    """A channel to the daemon; ``own_connection`` for bulk data, which must not delay the slots' calls."""
    options = [*_OPTIONS, ("grpc.use_local_subchannel_pool", int(own_connection))]
    return grpc.aio.insecure_channel(address, options=options)


class Token:
    """The bearer token, read again for each registration: the daemon may have written it since."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._metadata: tuple[tuple[str, str], ...] = ()

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """Metadata for a call."""
        return self._metadata

    def read(self) -> None:
        """Read the file. Raises CallerError when that cannot be done."""
        if self._path is None:
            return
        try:
            text = self._path.read_text("ascii").strip()
        except (OSError, ValueError) as error:
            raise CallerError(
                f"the token file cannot be read: {error}", mend="Give --token-file STATE_DIR/token of the daemon."
            ) from error
        if not text.isprintable() or not text:
            raise CallerError("the token file holds no token", mend="Give the file that the daemon wrote.")
        self._metadata = (("authorization", f"Bearer {text}"),)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotFacts:
    """A slot to be registered."""

    name: str
    kind: SlotKind
    device: str = ""
    device_name: str = ""
    device_facts: tuple[tuple[str, str], ...] = ()
    cores: int = 1
    memory_bytes: int = 0
    targets: tuple[str, ...] = ()
    """What the device runs, whoever built it."""


class Transport:
    """The worker service's calls in the agent's own words. Every call has a deadline; failures are CallFailed."""

    def __init__(self, channel: grpc.aio.Channel, token: Token, worker: str, nonce: bytes, machine_id: str) -> None:
        self._stub = worker_pb2_grpc.WorkerServiceStub(channel)
        self._token = token
        self._worker = worker
        self._nonce = nonce
        self._machine_id = machine_id
        self._session = ""
        self._boot = b""

    async def register(
        self,
        facts: LauncherFacts,
        slots: Sequence[SlotFacts],
        host: Iterable[tuple[str, str]],
        outbox: Sequence[tuple[LeaseRef, Report]],
    ) -> RegisterAnswer:
        """Register. As much of the outbox as fits into one message goes along. Raises CallFailed, CallerError."""
        self._token.read()
        request = worker_pb2.RegisterRequest(
            worker=self._worker,
            boot_nonce=self._nonce,
            machine_id=self._machine_id,
            protocol=worker_pb2.ProtocolRange(min=PROTOCOL_MIN, max=PROTOCOL_MAX),
            agent_version=VERSION,
            host=convert.pairs_to_pb(host),
            slots=[_slot_to_pb(slot) for slot in slots],
            toolchains=[
                worker_pb2.Toolchain(
                    name=item.name,
                    version=item.version[:200],
                    fingerprint=convert.digest_to_pb(item.fingerprint),
                    targets=item.targets,
                )
                for item in facts.toolchains
            ],
            outbox=_fitting(outbox),
        )
        response = await self._call(self._stub.Register, request, _CALL_SECONDS)
        self._session, self._boot = response.session, response.daemon_boot
        return RegisterAnswer(
            status=_REGISTERED.get(response.status, RegisterStatus.RETRY),
            text=response.text[:500],
            session=response.session,
            boot=response.daemon_boot,
            policy=_policy(response.policy),
            acknowledged=tuple(convert.lease_from_pb(lease) for lease in response.acknowledged),
        )

    async def sync(self, slot: str, send: SendSync) -> tuple[Answer, list[tuple[str, str]]]:
        """Say what a slot is doing and wait for what it should do; notices come beside. Raises CallFailed,
        BadInput (an answer that cannot be read)."""
        request = worker_pb2.SyncRequest(
            session=self._session,
            daemon_boot=self._boot,
            slot=slot,
            seq=send.seq,
            accepting=send.accepting,
        )
        state = send.state
        if isinstance(state, Idle):
            request.idle.not_ready_reason = state.not_ready
        elif isinstance(state, Running):
            request.running.CopyFrom(
                worker_pb2.Running(
                    lease=convert.lease_to_pb(state.lease), stage=state.stage, in_stage_ns=state.in_stage
                )
            )
        else:
            request.finished.CopyFrom(_finished_to_pb(state.lease, state.report))
        boot = self._boot
        response = await self._call(self._stub.Sync, request, send.deadline / SECOND)
        return _answer(response, boot), [(item.kind[:40], item.text[:500]) for item in response.notices]

    async def leave(self, reason: str) -> None:
        """End the session. Raises CallFailed."""
        await self._call(self._stub.Leave, worker_pb2.LeaveRequest(session=self._session, reason=reason), 5.0)

    async def _call(self, method: Any, request: Any, seconds: float) -> Any:
        try:
            return await method(request, timeout=seconds, metadata=self._token.metadata)
        except grpc.aio.AioRpcError as error:
            raise failure_of(error) from None


def _fitting(outbox: Sequence[tuple[LeaseRef, Report]]) -> list[worker_pb2.FinishedJob]:
    """The first reports that fit into one message; at least one."""
    messages: list[worker_pb2.FinishedJob] = []
    size = 0
    for lease, report in outbox[:512]:
        message = _finished_to_pb(lease, report)
        size += message.ByteSize()
        if messages and size > _OUTBOX_BYTES:
            break
        messages.append(message)
    return messages


def _finished_to_pb(lease: LeaseRef, report: Report) -> worker_pb2.FinishedJob:
    return worker_pb2.FinishedJob(lease=convert.lease_to_pb(lease), report=reports.report_to_pb(report))


def _slot_to_pb(slot: SlotFacts) -> worker_pb2.SlotOffer:
    return worker_pb2.SlotOffer(
        slot=slot.name,
        kind=common_pb2.SlotKind.ValueType(convert.slot_kind_to_pb(slot.kind)),
        device=worker_pb2.DeviceFacts(
            id=slot.device, name=slot.device_name, facts=convert.pairs_to_pb(slot.device_facts)
        ),
        cores=slot.cores,
        memory_bytes=slot.memory_bytes,
        targets=slot.targets,
    )


def _policy(message: worker_pb2.Policy) -> Policy:
    """The daemon's times; senseless ones are replaced by the defaults, so that a fault there cannot unfence us."""
    policy = Policy(
        lease_ttl=_span(message.lease_ttl_ns, Policy().lease_ttl),
        guard=_span(message.guard_ns, Policy().guard),
        busy_hold=_span(message.busy_hold_ns, Policy().busy_hold),
        idle_hold=_span(message.idle_hold_ns, Policy().idle_hold),
        daemon_down=_span(message.daemon_down_ns, Policy().daemon_down),
    )
    sound = policy.guard < policy.lease_ttl and policy.busy_hold < policy.lease_ttl - policy.guard
    return policy if sound else Policy()


def _span(value: int, default: Span) -> Span:
    return value if 0 < value <= 3600 * SECOND else default


def _answer(response: worker_pb2.SyncResponse, boot: bytes) -> Answer:
    directive: Start | Stop | None = None
    kind = response.WhichOneof("directive")
    if kind == "start":
        directive = Start(
            lease=convert.lease_from_pb(response.start.lease),
            held=response.start.held_ns,
            spec=convert.job_spec_from_pb(response.start.job),
        )
    elif kind == "stop":
        directive = Stop(lease=convert.lease_from_pb(response.stop.lease), reason=response.stop.reason[:200])
    return Answer(
        status=_SYNCED.get(response.status, Status.RETRY),
        restarted=bool(response.daemon_boot) and response.daemon_boot != boot,
        acknowledged=convert.lease_from_pb(response.acknowledged) if response.HasField("acknowledged") else None,
        directive=directive,
    )
