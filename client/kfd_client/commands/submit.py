"""``submit``: check, pack, upload, start and follow."""

from __future__ import annotations

import secrets
import sys
import time
from collections.abc import Iterator

import click
import grpc

from kfd.api.v1 import common_pb2, control_pb2
from kfd.base.digest import Digest
from kfd.base.failure import BadInput
from kfd.base.work import CHECKED_ONLY
from kfd.tasks import load, pack, problems
from kfd_client import render
from kfd_client.amounts import money, span
from kfd_client.cli import Context
from kfd_client.exits import Exit, Failure
from kfd_client.follow import Line, follow, outcome
from kfd_client.session import Session, failure_of, is_lost
from kfd_client.upload import upload

__all__ = ["submit_command"]

_ATTEMPTS = 4


@click.command("submit")
@click.argument("task", type=click.Path())
@click.option("--candidates", type=click.IntRange(1), help="Candidates to ask for [the task's budget].")
@click.option("--hours", type=click.FloatRange(0.0001), help="Active hours [the task's budget].")
@click.option("--budget-money", type=money, metavar="MONEY", help="Money for model calls, such as 5 [no limit].")
@click.option("--budget-tokens", type=click.IntRange(1, 10**13), help="Tokens of prompts and answers [no limit].")
@click.option("--budget-device", type=span, metavar="SPAN", help="Time on devices, such as 90m or 2h [no limit].")
@click.option("--generator", type=click.Choice(["openai", "recorded", "manual"]), help="Where answers come from.")
@click.option("--model", "models", multiple=True, help="Configured model to ask; may be repeated [all].")
@click.option("--seed", type=click.IntRange(1, 2**63 - 1), help="Seed of the search [drawn].")
@click.option("--name", default="", help="Name of the campaign [task and a counter].")
@click.option(
    "--target",
    "targets",
    multiple=True,
    help="Target, such as cpp:native, or `all`; each of several gets a campaign with the whole budget, and these share "
    "their elites [the first].",
)
@click.option("--in-flight", type=click.IntRange(1, 256), help="Candidates worked on at once.")
@click.option("--idempotency-key", default="", help="The same key starts one campaign only [drawn].")
@click.option("--wait/--no-wait", default=None, help="Follow until the end [on a terminal only].")
@click.pass_obj
def submit_command(
    context: Context,
    task: str,
    candidates: int | None,
    hours: float | None,
    budget_money: int | None,
    budget_tokens: int | None,
    budget_device: int | None,
    generator: str | None,
    models: tuple[str, ...],
    seed: int | None,
    name: str,
    targets: tuple[str, ...],
    in_flight: int | None,
    idempotency_key: str,
    wait: bool | None,
) -> int:
    """Start a campaign on TASK: a folder, .tar, .tar.gz or .zip.

    On a terminal it is followed to its end; elsewhere only the id is printed. Ctrl-C ends the following, not
    the campaign.
    """
    archive, offered = _checked(task)
    options = control_pb2.CampaignOptions(
        name=name,
        generator=generator or "",
        candidates=candidates or 0,
        max_ns=round((hours or 0) * 3600e9),
        budget_micro_money=budget_money,
        budget_tokens=budget_tokens,
        budget_device_ns=budget_device,
        seed=seed or 0,
        in_flight=in_flight or 0,
        models=models,
    )
    wanted = _wanted(targets, offered)
    key = idempotency_key or secrets.token_hex(16)
    session: Session = context.session()
    digest = upload(session, archive)
    terminal = sys.stdout.isatty()
    campaigns: list[str] = []
    for request in _requests(options, digest, key, wanted):
        try:
            started = _submit(session, request)
        except Failure:
            if campaigns:
                # Without the same key they would be started once more.
                context.note(f"started and going on: {' '.join(campaigns)}")
                context.note(f"to start the others only, type the same with --idempotency-key {key}")
            raise
        campaigns.append(started.campaign)
        if context.json and not wait:
            context.data(started)
        elif not context.json:
            if terminal:
                again = "was there already" if started.existed else "started"
                context.say(f"{started.campaign}  {started.name}  {again}")
                context.say(
                    f"  follow  kfd-client logs {started.campaign} -f     stop  kfd-client cancel {started.campaign}"
                )
            else:
                context.say(started.campaign)
    if wait is False or (wait is None and not terminal):
        return int(Exit.DONE)
    worst = int(Exit.DONE)
    for campaign in campaigns:
        ended = _followed(context, session, campaign, terminal)
        if ended == Exit.INTERRUPTED:
            return ended
        worst = max(worst, ended)
    return worst


def _wanted(targets: tuple[str, ...], offered: tuple[str, ...]) -> tuple[str, ...]:
    """The targets asked for, each once; an empty one lets the daemon take the task's first.

    Raises Failure for one that the task does not have, before a campaign is started for any other. ``all`` are those
    that kernels are timed on.
    """
    timed = tuple(one for one in offered if one != CHECKED_ONLY)
    named = [one for target in targets for one in (timed if target == "all" else (target,))]
    unknown = next((one for one in named if one not in offered), None)
    if unknown is not None or (targets and not named):
        text = f"the task has no target {unknown!r}" if unknown is not None else f"{CHECKED_ONLY} is never timed"
        raise Failure(text, code=Exit.USAGE, mend=f"Give --target of {', '.join(offered)}.")
    if len(set(named)) > 1 and CHECKED_ONLY in named:
        text = f"{CHECKED_ONLY} checks kernels and never times them"
        raise Failure(text, code=Exit.USAGE, mend=f"Leave out --target {CHECKED_ONLY}.")
    return tuple(dict.fromkeys(named)) or ("",)


def _requests(
    options: control_pb2.CampaignOptions, digest: Digest, key: str, targets: tuple[str, ...]
) -> Iterator[control_pb2.SubmitCampaignRequest]:
    """A request for each target. Several are one group, each with a key and a name of its own."""
    for target in targets:
        one = control_pb2.CampaignOptions()
        one.CopyFrom(options)
        one.target = target
        if len(targets) > 1:
            one.group = key
            one.name = f"{options.name}-{target.partition(':')[2] or target}" if options.name else ""
        yield control_pb2.SubmitCampaignRequest(
            idempotency_key=f"{key}:{target}" if len(targets) > 1 else key,
            task=common_pb2.Digest(hash=digest.hash, size=digest.size),
            options=one,
        )


def _checked(task: str) -> tuple[bytes, tuple[str, ...]]:
    """The archive of a task without problems, and its targets. Raises Failure with all problems."""
    try:
        archive = pack(task)
        targets = load(archive).spec.targets
    except BadInput as error:
        found = problems(archive) if "archive" in locals() else [error]
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        mend = error.mend + (f" See all of them: kfd-client validate {task}" if more else "")
        raise Failure(f"{error}{more}", code=Exit.USAGE, mend=mend, file=error.file, line=error.line) from None
    return archive, targets


def _submit(session: Session, request: control_pb2.SubmitCampaignRequest) -> control_pb2.SubmitCampaignResponse:
    """Start the campaign; the key makes it safe to try again when the answer was lost."""
    for attempt in range(_ATTEMPTS):
        try:
            return session.raw(session.control.SubmitCampaign, request, session.timeout_s)
        except grpc.RpcError as error:
            if not is_lost(error) or attempt + 1 == _ATTEMPTS:
                raise failure_of(error, session.address, session.timeout_s) from None
            time.sleep(0.3 * 2**attempt)
    raise AssertionError("the loop returns or raises")


def _followed(context: Context, session: Session, campaign: str, terminal: bool) -> int:
    line = Line()
    try:
        ended = follow(session, campaign, line)
    except (KeyboardInterrupt, Failure) as error:
        line.clear()
        context.note(f"campaign {campaign} goes on without this client")
        context.note(f"  look  kfd-client status {campaign}     stop  kfd-client cancel {campaign}")
        if isinstance(error, Failure):
            raise
        return int(Exit.INTERRUPTED)
    if context.json:
        context.data(ended)
    elif terminal:
        context.say(render.ending(ended))
    else:
        # Standard output holds the id and nothing else, so that scripts can use it.
        context.note(render.ending(ended))
    return int(outcome(ended))
