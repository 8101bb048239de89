"""From messages to text for people. Pure; every number names its baseline, its interval and its count."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kfd.api.v1 import admin_pb2, control_pb2
from kfd.base.instant import seconds_text
from kfd.base.plain import plain, plain_line
from kfd_client.standing import count_text, standing_lines

__all__ = [
    "ENDED",
    "best_speed",
    "campaign_screen",
    "campaign_table",
    "candidate_screen",
    "ending",
    "event_line",
    "progress_line",
    "speed_text",
    "table",
    "worker_table",
]

ENDED = frozenset(("finished", "failed", "cancelled"))
"""States that a campaign does not leave."""


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Columns side by side; cells are made plain."""
    cells = [[*header], *([plain_line(cell, 60) or "-" for cell in row] for row in rows)]
    widths = [max(len(row[at]) for row in cells) for at in range(len(header))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def speed_text(speed: control_pb2.Speed, *, worst: bool = True) -> str:
    """``1.83x vs reference [1.80, 1.86], 24 rounds, worst case odd 1.41x``."""
    text = (
        f"{speed.value:.2f}x vs {plain_line(speed.baseline, 40)} [{speed.low:.2f}, {speed.high:.2f}], "
        f"{count_text(speed.rounds, 'round')}"
    )
    if worst and speed.worst_case:
        text += f", worst case {plain_line(speed.worst_case, 60)} {speed.worst_value:.2f}x"
    return text


def best_speed(campaign: control_pb2.Campaign) -> control_pb2.Speed | None:
    """The speedup that counts: measured afresh at the end where that exists, against the campaign's
    baseline."""
    speeds = campaign.final_speeds or campaign.best_speeds
    own = [speed for speed in speeds if speed.baseline == campaign.baseline]
    return own[0] if own else speeds[0] if speeds else None


_IN_FLIGHT = frozenset(("drafting", "drafted", "building", "built", "running", "checking", "queued"))


def _outcomes(campaign: control_pb2.Campaign) -> str:
    counts = sorted(campaign.candidates_by_outcome, key=lambda count: (count.key != "ok", -count.value, count.key))
    return "  ".join(f"{plain_line(count.key, 40)} {count.value}" for count in counts if count.value)


def _judged(campaign: control_pb2.Campaign) -> int:
    """Candidates that were asked for and are done; the initial kernel is judged too, but was not asked for."""
    judged = sum(count.value for count in campaign.candidates_by_outcome if count.key not in _IN_FLIGHT)
    return max(judged - bool(campaign.initial), 0)


def progress_line(campaign: control_pb2.Campaign, width: int) -> str:
    """One line for a terminal of ``width`` columns."""
    best = best_speed(campaign)
    parts = [
        plain_line(campaign.state, 20),
        f"{_judged(campaign)}/{campaign.budget_candidates}",
        f"best {speed_text(best, worst=False)}" if best is not None else "no correct kernel yet",
    ]
    if campaign.simulated:
        parts.append("(simulated)")
    outcomes = _outcomes(campaign)
    if outcomes:
        parts.append(outcomes)
    if campaign.incidents:
        parts.append(count_text(campaign.incidents, "incident"))
    if campaign.waiting_for:
        parts.append("waits for " + plain_line(campaign.waiting_for[0], 120))
    line = "  ".join(parts)
    return line if len(line) < width else f"{line[: max(width - 4, 0)]}..."


def campaign_table(campaigns: Iterable[control_pb2.Campaign]) -> str:
    """The list of campaigns."""
    rows = []
    for campaign in campaigns:
        best = best_speed(campaign)
        speed = f"{best.value:.2f}x [{best.low:.2f}, {best.high:.2f}]" if best is not None else "-"
        note = campaign.reason or (campaign.waiting_for[0] if campaign.waiting_for else "")
        rows.append(
            (
                campaign.id,
                campaign.name,
                campaign.state,
                speed + (" simulated" if campaign.simulated else ""),
                f"{best.baseline}, n={best.rounds}" if best is not None else "-",
                f"{_judged(campaign)}/{campaign.budget_candidates}",
                seconds_text(campaign.active_ns),
                note,
            )
        )
    if not rows:
        return "no campaigns\n"
    return table(("ID", "NAME", "STATE", "BEST", "VS", "DONE", "ACTIVE", "NOTE"), rows)


def campaign_screen(campaign: control_pb2.Campaign) -> str:
    """All about one campaign."""
    lines = [f"{plain_line(campaign.name, 100)} ({plain_line(campaign.id, 40)})  {_state(campaign)}"]
    lines.append(f"target   {plain_line(campaign.target, 60)}, answers from {_generator(campaign)}")
    if campaign.simulated:
        lines.append("         simulated device: no number here is a measurement")
    lines += _best_lines(campaign)
    initial = " and the initial kernel" if campaign.initial else ""
    cells = count_text(campaign.cells, "cell")
    lines.append(f"done     {_judged(campaign)} of {campaign.budget_candidates} candidates{initial}, {cells}")
    outcomes = _outcomes(campaign)
    if outcomes:
        lines.append(f"         {outcomes}")
    spent, budget = seconds_text(campaign.active_ns), seconds_text(campaign.budget_ns)
    lines.append(f"spent    {spent} of {budget}, {_tokens(campaign.input_tokens, campaign.output_tokens)}")
    lines += standing_lines(campaign.search)
    if campaign.incidents:
        open_ones = f", {campaign.incidents_unresolved} unresolved" if campaign.incidents_unresolved else ""
        lines.append(f"lost     {count_text(campaign.incidents, 'incident')}{open_ones}, none charged to a candidate")
    lines += [f"waits    {plain_line(reason, 300)}" for reason in campaign.waiting_for]
    if campaign.state in ENDED:
        lines.append(f"next     kfd-client best {plain_line(campaign.id, 40)} --source")
    else:
        name = plain_line(campaign.id, 40)
        lines.append(f"next     kfd-client logs {name} -f      kfd-client best {name}")
    return "\n".join(lines) + "\n"


def _state(campaign: control_pb2.Campaign) -> str:
    return plain_line(campaign.state, 20) + (f": {plain_line(campaign.reason, 300)}" if campaign.reason else "")


def _generator(campaign: control_pb2.Campaign) -> str:
    names = {"recorded": "recordings in the task, not a model", "manual": "a person (ask, tell)"}
    return names.get(campaign.generator, plain_line(campaign.generator, 40))


def _tokens(inputs: int, outputs: int) -> str:
    return f"{inputs} tokens in, {outputs} out" if inputs or outputs else "no tokens counted"


def _best_lines(campaign: control_pb2.Campaign) -> list[str]:
    if not campaign.best:
        return ["best     no correct kernel yet"]
    lines = [f"best     {plain_line(campaign.best, 60)}"]
    if campaign.initial and campaign.best == campaign.initial:
        lines[0] += " (the initial kernel)"
    lines += [f"         {speed_text(speed)}" for speed in campaign.best_speeds]
    if campaign.final_speeds:
        lines.append("         measured afresh at the end:")
        lines += [f"         {speed_text(speed)}" for speed in campaign.final_speeds]
    if campaign.verify_note:
        lines.append(f"         {plain_line(campaign.verify_note, 300)}")
    return lines


def ending(campaign: control_pb2.Campaign) -> str:
    """What is said when a followed campaign has ended."""
    lines = [f"{plain_line(campaign.name, 100)} ({plain_line(campaign.id, 40)}) {_state(campaign)}"]
    if campaign.generator == "recorded":
        lines.append("answers  were recordings in the task, not a model's")
    lines += _best_lines(campaign)
    lines.append(f"counts   {_outcomes(campaign) or 'no candidates'}")
    if campaign.best:
        lines.append(f"next     kfd-client best {plain_line(campaign.id, 40)} --source -o FILE")
    return "\n".join(lines) + "\n"


def validation_lines(campaign: control_pb2.Campaign) -> str:
    """What a worker found about a task."""
    lines = []
    for probe in campaign.probes:
        detail = f": {plain_line(probe.detail, 200)}" if probe.detail else ""
        lines.append(f"  {'stands' if probe.passed else 'FAILS '}    {plain_line(probe.name, 80)}{detail}")
    if campaign.noise_floor:
        lines.append(f"  noise     {campaign.noise_floor * 100:.1f} % when the reference is measured against itself")
    lines += [f"  initial   {speed_text(speed)}" for speed in campaign.best_speeds]
    lines.append(f"  worker    {plain_line(campaign.reason, 500)}")
    return "\n".join(lines)


def validation_facts(campaign: control_pb2.Campaign) -> dict[str, object]:
    """The same as plain data."""
    return {
        "campaign": campaign.id,
        "state": campaign.state,
        "reason": campaign.reason,
        "noise_floor": campaign.noise_floor,
        "probes": [{"name": p.name, "passed": p.passed, "detail": p.detail} for p in campaign.probes],
    }


def candidate_screen(response: control_pb2.GetCandidateResponse) -> str:
    """All about one candidate, without its texts."""
    one = response.candidate
    head = f"{plain_line(one.id, 60)}  {plain_line(one.outcome or one.state, 60)}"
    if one.text:
        head += f": {plain_line(one.text, 600)}"
    lines = [head]
    parents = ", ".join(plain_line(parent, 60) for parent in one.parents) or "nothing"
    made = f"by {plain_line(one.operator, 40)} from {parents}" if one.operator else "the task's own kernel"
    model = f", {plain_line(one.model, 100)}" if one.model else ""
    lines.append(f"made     {made}, generation {one.generation}{model}")
    lines += _search_lines(one)
    if one.cell:
        elite = ", the best of its cell" if one.elite else ""
        lines.append(f"cell     memory, algorithm, parallelism = {plain_line(one.cell, 40)}{elite}")
    if one.speeds:
        lines.append(f"fitness  {one.fitness:.4f}")
    lines += [f"speed    {speed_text(speed)}" for speed in one.speeds]
    for case in one.cases:
        verdict = "passed" if case.passed else "FAILED"
        detail = f", {plain_line(case.detail, 300)}" if case.detail else ""
        numbers = f"relative L2 {case.relative_l2:.3g}, worst element {case.worst:.3g} of its bound"
        lines.append(f"case     {plain_line(case.name, 60)} {verdict}: {numbers}{detail}")
    for note in one.diagnostics[:50]:
        where = f"{plain_line(note.file, 100)}:{note.line}:{note.column}"
        lines.append(f"compiler {where}: {plain_line(note.severity, 20)}: {plain_line(note.text, 400)}")
    if one.worker:
        lines.append(f"worker   {plain_line(one.worker, 60)}, {count_text(one.attempts, 'attempt')}")
    lines.append(f"tokens   {_tokens(one.input_tokens, one.output_tokens)}")
    lines += [f"         {plain_line(pair.key, 60)}: {plain_line(pair.value, 200)}" for pair in one.environment]
    if one.log_tail.strip():
        lines.append("log      (its last lines)")
        lines += [f"  | {line}" for line in plain(one.log_tail[-8000:]).rstrip().split("\n")[-40:]]
    return "\n".join(lines) + "\n"


def _search_lines(one: control_pb2.Candidate) -> list[str]:
    """Why the search asked for it; nothing for a kernel that it did not ask for."""
    said = [f"parent by {plain_line(one.strategy, 40)}"] if one.strategy else []
    if one.asked_model and one.asked_model != "default":
        said.append(f"asked of {plain_line(one.asked_model, 100)}")
    if one.variant:
        said.append(f"prompt {plain_line(one.variant, 40)}")
    if one.point:
        said.append(f"point {plain_line(one.point, 600)}")
    if one.reaction:
        said.append(f"plateau: {plain_line(one.reaction, 40)}")
    lines = [f"search   {', '.join(said)}"] if said else []
    return lines + [f"hint     {plain_line(hint, 300)}" for hint in one.hints[:3]]


def worker_table(response: admin_pb2.ListWorkersResponse) -> str:
    """Workers, a line for each slot, and the queue."""
    rows = []
    for worker in response.workers:
        for slot in worker.slots:
            state = slot.state if worker.state == "up" else f"{worker.state}, {slot.state}"
            doing = f"{slot.job} {slot.stage} {seconds_text(slot.since_ns)}".strip() if slot.job else "-"
            why = slot.why or worker.reason
            seen = seconds_text(worker.last_seen_ns)
            rows.append(
                (worker.worker, slot.slot, slot.kind, slot.device, state, doing, seen, str(worker.jobs_settled), why)
            )
        if not worker.slots:
            seen = seconds_text(worker.last_seen_ns)
            rows.append(
                (worker.worker, "-", "-", "-", worker.state, "-", seen, str(worker.jobs_settled), worker.reason)
            )
    text = (
        table(("WORKER", "SLOT", "KIND", "DEVICE", "STATE", "RUNNING", "SEEN", "JOBS", "WHY"), rows)
        if rows
        else "no workers\n"
    )
    queue = f"queued   {count_text(response.queued_builds, 'build')}, {count_text(response.queued_runs, 'run')}"
    if response.queued_builds or response.queued_runs:
        queue += f", the oldest for {seconds_text(response.oldest_queued_ns)}"
    return f"{text}{queue}\n"


def event_line(event: control_pb2.Event) -> str:
    """One event: time, kind and what it says."""
    said = f"{plain_line(event.kind, 60)} {plain_line(event.body, 2000)}".rstrip()
    return f"{plain_line(event.at, 40)} {event.seq:>6} {said}"
