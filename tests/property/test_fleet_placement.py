"""Laws of placement over random queues: fairness, order, fit, and no work left lying while a slot waits."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from kfd.core.fleet.machine import Fleet
from kfd.core.fleet.model import FleetPolicy, JobSettled, SyncAnswer
from kfd.testing.fleetkit import OK, RUN_OK, Peer, build_job, registration, run_job

quick = settings(deadline=None, max_examples=60, derandomize=True, database=None)
queues = st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=40)


def peer_with(build: int, run: int, workers: int = 1) -> Peer:
    peer = Peer(Fleet(FleetPolicy(), b"boot"))
    for n in range(workers):
        peer.register(registration(f"w{n}", nonce=f"nonce-w{n}".encode(), build=build, run=run), 0)
    return peer


def drain_slot(peer: Peer, worker: str, slot: str, limit: int = 100) -> list[str]:
    """Let one slot do what it is given until it is given nothing; the jobs in order."""
    done: list[str] = []
    call = peer.idle(worker, slot, 0)
    while call in peer.answers and len(done) < limit:
        lease = peer.started(call)
        done.append(lease.job)
        peer.running(worker, slot, lease, 0)
        peer.finished(worker, slot, lease, RUN_OK if lease.job.endswith("run") else OK, 0, accepting=False)
        call = peer.idle(worker, slot, 0)
    return done


@quick
@given(queues)
def test_no_campaign_is_served_twice_while_another_waits(queue: list[tuple[int, bool]]) -> None:
    peer = peer_with(1, 0)
    jobs = [f"c{campaign}-{n}.build" for n, (campaign, _) in enumerate(queue)]
    for job in jobs:
        peer.take(peer.fleet.enqueue(build_job(job), 0))
    order = drain_slot(peer, "w0", "b0")
    assert sorted(order) == sorted(jobs)
    waiting = Counter(job.partition("-")[0] for job in jobs)
    served: Counter[str] = Counter()
    for job in order:
        campaign = job.partition("-")[0]
        behind = [other for other in waiting if waiting[other] and other != campaign]
        assert all(served[campaign] <= served[other] for other in behind), order
        served[campaign] += 1
        waiting[campaign] -= 1
    for campaign in served:
        mine = [job for job in order if job.startswith(f"{campaign}-")]
        assert mine == [job for job in jobs if job.startswith(f"{campaign}-")]


@quick
@given(queues)
def test_builds_and_runs_go_only_to_their_kind_of_slot(queue: list[tuple[int, bool]]) -> None:
    peer = peer_with(1, 1)
    for n, (campaign, is_run) in enumerate(queue):
        job = run_job(f"c{campaign}-{n}.run") if is_run else build_job(f"c{campaign}-{n}.build")
        peer.take(peer.fleet.enqueue(job, 0))
    assert all(job.endswith(".build") for job in drain_slot(peer, "w0", "b0"))
    assert all(job.endswith(".run") for job in drain_slot(peer, "w0", "r0"))
    assert len([output for output in peer.outputs if isinstance(output, JobSettled)]) == len(queue)
    assert not peer.fleet.leases.entries


@quick
@given(queues, st.integers(1, 3), st.data())
def test_no_job_waits_while_a_fitting_slot_waits(
    queue: list[tuple[int, bool]], workers: int, data: st.DataObject
) -> None:
    peer = peer_with(2, 1, workers)
    slots = [(f"w{n}", name) for n in range(workers) for name in ("b0", "b1", "r0")]
    steps = data.draw(st.permutations([*range(len(queue)), *(-n - 1 for n in range(len(slots)))]))
    calls: dict[tuple[str, str], int] = {}
    for step in steps:
        if step >= 0:
            campaign, is_run = queue[step]
            job = run_job(f"c{campaign}-{step}.run") if is_run else build_job(f"c{campaign}-{step}.build")
            peer.take(peer.fleet.enqueue(job, 0))
        else:
            slot = slots[-step - 1]
            calls[slot] = peer.idle(slot[0], slot[1], 0)
    view = peer.fleet.queue_view(0)
    free = Counter(name[0] for (_, name), call in calls.items() if call not in peer.answers)
    assert not (view.queued_builds and free["b"])
    assert not (view.queued_runs and free["r"])
    granted = sum(isinstance(peer.answers.get(call), SyncAnswer) for call in calls.values())
    assert granted == view.leased
