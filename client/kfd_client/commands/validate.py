"""``validate``: what the files say, and what a worker finds when it tries wrong answers on the task."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from contextlib import suppress

import click

from kfd.api.v1 import common_pb2, control_pb2
from kfd.base.failure import BadInput
from kfd.base.plain import plain
from kfd.tasks import load, pack, problems
from kfd.tasks.signature import c_signature
from kfd_client import render
from kfd_client.cli import Context
from kfd_client.exits import Exit, Failure
from kfd_client.follow import Line, follow
from kfd_client.session import Session
from kfd_client.upload import upload

__all__ = ["validate_command"]


@click.command("validate")
@click.argument("task", type=click.Path())
@click.option(
    "--worker/--no-worker",
    "on_worker",
    default=None,
    help="Prove the task on a worker too: wrong answers must fail [when a daemon is there].",
)
@click.pass_obj
def validate_command(context: Context, task: str, on_worker: bool | None) -> int:
    """Check TASK and list everything that is wrong with it, with file, line and mend.

    With a daemon at hand a worker then runs the reference, tries wrong answers (zeros, a constant, an input, another
    draw's output, stale rows), measures the noise floor, and builds, checks and times the kernel.
    """
    try:
        archive = pack(task)
        found = problems(archive)
    except BadInput as error:
        found = [error]
    if found:
        return _wrong(context, found)
    if not context.json:
        _well_formed(context, archive)
    if on_worker is False:
        return _end(context, task, None)
    try:
        session: Session = context.session()
    except Failure:
        if on_worker:
            raise
        return _end(context, task, None)
    line = Line()
    try:
        campaign = _proved(session, archive, line)
    except Failure as failure:
        if on_worker or failure.code is not Exit.UNREACHABLE:
            raise
        return _end(context, task, None)
    return _end(context, task, campaign)


def _wrong(context: Context, found: list[BadInput]) -> int:
    if context.json:
        told = [{"message": p.args[0], "file": p.file, "line": p.line, "mend": p.mend} for p in found]
        context.data({"ok": False, "problems": told})
    else:
        for problem in found:
            context.say(plain(f"{problem}\n  next: {problem.mend}"))
        context.note(f"{len(found)} problem{'' if len(found) == 1 else 's'}")
    return int(Exit.FAILED)


def _well_formed(context: Context, archive: bytes) -> None:
    spec = load(archive).spec
    timed = sum(case.timed for case in spec.cases)
    blocks = "empty" if spec.kernel.is_empty else f"{len(spec.kernel.blocks)} EVOLVE block(s)"
    context.say(plain(f"{spec.name} is well formed ({spec.digest.short})"))
    context.say(plain(f"  targets   {', '.join(spec.targets)}, baseline {spec.baseline}"))
    context.say(plain(f"  kernel    {spec.kernel.path}, {blocks}: {c_signature(spec)}"))
    context.say(f"  cases     {len(spec.cases)}, {timed} timed; tolerance {spec.tolerance.error_class}")


def _proved(session: Session, archive: bytes, line: Line) -> control_pb2.Campaign:
    """A campaign that only proves the task, followed to its end."""
    digest = upload(session, archive)
    request = control_pb2.SubmitCampaignRequest(
        idempotency_key=f"validate-{secrets.token_hex(16)}",
        task=common_pb2.Digest(hash=digest.hash, size=digest.size),
        options=control_pb2.CampaignOptions(validate_only=True),
    )
    started = session.call(session.control.SubmitCampaign, request)
    try:
        return follow(session, started.campaign, line, Unserved())
    except (Failure, KeyboardInterrupt):
        # Nobody will look at it any more; left alone it would wait for a worker for ever.
        with suppress(Failure):
            cancel = control_pb2.CancelCampaignRequest(campaign=started.campaign, reason="the validation was given up")
            session.call(session.control.CancelCampaign, cancel)
        raise


class Unserved:
    """Raises Failure when a campaign has waited for a worker for ``patience_s`` at every look: it says for which."""

    def __init__(self, patience_s: float = 30.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._patience_s = patience_s
        self._clock = clock
        self._since: float | None = None

    def __call__(self, campaign: control_pb2.Campaign) -> None:
        """One look."""
        if not campaign.waiting_for:
            self._since = None
            return
        self._since = self._clock() if self._since is None else self._since
        if self._clock() - self._since >= self._patience_s:
            reasons = "; ".join(campaign.waiting_for)
            raise Failure(
                f"the task was not proved: no worker can do it ({reasons})",
                code=Exit.WRONG_STATE,
                mend="Look with `kfd-client workers`; start one, or leave it out with --no-worker.",
            )


def _end(context: Context, task: str, campaign: control_pb2.Campaign | None) -> int:
    is_proved = campaign is None or campaign.state == "finished"
    if context.json:
        problems_found = [] if campaign is None or is_proved else [{"message": campaign.reason}]
        told = None if campaign is None else render.validation_facts(campaign)
        context.data({"ok": is_proved, "problems": problems_found, "worker": told})
    elif campaign is None:
        context.say("  worker    not asked: no daemon answers here (kfd serve --with-worker)")
    else:
        context.say(render.validation_lines(campaign))
    if is_proved and not context.json:
        context.say(plain(f"  next      kfd-client submit {task}"))
    return int(Exit.DONE if is_proved else Exit.FAILED)
