"""Shared values to messages and back. Each pair is total: ``x_from_pb(x_to_pb(v)) == v`` for valid values,
and whatever else arrives raises BadInput, never anything else. Reports are in ``kfd.api.reports``.

Nothing that arrives is trusted: numbers are finite and in range, texts and lists have bounds, an unknown enum
number is an error of its own. What a number *means* (a speedup that nobody can believe) is judged elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from kfd.api.bounds import INT_MAX, NAME, PAIRS, TEXT, count, integer, known, text
from kfd.api.v1 import common_pb2, worker_pb2
from kfd.base.digest import Digest
from kfd.base.failure import BadInput
from kfd.base.ids import JobId
from kfd.base.work import AdmitSpec, BuildSpec, JobSpec, LeaseRef, Limits, MeasurementPlan, RunSpec, SlotKind

__all__ = [
    "INT_MAX",
    "digest_from_pb",
    "digest_to_pb",
    "job_spec_from_pb",
    "job_spec_to_pb",
    "lease_from_pb",
    "lease_to_pb",
    "maybe_digest_from_pb",
    "maybe_digest_to_pb",
    "pairs_from_pb",
    "pairs_to_pb",
    "slot_kind_from_pb",
    "slot_kind_to_pb",
]

_JOB = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}\Z")

_KINDS: dict[SlotKind, int] = {kind: getattr(common_pb2, f"SLOT_KIND_{kind.name}") for kind in SlotKind}
_KINDS_BACK: dict[int, SlotKind] = {number: kind for kind, number in _KINDS.items()}


def digest_to_pb(digest: Digest) -> common_pb2.Digest:
    """A digest for the wire."""
    return common_pb2.Digest(hash=digest.hash, size=digest.size)


def digest_from_pb(message: common_pb2.Digest) -> Digest:
    """A digest from the wire. Raises BadInput."""
    try:
        return Digest(message.hash, integer(message.size, "the size of a digest"))
    except ValueError as error:
        raise BadInput(str(error)) from None


def maybe_digest_from_pb(message: Any, field: str) -> Digest | None:
    """The digest in a field; None when the field is not there. Raises BadInput."""
    return digest_from_pb(getattr(message, field)) if message.HasField(field) else None


def maybe_digest_to_pb(digest: Digest | None) -> common_pb2.Digest | None:
    """A digest for the wire, or nothing."""
    return None if digest is None else digest_to_pb(digest)


def lease_to_pb(lease: LeaseRef) -> common_pb2.LeaseRef:
    """A lease for the wire."""
    return common_pb2.LeaseRef(job=lease.job, attempt=lease.attempt)


def lease_from_pb(message: common_pb2.LeaseRef) -> LeaseRef:
    """A lease from the wire. Raises BadInput."""
    if not _JOB.match(message.job):
        raise BadInput(f"not the name of a job: {message.job[:80]!r}")
    return LeaseRef(job=JobId(message.job), attempt=integer(message.attempt, "an attempt", 1))


def pairs_to_pb(pairs: Iterable[tuple[str, str]]) -> list[common_pb2.Pair]:
    """Pairs of texts for the wire."""
    return [common_pb2.Pair(key=key, value=value) for key, value in pairs]


def pairs_from_pb(messages: Iterable[common_pb2.Pair], what: str) -> tuple[tuple[str, str], ...]:
    """Pairs of texts from the wire. Raises BadInput."""
    pairs = tuple((text(pair.key, what, NAME), text(pair.value, what, TEXT)) for pair in messages)
    return tuple(count(pairs, what, PAIRS))


def slot_kind_to_pb(kind: SlotKind) -> common_pb2.SlotKind.ValueType:
    """A slot kind for the wire."""
    return common_pb2.SlotKind.ValueType(_KINDS[kind])


def slot_kind_from_pb(number: int) -> SlotKind:
    """A slot kind from the wire. Raises BadInput."""
    return known(_KINDS_BACK, number, "kind of slot")


# ---- job specs ----------------------------------------------------------------------------------------


def job_spec_to_pb(spec: JobSpec) -> worker_pb2.JobSpec:
    """A job's specification for the wire."""
    limits = spec.limits
    message = worker_pb2.JobSpec(
        limits=worker_pb2.Limits(
            wall_ns=limits.wall_ns,
            memory_bytes=limits.memory_bytes,
            processes=limits.processes,
            output_bytes=limits.output_bytes,
            artifact_bytes=limits.artifact_bytes,
        )
    )
    work = spec.work
    if isinstance(work, BuildSpec):
        message.build.CopyFrom(
            worker_pb2.BuildSpec(
                task=digest_to_pb(work.task),
                source=work.source,
                kernel_path=work.kernel_path,
                toolchain=work.toolchain,
                target=work.target,
                flags=work.flags,
                defines=pairs_to_pb(work.defines),
            )
        )
    elif isinstance(work, AdmitSpec):
        message.admit.CopyFrom(
            worker_pb2.AdmitSpec(
                task=digest_to_pb(work.task), toolchain=work.toolchain, target=work.target, seed=work.seed
            )
        )
    else:
        plan = work.plan
        message.run.CopyFrom(
            worker_pb2.RunSpec(
                task=digest_to_pb(work.task),
                artifact=digest_to_pb(work.artifact),
                initial_artifact=maybe_digest_to_pb(work.initial_artifact),
                toolchain=work.toolchain,
                target=work.target,
                seed=work.seed,
                plan=worker_pb2.MeasurementPlan(
                    min_rounds=plan.min_rounds,
                    max_rounds=plan.max_rounds,
                    target_half_width=plan.target_half_width,
                    max_ns=plan.max_ns,
                    confidence=plan.confidence,
                ),
                incumbent_artifact=maybe_digest_to_pb(work.incumbent_artifact),
            )
        )
    return message


def job_spec_from_pb(message: worker_pb2.JobSpec) -> JobSpec:
    """A job's specification from the wire. Raises BadInput."""
    limits = Limits(
        wall_ns=integer(message.limits.wall_ns, "the time limit", 1),
        memory_bytes=integer(message.limits.memory_bytes, "the memory limit", 1),
        processes=integer(message.limits.processes, "the limit of processes", 1),
        output_bytes=integer(message.limits.output_bytes, "the limit of output"),
        artifact_bytes=integer(message.limits.artifact_bytes, "the limit of artifacts"),
    )
    kind = message.WhichOneof("work")
    if kind == "build":
        return JobSpec(work=_build_spec(message.build), limits=limits)
    if kind == "run":
        return JobSpec(work=_run_spec(message.run), limits=limits)
    if kind == "admit":
        return JobSpec(work=_admit_spec(message.admit), limits=limits)
    raise BadInput("a job of an unknown kind", mend="Install matching versions on both sides.")


def _build_spec(message: worker_pb2.BuildSpec) -> BuildSpec:
    path = message.kernel_path
    if not path or path.startswith("/") or "\0" in path or ".." in path.split("/"):
        raise BadInput(f"the kernel's path leaves its folder: {path[:80]!r}")
    return BuildSpec(
        task=digest_from_pb(message.task),
        source=message.source,
        kernel_path=text(path, "the kernel's path", NAME),
        toolchain=text(message.toolchain, "the toolchain", NAME),
        target=text(message.target, "the target", NAME),
        flags=tuple(text(flag, "a flag", NAME) for flag in count(message.flags, "flags", PAIRS)),
        defines=pairs_from_pb(message.defines, "defines"),
    )


def _admit_spec(message: worker_pb2.AdmitSpec) -> AdmitSpec:
    return AdmitSpec(
        task=digest_from_pb(message.task),
        toolchain=text(message.toolchain, "the toolchain", NAME),
        target=text(message.target, "the target", NAME),
        seed=_seed(message.seed),
    )


def _seed(seed: bytes) -> bytes:
    if not 0 < len(seed) <= 64:
        raise BadInput(f"a seed has 1 to 64 bytes, not {len(seed)}")
    return seed


def _run_spec(message: worker_pb2.RunSpec) -> RunSpec:
    plan = message.plan
    if not 0 < plan.confidence < 1 or not 0 < plan.target_half_width < 10:
        raise BadInput("the measurement plan asks for an interval that cannot be")
    min_rounds = integer(plan.min_rounds, "the least number of rounds", 1, 100_000)
    return RunSpec(
        task=digest_from_pb(message.task),
        artifact=digest_from_pb(message.artifact),
        initial_artifact=maybe_digest_from_pb(message, "initial_artifact"),
        toolchain=text(message.toolchain, "the toolchain", NAME),
        target=text(message.target, "the target", NAME),
        seed=_seed(message.seed),
        plan=MeasurementPlan(
            min_rounds=min_rounds,
            max_rounds=integer(plan.max_rounds, "the greatest number of rounds", min_rounds, 100_000),
            target_half_width=plan.target_half_width,
            max_ns=integer(plan.max_ns, "the time to measure", 1),
            confidence=plan.confidence,
        ),
        incumbent_artifact=maybe_digest_from_pb(message, "incumbent_artifact"),
    )
