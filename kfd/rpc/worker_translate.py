"""Messages of the worker service to values of the fleet machine and back. What arrives is untrusted.

A malformed call is refused (BadInput). A malformed *report* of a finished job is taken in as an incident: its
agent would send it for ever otherwise, and its candidate is not to blame.
"""

from __future__ import annotations

import math
import re
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from kfd.api import convert, reports
from kfd.api.v1 import worker_pb2
from kfd.base.failure import BadInput
from kfd.base.ids import SessionId, SlotName, WorkerName
from kfd.base.transfer import CHUNK, MAX_BLOB
from kfd.base.work import Incident, IncidentCode, Report, RunResult, Verdict, VerdictCode
from kfd.core.fleet.model import (
    FinishedJob,
    FleetPolicy,
    IdleState,
    RegisterAnswer,
    RegisterStatus,
    Registration,
    RunningState,
    SlotOffer,
    SlotState,
    StartDirective,
    StopDirective,
    SyncAnswer,
    SyncReport,
    SyncStatus,
    ToolchainOffer,
)

__all__ = [
    "finished_from_pb",
    "register_answer_to_pb",
    "registration_from_pb",
    "sync_answer_to_pb",
    "sync_from_pb",
]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,99}\Z")
_SLOTS = 256
_TOOLCHAINS = 64
_TARGETS = 256
_OUTBOX = 1024
_INLINE = 64 << 10
_LIKELY = 100_000.0
"""A speedup beyond this, either way, is not believed."""

_REGISTERED = {
    RegisterStatus.OK: worker_pb2.REGISTER_STATUS_OK,
    RegisterStatus.NAME_IN_USE: worker_pb2.REGISTER_STATUS_NAME_IN_USE,
    RegisterStatus.WRONG_PROTOCOL: worker_pb2.REGISTER_STATUS_WRONG_PROTOCOL,
    RegisterStatus.RETRY: worker_pb2.REGISTER_STATUS_RETRY,
}
_SYNCED = {
    SyncStatus.OK: worker_pb2.SYNC_STATUS_OK,
    SyncStatus.SUPERSEDED: worker_pb2.SYNC_STATUS_SUPERSEDED,
    SyncStatus.REREGISTER: worker_pb2.SYNC_STATUS_REREGISTER,
    SyncStatus.RETRY: worker_pb2.SYNC_STATUS_RETRY,
}


def _name(text: str, what: str) -> str:
    if not _NAME.match(text):
        raise BadInput(
            f"not a name for a {what}: {text[:80]!r}",
            mend="Use 1 to 100 letters, digits, dots, colons, dashes or underscores, a letter or digit first.",
        )
    return text


def _short(text: str, what: str, limit: int) -> str:
    if len(text) > limit:
        raise BadInput(f"{what} has {len(text)} characters, more than {limit}")
    return text


# ---- in -----------------------------------------------------------------------------------------------


def registration_from_pb(message: worker_pb2.RegisterRequest) -> Registration:
    """What an agent registers with. Raises BadInput."""
    if not 8 <= len(message.boot_nonce) <= 64:
        raise BadInput(f"a boot nonce has 8 to 64 bytes, not {len(message.boot_nonce)}")
    for items, what, limit in (
        (message.slots, "slots", _SLOTS),
        (message.toolchains, "toolchains", _TOOLCHAINS),
        (message.outbox, "reports in the outbox", _OUTBOX),
    ):
        if len(items) > limit:
            raise BadInput(f"{len(items)} {what}, more than {limit}")
    slots = tuple(_slot(slot) for slot in message.slots)
    if len({slot.slot for slot in slots}) != len(slots):
        raise BadInput("two slots have the same name")
    devices = [slot.device for slot in slots if slot.kind.value == "run"]
    if len(set(devices)) != len(devices):
        raise BadInput("two run slots name the same device", mend="Offer one run slot per device.")
    return Registration(
        worker=WorkerName(_name(message.worker, "worker")),
        boot_nonce=message.boot_nonce,
        machine_id=_short(message.machine_id, "the machine id", 128),
        protocol_min=message.protocol.min,
        protocol_max=message.protocol.max,
        agent_version=_short(message.agent_version, "the agent's version", 64),
        slots=slots,
        toolchains=tuple(_toolchain(item) for item in message.toolchains),
        outbox=tuple(finished_from_pb(item) for item in message.outbox),
        host=convert.pairs_from_pb(message.host, "facts of the host"),
    )


def _slot(message: worker_pb2.SlotOffer) -> SlotOffer:
    return SlotOffer(
        slot=SlotName(_name(message.slot, "slot")),
        kind=convert.slot_kind_from_pb(message.kind),
        device=_short(message.device.id, "a device's id", 200),
        device_name=_short(message.device.name, "a device's name", 200),
        cores=message.cores,
        memory_bytes=min(message.memory_bytes, convert.INT_MAX),
        targets=_targets(message.targets),
    )


def _toolchain(message: worker_pb2.Toolchain) -> ToolchainOffer:
    return ToolchainOffer(
        name=_name(message.name, "toolchain"),
        version=_short(message.version, "a toolchain's version", 200),
        fingerprint=convert.digest_from_pb(message.fingerprint),
        targets=_targets(message.targets),
    )


def _targets(targets: Sequence[str]) -> tuple[str, ...]:
    if len(targets) > _TARGETS:
        raise BadInput(f"{len(targets)} targets, more than {_TARGETS}")
    return tuple(_name(target, "target") for target in targets)


def sync_from_pb(message: worker_pb2.SyncRequest) -> SyncReport:
    """What a slot says of itself. Raises BadInput."""
    kind = message.WhichOneof("state")
    state: SlotState
    if kind == "idle":
        state = IdleState(not_ready=message.idle.not_ready_reason[:200])
    elif kind == "running":
        state = RunningState(
            lease=convert.lease_from_pb(message.running.lease),
            stage=message.running.stage[:40],
            in_stage=min(message.running.in_stage_ns, convert.INT_MAX),
        )
    elif kind == "finished":
        state = finished_from_pb(message.finished)
    else:
        raise BadInput("a slot that says nothing of its state", mend="Install matching versions on both sides.")
    if not 0 < message.seq <= convert.INT_MAX:
        raise BadInput(f"{message.seq} is no sequence number: they begin at 1")
    return SyncReport(
        session=SessionId(_short(message.session, "the session", 128)),
        boot=message.daemon_boot,
        slot=SlotName(_short(message.slot, "the slot", 64)),
        seq=message.seq,
        accepting=message.accepting,
        state=state,
    )


def finished_from_pb(message: worker_pb2.FinishedJob) -> FinishedJob:
    """A finished job; a report that cannot be read or believed comes out as an incident or as suspect. Raises
    BadInput only when the lease itself is malformed."""
    lease = convert.lease_from_pb(message.lease)
    try:
        report = _judge(reports.report_from_pb(message.report))
    except BadInput as error:
        incident = Incident(code=IncidentCode.INTERNAL, text=f"the worker's report cannot be taken in: {error}"[:1000])
        report = Report(outcome=incident)
    return FinishedJob(lease=lease, report=report)


def _judge(report: Report) -> Report:
    """What a report says against what can be: the evidence must agree with the claim."""
    outcome, detail = report.outcome, report.detail
    if not isinstance(outcome, Verdict) or not isinstance(detail, RunResult):
        return report
    if outcome.code is VerdictCode.OK:
        if not all(case.passed for case in detail.cases):
            raise BadInput("it says ok, and a case has failed")
        for name, ratio in _ratios(detail).items():
            for speedup in detail.speedups:
                if speedup.baseline == name and not 0.5 <= speedup.value / ratio <= 2:
                    raise BadInput(f"it claims {speedup.value:.3g} x against {name}, its samples say {ratio:.3g} x")
    absurd = [
        speedup
        for speedup in detail.speedups
        if not 1 / _LIKELY <= speedup.value <= _LIKELY or not 1 / _LIKELY <= speedup.worst_value <= _LIKELY
    ]
    if absurd and outcome.code is VerdictCode.OK:
        text = f"a speedup of {absurd[0].value:.3g} x against {absurd[0].baseline} is not believed"
        return replace(
            report,
            outcome=Verdict(code=VerdictCode.SUSPECT, text=text),
            detail=replace(detail, speedups=()),
        )
    return report


def _ratios(detail: RunResult) -> dict[str, float]:
    """Geometric mean over cases of the median ratio, by baseline, as far as there are samples."""
    logs: dict[str, list[float]] = defaultdict(list)
    for item in detail.comparisons:
        if item.candidate_ns:
            pairs = zip(item.baseline_ns, item.candidate_ns, strict=True)
            ratio = statistics.median(theirs / ours for theirs, ours in pairs)
            logs[item.baseline].append(math.log(ratio))
    return {name: math.exp(statistics.fmean(values)) for name, values in logs.items()}


# ---- out ----------------------------------------------------------------------------------------------


def register_answer_to_pb(answer: RegisterAnswer, policy: FleetPolicy) -> worker_pb2.RegisterResponse:
    """The answer to a registration, with the times that the agent must keep."""
    return worker_pb2.RegisterResponse(
        status=_REGISTERED[answer.status],
        text=answer.text,
        session=answer.session or "",
        protocol=answer.protocol,
        daemon_boot=answer.boot,
        policy=worker_pb2.Policy(
            lease_ttl_ns=policy.lease_ttl,
            guard_ns=policy.guard,
            busy_hold_ns=policy.busy_hold,
            idle_hold_ns=policy.idle_hold,
            daemon_down_ns=policy.adoption,
            inline_limit=_INLINE,
            chunk=CHUNK,
            max_blob=MAX_BLOB,
        ),
        acknowledged=[convert.lease_to_pb(lease) for lease in answer.acknowledged],
    )


def sync_answer_to_pb(answer: SyncAnswer) -> worker_pb2.SyncResponse:
    """The answer to a slot."""
    message = worker_pb2.SyncResponse(
        status=_SYNCED[answer.status],
        daemon_boot=answer.boot,
        notices=[worker_pb2.Notice(kind=kind, text=text) for kind, text in answer.notices],
    )
    if answer.acknowledged is not None:
        message.acknowledged.CopyFrom(convert.lease_to_pb(answer.acknowledged))
    directive = answer.directive
    if isinstance(directive, StartDirective):
        message.start.CopyFrom(
            worker_pb2.Start(
                lease=convert.lease_to_pb(directive.lease),
                held_ns=max(0, directive.held),
                job=convert.job_spec_to_pb(directive.spec),
            )
        )
    elif isinstance(directive, StopDirective):
        message.stop.CopyFrom(worker_pb2.Stop(lease=convert.lease_to_pb(directive.lease), reason=directive.reason))
    return message
