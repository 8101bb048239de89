"""What a worker is asked to do and what it says about it: the values that cross the wire.

*Verdict*, *incident* and *stopped* are different classes, not codes of one field, so that no code path
can blame a candidate by forgetting a branch (worker-protocol, section 10).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from kfd.base.digest import Digest, digest_of_json
from kfd.base.ids import JobId
from kfd.base.instant import SECOND, Span

__all__ = [
    "CANDIDATE",
    "CHECKED_ONLY",
    "INCUMBENT",
    "INITIAL",
    "REFERENCE",
    "AdmitResult",
    "AdmitSpec",
    "BuildResult",
    "BuildSpec",
    "CaseResult",
    "Comparison",
    "Diagnostic",
    "Incident",
    "IncidentCode",
    "JobSpec",
    "LeaseRef",
    "Limits",
    "MeasurementPlan",
    "Probe",
    "Report",
    "Requirement",
    "Roof",
    "RunResult",
    "RunSpec",
    "SlotKind",
    "Speedup",
    "Stage",
    "Stopped",
    "Verdict",
    "VerdictCode",
    "build_key",
]


CHECKED_ONLY = "triton:interpreter"
"""The target whose runs are checked and never timed: Triton's interpreter on the processor."""
CANDIDATE, REFERENCE, INITIAL, INCUMBENT = "candidate", "reference", "initial", "incumbent"
"""What a run times: the candidate, and the baselines beside it. The incumbent is what the candidate would displace,
there only when a win is confirmed."""


class SlotKind(StrEnum):
    """What a slot can hold: a build lane needs a toolchain, a run slot *is* one device."""

    BUILD = "build"
    RUN = "run"


class Stage(StrEnum):
    """Where a job is, for people and for the quiet-host rule."""

    FETCH = "fetch"
    BUILD = "build"
    CHECK = "check"
    BENCHMARK = "benchmark"
    UPLOAD = "upload"


class VerdictCode(StrEnum):
    """Reproducible statements about a candidate (DESIGN, section 2)."""

    COMPILE_ERROR = "compile_error"
    LOAD_ERROR = "load_error"
    RUNTIME_ERROR = "runtime_error"
    TIMEOUT = "timeout"
    RESOURCE_LIMIT = "resource_limit"
    INCORRECT = "incorrect"
    SUSPECT = "suspect"
    OK = "ok"


class IncidentCode(StrEnum):
    """Our fault or the machine's: retried elsewhere, never charged to a candidate."""

    WORKER_LOST = "worker_lost"
    LEASE_LOST = "lease_lost"
    SANDBOX = "sandbox"
    TOOLCHAIN = "toolchain"
    MISSING_INPUT = "missing_input"
    DISK_FULL = "disk_full"
    DEVICE = "device"
    NOISE = "noise"
    REFERENCE = "reference"
    INTERNAL = "internal"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRef:
    """The right to do a job, and the only fence: attempt grows with each grant."""

    job: JobId
    attempt: int

    def __str__(self) -> str:
        return f"{self.job}/{self.attempt}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds that the worker's kernel enforces on one job."""

    wall_ns: Span = 60 * SECOND
    """Time of the candidate's own processes (boxes): fetching, queueing and the judge's work do not count."""
    memory_bytes: int = 2 << 30
    processes: int = 64
    output_bytes: int = 64 << 10
    """Bytes kept of standard output and error; the rest is read and dropped."""
    artifact_bytes: int = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """What a slot must offer to be given a job."""

    kind: SlotKind
    toolchain: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildSpec:
    """Compile one kernel source into an artifact."""

    task: Digest
    """The canonical task archive (``kfd.tasks.archive``)."""
    source: str
    """Whole text of the kernel file, EVOLVE block filled in."""
    kernel_path: str
    toolchain: str
    target: str
    flags: tuple[str, ...] = ()
    defines: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementPlan:
    """How long to measure and when to stop (evaluation notes, 4.4 and 4.5)."""

    min_rounds: int = 8
    max_rounds: int = 20
    target_half_width: float = 0.02
    """Stop early when the 95 % interval of the log ratio is narrower than this on both sides."""
    max_ns: Span = 10 * SECOND
    confidence: float = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """Check and time one artifact beside its baselines."""

    task: Digest
    artifact: Digest
    initial_artifact: Digest | None
    """The initial kernel's artifact, timed in the same rounds; None when the task starts from nothing
    or when this job runs the initial kernel itself."""
    toolchain: str
    target: str
    seed: bytes
    """32 secret bytes, drawn by the daemon after the candidate exists; the judge derives inputs from it."""
    plan: MeasurementPlan = MeasurementPlan()
    incumbent_artifact: Digest | None = None
    """What the candidate would displace, timed in the same rounds when a win is confirmed; None otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmitSpec:
    """Prove a task before any candidate is judged (evaluation notes, 5.1): wrong answers must fail."""

    task: Digest
    toolchain: str
    target: str
    seed: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """Everything a worker needs for one job."""

    work: BuildSpec | RunSpec | AdmitSpec
    limits: Limits

    @property
    def requirement(self) -> Requirement:
        """What the slot must offer."""
        kind = SlotKind.BUILD if isinstance(self.work, BuildSpec) else SlotKind.RUN
        return Requirement(kind=kind, toolchain=self.work.toolchain, target=self.work.target)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The candidate's doing: reproducible, never retried."""

    code: VerdictCode
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """Our doing or the machine's: retried elsewhere, never seen by the search."""

    code: IncidentCode
    text: str = ""
    missing: Digest | None = None
    device_suspect: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """The job was stopped because the daemon or the operator asked for it."""

    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """One compiler message."""

    file: str
    line: int
    column: int
    severity: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildResult:
    """What a build leaves."""

    artifact: Digest | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    """Short facts for people and prompts: compiler version, artifact size, vector width seen, ..."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """Correctness of one case. Errors are relative L2 and the worst element over its bound."""

    case: str
    passed: bool
    relative_l2: float
    worst: float
    """max over elements of |c - r| / (a * rms(r) + b * |r|); at most 1 passes."""
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One case timed against one baseline: per-round minima in nanoseconds, same length on both sides."""

    case: str
    baseline: str
    candidate_ns: tuple[int, ...]
    baseline_ns: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Speedup:
    """Geometric mean over cases of baseline time / candidate time, with a bootstrap interval over rounds."""

    baseline: str
    value: float
    low: float
    high: float
    rounds: int
    worst_case: str
    worst_value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Roof:
    """What bounds a timed case from below: every input is read once and every output written once."""

    case: str
    moved_bytes: int
    """Bytes of all inputs and outputs together."""
    copy_ns: int
    """Shortest time in which this machine, with the same threads, copies half as many: they are read and written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """Evidence of one run job."""

    cases: tuple[CaseResult, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    speedups: tuple[Speedup, ...] = ()
    ran: Digest | None = None
    """Digest of the artifact that was really loaded."""
    roofs: tuple[Roof, ...] = ()
    """Of the timed cases, where they were measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One wrong answer that was tried on a task, or one property that its reference must have."""

    name: str
    passed: bool
    """Whether the task stood the probe: the wrong answer was refused, the property holds."""
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmitResult:
    """Evidence about a task. The verdict is ``ok`` when every probe passed, else ``incorrect``."""

    probes: tuple[Probe, ...] = ()
    noise_floor: float = 0.0
    """Relative half-width of the interval when the reference is measured against itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What became of one attempt at a job."""

    outcome: Verdict | Incident | Stopped
    detail: BuildResult | RunResult | AdmitResult | None = None
    log_tail: str = ""
    log: Digest | None = None
    stages_ns: tuple[tuple[str, int], ...] = ()
    environment: tuple[tuple[str, str], ...] = field(default=())


Outcome: TypeAlias = Verdict | Incident | Stopped


def build_key(spec: BuildSpec, limits: Limits, fingerprint: Digest, salt: str) -> Digest:
    """Digest of everything that can change a build's answer (worker-protocol, section 7).

    The time limit is inside on purpose: a longer limit must not hide behind a shorter one's result.
    """
    return digest_of_json(
        {
            "kind": "build",
            "salt": salt,
            "task": str(spec.task),
            "source": spec.source,
            "kernel_path": spec.kernel_path,
            "toolchain": spec.toolchain,
            "fingerprint": str(fingerprint),
            "target": spec.target,
            "flags": list(spec.flags),
            "defines": [list(pair) for pair in spec.defines],
            "wall_ns": limits.wall_ns,
        }
    )
