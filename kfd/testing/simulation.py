"""Whole campaigns on a virtual clock: the real engine, scripted answers and a scripted fleet, no I/O.

Everything follows from a seed, so each failure replays. Deaths of the daemon are simulated by loading a fresh
engine from the rows that the old one's commands wrote.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace

from kfd.base.digest import Digest, digest_of
from kfd.base.ids import (
    CampaignId,
    CandidateId,
    SessionId,
    SlotName,
    WorkerName,
    campaign_of,
    ordinal_of,
)
from kfd.base.instant import MINUTE, SECOND, Instant, Span
from kfd.base.work import (
    INCUMBENT,
    INITIAL,
    AdmitResult,
    AdmitSpec,
    BuildResult,
    BuildSpec,
    CaseResult,
    Limits,
    MeasurementPlan,
    Probe,
    Report,
    RunResult,
    SlotKind,
    Speedup,
    Verdict,
    VerdictCode,
)
from kfd.core.campaign.mutation import MutationId, MutationRequest, nth_of
from kfd.core.campaign.state import CampaignSpec
from kfd.core.commands import (
    Command,
    DraftRequest,
    ReplyTo,
    StartDraft,
    StartMutation,
    StopDraft,
    StopMutation,
)
from kfd.core.engine import Engine
from kfd.core.events import (
    AgentRegistered,
    CampaignSubmitted,
    DraftArrived,
    Drafted,
    DraftEvent,
    Event,
    MutationEvent,
    MutationMissed,
    SlotSynced,
    Ticked,
)
from kfd.core.fleet.model import (
    FinishedJob,
    FleetPolicy,
    IdleState,
    Job,
    JobState,
    RegisterAnswer,
    Registration,
    Reply,
    SlotOffer,
    StartDirective,
    SyncAnswer,
    SyncReport,
    ToolchainOffer,
)
from kfd.core.search.archive import Cell
from kfd.core.search.proposals import SearchPolicy
from kfd.core.search.search import RULES
from kfd.testing.sim_rows import Rows

__all__ = ["Simulation", "arrived", "drafted", "no_mutation", "report_for", "sim_spec", "speedup"]

ZERO = Digest("0" * 64, 0)
REST: Span = MINUTE
"""After this long the agent offers slots again that were set aside, as a real one does the first time."""


def sim_spec(key: str = "sim-1", **changes: object) -> CampaignSpec:
    """A campaign spec for tests."""
    spec = CampaignSpec(
        id=CampaignId(f"c{hashlib.sha256(key.encode()).hexdigest()[:7]}"),
        name=key,
        task=ZERO,
        task_name="sim",
        kernel_path="kernel.cpp",
        toolchain="sim",
        target="sim:device",
        flags=(),
        build_limits=Limits(),
        run_limits=Limits(),
        plan=MeasurementPlan(),
        baseline="reference",
        target_speedup=2.0,
        generator="recorded",
        budget_candidates=20,
        budget_ns=600 * MINUTE,
        seed=1,
        secret=b"s" * 32,
        in_flight=4,
        search=SearchPolicy(),
        idempotency_key=key,
        submitted_at="2026-01-01T00:00:00.000+00:00",
        simulated=True,
        rules=RULES,
    )
    return replace(spec, **changes)  # type: ignore[arg-type]


def drafted(text: str, cell: Cell = (0, 0, 0)) -> Drafted:
    """What a drafter would say of a source."""
    hash_ = hashlib.sha256(text.encode()).hexdigest()
    return Drafted(source=hash_, kernel_text=text, normal=hash_, shape=hash_, cell=cell)


def speedup(value: float, baseline: str = "reference") -> Speedup:
    """A speedup with a two-percent interval."""
    return Speedup(
        baseline=baseline,
        value=value,
        low=value * 0.98,
        high=value * 1.02,
        rounds=8,
        worst_case="only",
        worst_value=value,
    )


def report_for(job: Job, code: VerdictCode, value: float = 1.0, over_incumbent: float | None = None) -> Report:
    """A report that ends a job with a verdict; the incumbent, when there is one, is as fast as the reference unless
    told otherwise."""
    if isinstance(job.spec.work, AdmitSpec):
        probe = Probe(name="zeros", passed=code is VerdictCode.OK)
        return Report(outcome=Verdict(code=code, text="zeros would pass"), detail=AdmitResult(probes=(probe,)))
    if isinstance(job.spec.work, BuildSpec):
        if code in (VerdictCode.COMPILE_ERROR, VerdictCode.RESOURCE_LIMIT):
            return Report(outcome=Verdict(code=code, text="no"), detail=BuildResult())
        artifact = digest_of(job.spec.work.source.encode())
        return Report(outcome=Verdict(code=VerdictCode.OK), detail=BuildResult(artifact=artifact))
    speedups = [speedup(value), speedup(value, INITIAL)]
    if job.spec.work.incumbent_artifact is not None:
        speedups.append(speedup(over_incumbent or value, INCUMBENT))
    result = RunResult(
        cases=(CaseResult(case="only", passed=code is VerdictCode.OK, relative_l2=0.0, worst=0.0),),
        speedups=tuple(speedups) if code is VerdictCode.OK else (),
        ran=job.spec.work.artifact,
    )
    return Report(outcome=Verdict(code=code, text="no" if code is not VerdictCode.OK else ""), detail=result)


class Simulation:
    """The engine with a fleet of one worker that settles jobs and a generator that answers, both by functions."""

    def __init__(
        self,
        answer: Callable[[DraftRequest], DraftEvent],
        judge: Callable[[Job], Report],
        *,
        lanes: int = 2,
        validate: bool = True,
        mutate: Callable[[MutationRequest], MutationEvent | None] | None = None,
    ) -> None:
        """``mutate``: the meta-prompter; None from it means that it has not answered yet. Without one it has no
        answers."""
        self.answer = answer
        self.mutate = mutate or no_mutation
        self.judge = judge
        self.lanes = lanes
        self.validate = validate
        self.now: Instant = SECOND
        self.rows = Rows()
        self.replies: dict[int, object] = {}
        self.commands: list[Command] = []
        self._call = 0
        self._seq = 0
        self._boots = 0
        self._start()

    # ---- the daemon -----------------------------------------------------------------------------------

    def _start(self) -> None:
        self._boots += 1
        self.boot = bytes([self._boots]) * 16
        self.engine = Engine(FleetPolicy(), self.boot)
        self.drafts: dict[CandidateId, DraftRequest] = {}
        self.mutations: dict[MutationId, MutationRequest] = {}
        self._offer_again: Instant | None = None
        self._session: SessionId | None = None
        keys = [(s.idempotency_key, s.id, s.name) for s in self.rows.specs.values()]
        jobs = {id_: job for id_, job in self.rows.jobs.items() if job.state is not JobState.SETTLED}
        self._take(self.engine.load(self.rows.loaded(), jobs, self.rows.sources, keys, self.now))
        self._take(self.engine.owed(self.now))
        self._parked: dict[SlotName, int] = {}
        self._register()

    def kill_daemon(self) -> None:
        """Kill -9: whatever was not committed is gone; drafts in flight too. The agent lives on."""
        self._start()

    def submit(self, spec: CampaignSpec, initial: Drafted | None) -> object:
        """Start a campaign; the reply."""
        return self.ask(lambda call: CampaignSubmitted(call=call, spec=spec, initial=initial, initial_text=None))

    def ask(self, make: Callable[[int], Event]) -> object:
        """Post an event with a call and give its reply (None when none came)."""
        self._call += 1
        self.post(make(self._call))
        return self.replies.get(self._call)

    def post(self, event: Event) -> None:
        """Give the engine one event."""
        self._take(self.engine.handle(event, self.now))

    def _take(self, commands: list[Command]) -> None:
        self.rows.apply(commands)
        self.commands += commands
        for command in commands:
            match command:
                case StartDraft(request=request):
                    if request.candidate in self.drafts:
                        raise AssertionError(f"{request.candidate} is asked twice at once")
                    self.drafts[request.candidate] = request
                case StopDraft(candidate=candidate):
                    self.drafts.pop(candidate, None)
                case StartMutation(request=mutation):
                    if mutation.mutation in self.mutations:
                        raise AssertionError(f"{mutation.mutation} is asked twice at once")
                    self.mutations[mutation.mutation] = mutation
                case StopMutation(mutation=stopped):
                    self.mutations.pop(stopped, None)
                case ReplyTo(call=call, value=value):
                    self.replies[call] = value
                case Reply(call=call, answer=answer):
                    self.replies[call] = answer
                case _:
                    pass
        if self.validate:
            self.engine.check()

    # ---- the world ------------------------------------------------------------------------------------

    def _register(self) -> None:
        slots = [SlotOffer(slot=SlotName(f"b{i}"), kind=SlotKind.BUILD, device="") for i in range(self.lanes)]
        slots += [
            SlotOffer(slot=SlotName(f"r{i}"), kind=SlotKind.RUN, device=f"d{i}", device_name="sim")
            for i in range(self.lanes)
        ]
        registration = Registration(
            worker=WorkerName("w"),
            boot_nonce=b"n",
            machine_id="m",
            protocol_min=1,
            protocol_max=1,
            agent_version="0",
            slots=tuple(slots),
            toolchains=(ToolchainOffer(name="sim", version="1", fingerprint=ZERO, targets=("sim:device",)),),
        )
        answer = self.ask(lambda call: AgentRegistered(call=call, registration=registration))
        if isinstance(answer, RegisterAnswer):
            self._session = answer.session
        self._slots = [slot.slot for slot in slots]

    def _sync(self, slot: SlotName, state: IdleState | FinishedJob) -> None:
        self._seq += 1
        report = SyncReport(
            session=self._session or SessionId(""),
            boot=self.boot,
            slot=slot,
            seq=self._seq,
            accepting=True,
            state=state,
        )
        self._call += 1
        self._parked[slot] = self._call
        self.post(SlotSynced(call=self._call, report=report))

    def step(self) -> bool:
        """Let everything that can happen now happen once, in a fixed order. False when nothing happened."""
        happened = False
        if self._offer_again is not None and self.now >= self._offer_again:
            self._offer_again = None
            self._register()
        for candidate, request in sorted(self.drafts.items(), key=lambda item: ordinal_of(item[0])):
            if self.drafts.pop(candidate, None) is not None:
                happened = True
                self.post(self.answer(request))
        for mutation, meta in sorted(self.mutations.items(), key=lambda item: nth_of(item[0])):
            ended = self.mutate(meta)
            if ended is not None and self.mutations.pop(mutation, None) is not None:
                happened = True
                self.post(ended)
        for slot in self._slots:
            call = self._parked.get(slot)
            answer = self.replies.pop(call, None) if call is not None else None
            if call is not None and answer is None:
                continue
            if self._offer_again is None and isinstance(answer, SyncAnswer) and _is_set_aside(answer):
                self._offer_again = self.now + REST
            if isinstance(answer, SyncAnswer) and isinstance(answer.directive, StartDirective):
                start = answer.directive
                job = self.rows.jobs[start.lease.job]
                happened = True
                self._sync(slot, FinishedJob(lease=start.lease, report=self.judge(job)))
            else:
                self._sync(slot, IdleState())
        return happened

    def run(self, max_steps: int = 10_000) -> None:
        """Run until nothing happens and no wake-up within a day brings anything."""
        quiet = 0
        for _ in range(max_steps):
            if self.step():
                quiet = 0
                continue
            if not self.engine.campaigns or quiet > 200:
                return
            quiet += 1
            due = min(self.engine.next_wake(self.now), self._offer_again or self.now + REST)
            self.now = max(self.now + SECOND, min(due, self.now + MINUTE))
            self.post(Ticked())
        raise AssertionError(f"not quiet after {max_steps} steps")

    def outcomes(self, campaign: CampaignId) -> dict[str, int]:
        """Number of candidates by outcome, without those that cost nothing."""
        counts: dict[str, int] = {}
        for candidate in self.rows.candidates.values():
            if campaign_of(candidate.id) == campaign and candidate.counts:
                key = candidate.outcome or candidate.state.value
                counts[key] = counts.get(key, 0) + 1
        return counts


def _is_set_aside(answer: SyncAnswer) -> bool:
    return any(kind == "set_aside" for kind, _ in answer.notices)


def arrived(request: DraftRequest, text: str, cell: Cell = (0, 0, 0)) -> DraftArrived:
    """An answer that holds a kernel."""
    return DraftArrived(
        candidate=request.candidate,
        drafted=drafted(text, cell),
        model="sim",
        input_tokens=1,
        output_tokens=1,
        texts=(),
    )


def no_mutation(request: MutationRequest) -> MutationMissed:
    """A meta-prompter that has no answers."""
    return MutationMissed(mutation=request.mutation, text="nobody answers")
