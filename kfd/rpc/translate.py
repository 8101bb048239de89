"""Read models to messages: the only place where the control service's protobuf meets domain types."""

from __future__ import annotations

from collections.abc import Iterable

from kfd.api.v1 import admin_pb2, common_pb2, control_pb2
from kfd.base.digest import Digest
from kfd.base.work import BuildResult, RunResult, Speedup
from kfd.core.fleet.model import QueueView, WorkerSeen
from kfd.core.search.budgets import ZERO, Amount
from kfd.core.views import CampaignView, CandidateView, EventRow, SearchView

__all__ = ["campaign_to_pb", "candidate_to_pb", "digest_from_pb", "event_to_pb", "search_to_pb", "workers_to_pb"]


def digest_from_pb(digest: common_pb2.Digest) -> Digest:
    """Raises ValueError for anything that is not a digest."""
    return Digest(digest.hash, digest.size)


def _digest_to_pb(digest: Digest) -> common_pb2.Digest:
    return common_pb2.Digest(hash=digest.hash, size=digest.size)


def _speeds(speedups: Iterable[Speedup]) -> list[control_pb2.Speed]:
    return [
        control_pb2.Speed(
            baseline=speed.baseline,
            value=speed.value,
            low=speed.low,
            high=speed.high,
            rounds=speed.rounds,
            worst_case=speed.worst_case,
            worst_value=speed.worst_value,
        )
        for speed in speedups
    ]


def _budgets(view: CampaignView, reserved: Amount) -> list[control_pb2.BudgetView]:
    """Spent, reserved and limit of each budget. Where no price is known there is no money, which is not 0."""
    spec, spent = view.spec, view.spent
    unpriced = ", ".join(one.name for one in spec.terms if one.price is None)
    money = control_pb2.BudgetView(
        name="money",
        spent=spent.micro_money,
        reserved=reserved.micro_money,
        limit=spec.budget_micro_money,
        note=f"without {unpriced}, of unknown price" if unpriced else "",
    )
    tokens = control_pb2.BudgetView(
        name="tokens", spent=spent.tokens, reserved=reserved.tokens, limit=spec.budget_tokens
    )
    device = control_pb2.BudgetView(
        name="device", spent=spent.device_ns, reserved=reserved.device_ns, limit=spec.budget_device_ns
    )
    is_priced = any(one.price is not None for one in spec.terms)
    return [*([money] if is_priced else []), tokens, device]


def campaign_to_pb(
    view: CampaignView, waiting_for: Iterable[str] = (), reserved: Amount = ZERO
) -> control_pb2.Campaign:
    """A campaign for people. ``reserved``: what it holds beside what is spent, while it is in progress."""
    spec, record = view.spec, view.record
    return control_pb2.Campaign(
        id=spec.id,
        name=spec.name,
        state=record.state.value,
        reason=record.reason,
        target=spec.target,
        generator=spec.generator,
        budget_candidates=spec.budget_candidates,
        budget_ns=spec.budget_ns,
        active_ns=record.active_ns,
        candidates_by_outcome=[control_pb2.Count(key=key, value=number) for key, number in view.outcomes],
        best=record.best or "",
        best_speeds=_speeds(view.best.speedups if view.best else ()),
        final_speeds=_speeds(record.final_speedups),
        incidents=record.incidents,
        cells=view.cells,
        submitted_at=spec.submitted_at,
        last_seq=view.last_seq,
        input_tokens=view.input_tokens,
        output_tokens=view.output_tokens,
        waiting_for=list(waiting_for),
        baseline=spec.baseline,
        initial=f"{spec.id}-0" if view.has_initial else "",
        task=_digest_to_pb(spec.task),
        verify_note=record.verify_note,
        simulated=spec.simulated,
        probes=[
            control_pb2.ProbeView(name=probe.name, passed=probe.passed, detail=probe.detail)
            for probe in (view.admission.probes if view.admission else ())
        ],
        noise_floor=view.admission.noise_floor if view.admission else 0.0,
        budgets=_budgets(view, reserved),
    )


def search_to_pb(view: SearchView, roofline: float | None) -> control_pb2.Search:
    """How a search stands, for people."""
    return control_pb2.Search(
        asked=[
            control_pb2.Share(kind=one.kind, name=one.name, asked=one.asked, recent=one.recent, elites=one.elites)
            for one in view.shares
        ],
        recent=view.recent,
        hinted=view.hinted,
        hints=list(view.hints),
        reaction=view.reaction,
        reacting=view.reacting,
        templates=view.templates,
        points=view.points,
        swept=view.swept or "",
        roofline=roofline or 0.0,
    )


def candidate_to_pb(view: CandidateView) -> control_pb2.Candidate:
    """A candidate for people."""
    candidate = view.candidate
    message = control_pb2.Candidate(
        id=candidate.id,
        campaign=view.campaign,
        ordinal=candidate.ordinal,
        state=candidate.state.value,
        outcome=candidate.outcome,
        text=candidate.text,
        operator=candidate.operator.value,
        parents=[one for one in (candidate.parent or candidate.origin,) if one],
        model=candidate.model,
        generation=candidate.generation,
        cell=",".join(map(str, (*candidate.cell, *candidate.extra))) if candidate.cell else "",
        fitness=candidate.fitness if candidate.fitness is not None else 0.0,
        elite=view.elite,
        speeds=_speeds(candidate.speedups),
        input_tokens=candidate.input_tokens,
        output_tokens=candidate.output_tokens,
        attempts=view.attempts,
        worker=candidate.worker,
        strategy=candidate.asked.strategy,
        asked_model=candidate.asked.model if candidate.asked.variant else "",
        variant=candidate.asked.variant,
        hints=candidate.asked.words,
        reaction=candidate.asked.reaction,
        point=" ".join(f"{name}={value}" for name, value in candidate.values),
    )
    if candidate.source:
        message.source.hash = candidate.source
    report = view.report
    if report is not None:
        message.log_tail = report.log_tail
        message.environment.extend(common_pb2.Pair(key=key, value=value) for key, value in report.environment)
        if isinstance(report.detail, RunResult):
            message.cases.extend(
                control_pb2.CaseView(
                    name=case.case,
                    passed=case.passed,
                    relative_l2=case.relative_l2,
                    worst=case.worst,
                    detail=case.detail,
                )
                for case in report.detail.cases
            )
        if isinstance(report.detail, BuildResult):
            message.diagnostics.extend(
                control_pb2.DiagnosticView(
                    file=message_.file,
                    line=message_.line,
                    column=message_.column,
                    severity=message_.severity,
                    text=message_.text,
                )
                for message_ in report.detail.diagnostics
            )
    return message


def event_to_pb(row: EventRow) -> control_pb2.Event:
    """An event for people."""
    return control_pb2.Event(seq=row.seq, at=row.at, campaign=row.campaign, kind=row.kind, body=row.body)


def workers_to_pb(workers: Iterable[WorkerSeen], queue: QueueView) -> admin_pb2.ListWorkersResponse:
    """The fleet for people."""
    return admin_pb2.ListWorkersResponse(
        workers=[
            admin_pb2.WorkerView(
                worker=worker.worker,
                state=worker.state,
                reason=worker.reason,
                agent_version=worker.agent_version,
                last_seen_ns=max(0, worker.last_seen),
                slots=[
                    admin_pb2.SlotView(
                        slot=offer.slot,
                        kind=offer.kind.value,
                        device=offer.device_name or offer.device,
                        state=state,
                        job=job or "",
                        since_ns=max(0, age),
                        why=why,
                        stage=stage,
                    )
                    for offer, state, job, age, why, stage in worker.slots
                ],
                toolchains=[
                    admin_pb2.ToolchainView(name=tool.name, version=tool.version, targets=list(tool.targets))
                    for tool in worker.toolchains
                ],
                jobs_settled=worker.settled,
            )
            for worker in workers
        ],
        queued_builds=queue.queued_builds,
        queued_runs=queue.queued_runs,
        oldest_queued_ns=max(0, queue.oldest_queued),
    )
