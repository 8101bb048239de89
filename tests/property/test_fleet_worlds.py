"""The daemon's fleet machine and the agents' slot machines against each other, with a network between them that
loses, delays and reorders, agents that crash and a daemon that restarts (worker-protocol, section 12).

Rules are coarse: things that happen in the world, not steps of the wire. ``KFD_HYPOTHESIS=nightly`` searches long.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from kfd.base.ids import JobId, SlotName
from kfd.base.instant import SECOND, Instant
from kfd.base.work import Incident, IncidentCode, LeaseRef, Report, Stopped, Verdict, VerdictCode
from kfd.core.fleet.leases import Leases
from kfd.core.fleet.machine import Fleet
from kfd.core.fleet.model import (
    FinishedJob,
    FleetOutput,
    FleetPolicy,
    IdleState,
    Job,
    JobSettled,
    JobState,
    RegisterAnswer,
    RegisterStatus,
    Reply,
    RunningState,
    SaveJob,
    StartDirective,
    StopDirective,
    SyncAnswer,
    SyncReport,
)
from kfd.core.fleet.state import Entry, Slot
from kfd.testing.fleetkit import build_job, registration, verdict
from kfd_worker.core import slot as slot_module
from kfd_worker.core.slot import SlotMachine
from kfd_worker.core.values import (
    Answer,
    DropReport,
    Finished,
    Idle,
    NeedSession,
    Output,
    Policy,
    SaveReport,
    SendSync,
    Start,
    StartJob,
    Status,
    Stop,
    StopJob,
)

NIGHTLY = os.environ.get("KFD_HYPOTHESIS") == "nightly"
KILL = 4 * SECOND
"""How long a box takes to die: less than the guard."""


class Broken(AssertionError):
    """An invariant of the protocol does not hold."""


# ---- variants with a guard taken out ------------------------------------------------------------------


class NoSeqFleet(Fleet):
    def is_stale(self, slot: Slot, seq: int) -> bool:
        return False


class NoAttemptFleet(Fleet):
    def __init__(self, policy: FleetPolicy, boot: bytes) -> None:
        super().__init__(policy, boot)
        self.leases.holds = self._holds  # type: ignore[method-assign]

    def _holds(self, entry: Entry, lease: LeaseRef) -> bool:
        return entry.job.id == lease.job


class NoSelfStop(SlotMachine):
    def must_stop(self, now: Instant) -> bool:
        return False


class NoAgeCheck(SlotMachine):
    def too_old(self, basis: Instant, now: Instant) -> bool:
        return False


class BasisAtArrival(SlotMachine):
    def _start(self, start: Start, sent: Instant, now: Instant) -> list[Output]:
        return super()._start(replace(start, held=now - sent), sent, now)


@dataclass(eq=False)
class Call:
    """One call on its way: up, parked, or with its answer on the way down."""

    agent: Agent
    slot: str
    life: int
    send: SendSync
    report: SyncReport
    answer: SyncAnswer | None = None
    wire: str = "works"
    """How its answer travels: works, slow (until a rule delivers it) or lost."""


@dataclass(eq=False)
class Lane:
    """One slot of an agent with what its shell would hold."""

    machine: SlotMachine
    running: LeaseRef | None = None
    dies_at: Instant | None = None
    stop_reason: str = ""
    pending: Call | None = None


@dataclass(eq=False)
class Agent:
    name: str
    life: int = 0
    lanes: dict[str, Lane] = field(default_factory=dict)
    session: Any = None
    boot: bytes = b""
    outbox: dict[LeaseRef, Report] = field(default_factory=dict)

    @property
    def nonce(self) -> bytes:
        return f"{self.name}-life-{self.life}".encode()


class World:
    """Fleet, agents, network and clock. Methods are what can happen; each checks the invariants."""

    def __init__(
        self,
        make_fleet: Callable[[FleetPolicy, bytes], Fleet] = Fleet,
        make_slot: Callable[[Policy], SlotMachine] = SlotMachine,
        *,
        agents: int = 2,
        lanes: int = 1,
        jobs: int = 3,
    ) -> None:
        self.make_fleet, self.make_slot = make_fleet, make_slot
        self.policy = FleetPolicy(incident_limit=1000, poison_limit=1000, attempt_limit=1000)
        self.now: Instant = 1000 * SECOND
        self.boots = 0
        self.rows: dict[JobId, Job] = {}
        self.settled: dict[JobId, Report] = {}
        self.calls: dict[int, Call] = {}
        self.next_call = 0
        self.stuck: list[Call] = []
        self.falling: list[Call] = []
        self.registered: dict[int, RegisterAnswer] = {}
        self.agents: list[Agent] = []
        self.fleet = self._new_fleet()
        self.agents += [Agent(name=f"w{n}") for n in range(agents)]
        for agent in self.agents:
            agent.lanes = {f"b{n}": Lane(machine=make_slot(Policy())) for n in range(lanes)}
            self.register(agent)
        for n in range(jobs):
            self.enqueue(f"c{n % 2}-{n}.build")

    # ---- what can happen ------------------------------------------------------------------------------

    def enqueue(self, name: str) -> None:
        self.take(self.fleet.enqueue(build_job(name), self.now))

    def register(self, agent: Agent) -> None:
        """A whole registration."""
        sent = self.now
        self.next_call += 1
        asked = registration(
            agent.name,
            nonce=agent.nonce,
            build=len(agent.lanes),
            outbox=[
                FinishedJob(lease=lease, report=report)
                for lease, report in agent.outbox.items()
                if all(lane.machine.lease != lease for lane in agent.lanes.values())
            ],
        )
        self.take(self.fleet.register(self.next_call, asked, self.now))
        answer = self.registered[self.next_call]
        if answer.status is not RegisterStatus.OK:
            raise Broken(f"{agent.name} is refused: {answer.text}")
        agent.session, agent.boot = answer.session, answer.boot
        for lease in answer.acknowledged:
            agent.outbox.pop(lease, None)
        for name, lane in agent.lanes.items():
            self.does(agent, name, lane.machine.opened(Policy(), sent, self.now))

    def exchange(self, agent: Agent, name: str) -> None:
        """The newest request of a slot arrives, and its answer, if there is one now, comes back."""
        call = agent.lanes[name].pending
        if call is not None:
            call.wire = "works"
            self.arrive(call)
            self.fall(call)

    def exchange_lost(self, agent: Agent, name: str) -> None:
        """The newest request arrives; its answer is lost and the agent tries again."""
        call = agent.lanes[name].pending
        if call is not None:
            call.wire = "lost"
            self.arrive(call)
            self.fail(call, down=False)

    def delay_request(self, agent: Agent, name: str) -> None:
        """The newest request is stuck somewhere; the agent gives it up."""
        call = agent.lanes[name].pending
        if call is not None and call not in self.calls.values():
            call.wire = "lost"
            self.stuck.append(call)
            self.fail(call, down=False)

    def late_request(self, index: int) -> None:
        """A stuck request arrives after all; nobody hears its answer."""
        if self.stuck:
            self.arrive(self.stuck.pop(index % len(self.stuck)))

    def slow_answer(self, agent: Agent, name: str) -> None:
        """The newest request arrives; its answer takes its time."""
        call = agent.lanes[name].pending
        if call is not None:
            call.wire = "slow"
            if call not in self.falling:
                self.falling.append(call)
            self.arrive(call)

    def answer_arrives(self, index: int) -> None:
        """A slow answer is there."""
        if self.falling:
            call = self.falling.pop(index % len(self.falling))
            call.wire = "works"
            self.fall(call)

    def finish(self, agent: Agent, name: str, *, well: bool = True) -> None:
        """A job ends by itself."""
        lane = agent.lanes[name]
        if lane.running is not None:
            text = str(lane.running)
            report = verdict(VerdictCode.OK, text) if well else Report(outcome=Incident(code=IncidentCode.NOISE))
            self.end(agent, name, report)

    def crash(self, agent: Agent, *, keep: bool) -> None:
        """An agent dies with its boxes and comes back. ``keep``: its outbox is on a disk that survived."""
        agent.life += 1
        if not keep:
            agent.outbox.clear()
        agent.lanes = {name: Lane(machine=self.make_slot(Policy())) for name in agent.lanes}
        for call_id, call in list(self.calls.items()):
            if call.agent is agent:
                del self.calls[call_id]
                self.take(self.fleet.drop_call(call_id, self.now))
        self.register(agent)

    def cancel(self, name: str) -> None:
        self.take(self.fleet.cancel(JobId(name), "over", self.now))

    def restart(self) -> None:
        """The daemon dies and is back at once. Rows survive, nothing else does."""
        calls = [*self.calls.values()]
        self.calls.clear()
        self.fleet = self._new_fleet()
        for agent in self.agents:
            for lane in agent.lanes.values():
                if lane.pending is not None and lane.pending not in calls:
                    calls.append(lane.pending)
        for call in calls:
            self.fail(call, down=True)
        self.check()

    def wait(self, seconds: int) -> None:
        """Time passes; nothing arrives."""
        for _ in range(seconds):
            self.now += SECOND
            for agent in self.agents:
                for name, lane in agent.lanes.items():
                    self.does(agent, name, lane.machine.ticked(self.now))
                    if lane.dies_at is not None and self.now >= lane.dies_at:
                        self.end(agent, name, Report(outcome=Stopped(reason=lane.stop_reason)))
            self.take(self.fleet.tick(self.now))

    def heal(self) -> None:
        """Everything arrives and every job ends: all must settle."""
        for _ in range(400):
            if all(job.state is JobState.SETTLED for job in self.rows.values()):
                return
            for agent in self.agents:
                for name in agent.lanes:
                    self.exchange(agent, name)
                    self.finish(agent, name)
                    self.exchange(agent, name)
            for call in list(self.falling):
                self.falling.remove(call)
                call.wire = "works"
                self.fall(call)
            self.wait(1)
        raise Broken(f"I6: never settled: {[job for job in self.rows.values() if job.state != 'settled']}")

    # ---- wires ----------------------------------------------------------------------------------------

    def arrive(self, call: Call) -> None:
        if call in self.calls.values() or call.answer is not None:
            return
        self.next_call += 1
        self.calls[self.next_call] = call
        self.take(self.fleet.sync(self.next_call, call.report, self.now))

    def fall(self, call: Call) -> None:
        """The answer of a call, if it has one, reaches its agent's present life."""
        if call.answer is None or call.life != call.agent.life:
            return
        lane, answer = call.agent.lanes[call.slot], call.answer
        directive: Start | Stop | None = None
        if isinstance(answer.directive, StartDirective):
            directive = Start(lease=answer.directive.lease, held=answer.directive.held, spec=answer.directive.spec)
        elif isinstance(answer.directive, StopDirective):
            directive = Stop(lease=answer.directive.lease, reason=answer.directive.reason)
        taken = Answer(
            status=Status(answer.status.value),
            restarted=answer.boot != call.report.boot,
            acknowledged=answer.acknowledged,
            directive=directive,
        )
        if lane.pending is call:
            lane.pending = None
        self.does(call.agent, call.slot, lane.machine.answered(call.send.seq, taken, self.now))

    def fail(self, call: Call, *, down: bool) -> None:
        if call.life == call.agent.life:
            lane = call.agent.lanes[call.slot]
            if lane.pending is call:
                lane.pending = None
            self.does(call.agent, call.slot, lane.machine.call_failed(call.send.seq, 0.0, self.now, down=down))
            self.does(call.agent, call.slot, lane.machine.ticked(self.now + SECOND // 10))

    def end(self, agent: Agent, name: str, report: Report) -> None:
        lane = agent.lanes[name]
        lease, lane.running, lane.dies_at = lane.running, None, None
        if lease is not None:
            self.does(agent, name, lane.machine.ended(lease, report))

    def does(self, agent: Agent, name: str, outputs: list[Output]) -> None:
        lane = agent.lanes[name]
        for output in outputs:
            if isinstance(output, SendSync):
                lane.pending = self.ask(agent, name, output)
            elif isinstance(output, StartJob):
                lane.running, lane.dies_at = output.lease, None
            elif isinstance(output, StopJob):
                lane.dies_at, lane.stop_reason = self.now + KILL, output.reason
            elif isinstance(output, SaveReport):
                agent.outbox[output.lease] = output.report
                self.does(agent, name, lane.machine.saved(output.lease, self.now))
            elif isinstance(output, DropReport):
                agent.outbox.pop(output.lease, None)
            elif isinstance(output, NeedSession):
                for other in agent.lanes.values():
                    other.machine.closed()
                    other.pending = None
                self.register(agent)
        self.check()

    def ask(self, agent: Agent, name: str, send: SendSync) -> Call:
        state = send.state
        said: IdleState | RunningState | FinishedJob
        if isinstance(state, Idle):
            said = IdleState(not_ready=state.not_ready)
        elif isinstance(state, Finished):
            said = FinishedJob(lease=state.lease, report=state.report)
        else:
            said = RunningState(lease=state.lease, stage=state.stage)
        report = SyncReport(
            session=agent.session,
            boot=agent.boot,
            slot=SlotName(name),
            seq=send.seq,
            accepting=send.accepting,
            state=said,
        )
        return Call(agent=agent, slot=name, life=agent.life, send=send, report=report)

    def take(self, outputs: list[FleetOutput]) -> None:
        answered: list[Call] = []
        for output in outputs:
            if isinstance(output, SaveJob):
                self.rows[output.job.id] = output.job
            elif isinstance(output, JobSettled):
                self.settles(output)
            elif isinstance(output, Reply):
                if isinstance(output.answer, RegisterAnswer):
                    self.registered[output.call] = output.answer
                elif output.call in self.calls and output.answer is not None:
                    call = self.calls.pop(output.call)
                    call.answer = output.answer
                    answered.append(call)
                    directive = output.answer.directive
                    if isinstance(directive, StartDirective) and self.rows[directive.lease.job].cancelled:
                        raise Broken(f"I5: {directive.lease} is cancelled and granted")
        self.check()
        for call in answered:
            # Parked calls are answered over a wire that works, unless a rule has said that it is slow or lost.
            lane = call.agent.lanes.get(call.slot)
            if call.wire == "works" and lane is not None and lane.pending is call:
                self.fall(call)

    def settles(self, output: JobSettled) -> None:
        job, outcome = output.job, output.report.outcome
        if job.id in self.settled:
            raise Broken(f"I1: {job.id} settles twice")
        self.settled[job.id] = output.report
        if isinstance(outcome, Verdict) and outcome.text != f"{job.id}/{job.attempt}":
            raise Broken(f"I2: {job.id} is at attempt {job.attempt} and settles with {outcome.text}")

    def check(self) -> None:
        self.fleet.check()
        at_work: dict[JobId, str] = {}
        for agent in self.agents:
            if agent.session not in self.fleet.sessions.by_session and self.fleet.boot == agent.boot:
                continue
            for name, lane in agent.lanes.items():
                if lane.running is not None:
                    place = f"{agent.name}/{name}"
                    if at_work.setdefault(lane.running.job, place) != place:
                        raise Broken(f"I4: {lane.running.job} runs on {at_work[lane.running.job]} and on {place}")

    def _new_fleet(self) -> Fleet:
        self.boots += 1
        fleet = self.make_fleet(self.policy, f"boot-{self.boots}".encode())
        self.fleet = fleet
        live = [job for job in self.rows.values() if job.state is not JobState.SETTLED]
        self.take(fleet.load(live, self.now))
        return fleet


class Histories(RuleBasedStateMachine):
    """Random histories of the full design."""

    lanes = 1

    @initialize()
    def populate(self) -> None:
        self.world = World(lanes=self.lanes)
        for agent in self.world.agents:
            self.world.exchange(agent, "b0")

    where = st.tuples(st.integers(0, 1), st.integers(0, 1))

    def at(self, where: tuple[int, int]) -> tuple[Agent, str]:
        agent = self.world.agents[where[0]]
        return agent, f"b{where[1] % self.lanes}"

    @rule(where=where)
    def exchange(self, where: tuple[int, int]) -> None:
        self.world.exchange(*self.at(where))

    @rule(where=where)
    def exchange_lost(self, where: tuple[int, int]) -> None:
        self.world.exchange_lost(*self.at(where))

    @rule(where=where)
    def delay_request(self, where: tuple[int, int]) -> None:
        self.world.delay_request(*self.at(where))

    @rule(index=st.integers(0, 3))
    def late_request(self, index: int) -> None:
        self.world.late_request(index)

    @rule(where=where)
    def slow_answer(self, where: tuple[int, int]) -> None:
        self.world.slow_answer(*self.at(where))

    @rule(index=st.integers(0, 3))
    def answer_arrives(self, index: int) -> None:
        self.world.answer_arrives(index)

    @rule(where=where, well=st.booleans())
    def finish(self, where: tuple[int, int], well: bool) -> None:
        self.world.finish(*self.at(where), well=well)

    @rule(who=st.integers(0, 1), keep=st.booleans())
    def crash(self, who: int, keep: bool) -> None:
        self.world.crash(self.world.agents[who], keep=keep)

    @rule(who=st.integers(0, 1))
    def offer_again(self, who: int) -> None:
        """An agent whose slot was set aside registers in the middle of its session."""
        self.world.register(self.world.agents[who])

    @rule(seconds=st.sampled_from([1, 5, 10, 16, 21, 40]))
    def wait(self, seconds: int) -> None:
        self.world.wait(seconds)

    @rule(n=st.integers(0, 2))
    def cancel(self, n: int) -> None:
        self.world.cancel(f"c{n % 2}-{n}.build")

    @rule()
    def restart(self) -> None:
        self.world.restart()

    @invariant()
    def holds(self) -> None:
        if hasattr(self, "world"):
            self.world.check()

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.heal()


class TwoLanes(Histories):
    lanes = 2


@pytest.mark.slow
@pytest.mark.parametrize("machine", [Histories, TwoLanes])
def test_no_history_breaks_an_invariant(machine: type[Histories]) -> None:
    search = settings(
        max_examples=10_000 if NIGHTLY else 300,
        stateful_step_count=25,
        deadline=None,
        derandomize=not NIGHTLY,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.generate, Phase.shrink],
        database=None,
    )
    run_state_machine_as_test(machine, settings=search)


# ---- each guard, with and without ---------------------------------------------------------------------


def overtaken_request(world: World) -> None:
    """A stuck idle request arrives after its slot has begun a job."""
    one, two = world.agents
    world.delay_request(one, "b0")
    world.exchange(one, "b0")
    world.exchange(one, "b0")
    world.late_request(0)
    world.wait(1)
    world.exchange(two, "b0")
    world.exchange(two, "b0")


def silent_agent(world: World) -> None:
    """An agent begins a job and is not heard for half a minute."""
    one, two = world.agents
    world.exchange(one, "b0")
    world.slow_answer(one, "b0")
    world.wait(25)
    world.exchange(two, "b0")
    world.exchange(two, "b0")


def zombie_result(world: World) -> None:
    """A lease is lost and granted again; then the first holder's result comes."""
    one, two = world.agents
    world.exchange(one, "b0")
    world.finish(one, "b0")
    world.delay_request(one, "b0")
    world.wait(21)
    world.exchange(two, "b0")
    world.exchange(two, "b0")
    # Registering afresh delivers the outbox of the first life, while the second worker is at work.
    world.crash(one, keep=True)
    world.finish(two, "b0")
    world.exchange(two, "b0")


def same_worker_again(world: World) -> None:
    """The same slot is granted the job again, and an answer of its first attempt is repeated."""
    (one,) = world.agents
    world.exchange(one, "b0")
    world.finish(one, "b0")
    world.delay_request(one, "b0")
    stuck = world.stuck.pop()
    world.crash(one, keep=False)
    world.exchange(one, "b0")
    lane = one.lanes["b0"]
    assert lane.running is not None
    assert lane.running.attempt == 2
    report = replace(stuck.report, session=one.session, boot=one.boot, seq=lane.machine._seq + 5)
    world.next_call += 1
    world.take(world.fleet.sync(world.next_call, report, world.now))


def old_start(world: World) -> None:
    """The answers with the same start to two agents are both under way for longer than a lease lasts."""
    one, two = world.agents
    world.slow_answer(one, "b0")
    world.wait(21)
    world.slow_answer(two, "b0")
    world.answer_arrives(0)
    world.answer_arrives(0)


def start_after_long_transit(world: World) -> None:
    """A start is under way for 14 s; then its agent is not heard any more."""
    one, two = world.agents
    world.slow_answer(one, "b0")
    world.wait(14)
    world.answer_arrives(0)
    world.delay_request(one, "b0")
    world.wait(7)
    world.exchange(two, "b0")
    world.exchange(two, "b0")


@pytest.mark.parametrize(
    ("scenario", "fleet", "slot", "agents"),
    [
        pytest.param(overtaken_request, NoSeqFleet, SlotMachine, 2, id="no_seq"),
        pytest.param(silent_agent, Fleet, NoSelfStop, 2, id="no_self_stop"),
        pytest.param(same_worker_again, NoAttemptFleet, SlotMachine, 1, id="no_attempt"),
        pytest.param(old_start, Fleet, NoAgeCheck, 2, id="no_age_check"),
        pytest.param(start_after_long_transit, Fleet, BasisAtArrival, 2, id="basis_at_arrival"),
    ],
)
def test_a_guard_is_needed(
    scenario: Callable[[World], None],
    fleet: Callable[[FleetPolicy, bytes], Fleet],
    slot: Callable[[Policy], SlotMachine],
    agents: int,
) -> None:
    whole = World(agents=agents, jobs=1)
    scenario(whole)
    whole.heal()
    assert all(job.state is JobState.SETTLED for job in whole.rows.values())
    with pytest.raises(Broken, match=r"I[24]:"):
        scenario(World(fleet, slot, agents=agents, jobs=1))


def test_a_result_from_a_past_life_does_not_disturb_the_second_worker() -> None:
    world = World(jobs=1)
    zombie_result(world)
    outcome = world.settled[JobId("c0-0.build")].outcome
    assert isinstance(outcome, Verdict)
    assert outcome.text == "c0-0.build/2"


def test_a_job_goes_on_while_the_daemon_is_down_and_is_adopted() -> None:
    world = World(agents=2, jobs=1)
    one, two = world.agents
    world.exchange(one, "b0")
    world.exchange(one, "b0")
    world.restart()
    world.exchange(two, "b0")
    world.wait(100)
    assert one.lanes["b0"].running is not None
    world.exchange(one, "b0")
    world.finish(one, "b0")
    world.heal()
    assert world.rows[JobId("c0-0.build")].attempt == 1


def test_a_job_ends_before_the_lease_of_an_agent_that_registered_again_and_fell_silent() -> None:
    world = World(agents=2, jobs=1)
    one, two = world.agents
    world.exchange(one, "b0")
    world.exchange(one, "b0")
    world.wait(5)
    # One of its slots was set aside, and it offers itself again; nothing of it arrives afterwards.
    world.register(one)
    for _ in range(40):
        world.delay_request(one, "b0")
        world.wait(1)
        world.exchange(two, "b0")
    assert two.lanes["b0"].running == LeaseRef(job=JobId("c0-0.build"), attempt=2)


def test_a_job_ends_before_a_restarted_daemon_grants_it_again() -> None:
    world = World(agents=2, jobs=1)
    one, two = world.agents
    world.exchange(one, "b0")
    world.restart()
    world.wait(130)
    assert one.lanes["b0"].running is None
    world.exchange(two, "b0")
    world.exchange(two, "b0")
    assert two.lanes["b0"].running == LeaseRef(job=JobId("c0-0.build"), attempt=2)


def test_the_world_uses_the_real_machines() -> None:
    assert slot_module.SlotMachine is SlotMachine
    assert (
        Leases.holds(World(jobs=1).fleet.leases, Entry(job=build_job()), LeaseRef(job=JobId("x.y"), attempt=0)) is False
    )
