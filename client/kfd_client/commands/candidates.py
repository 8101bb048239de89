"""``best`` and ``show``."""

from __future__ import annotations

from pathlib import Path

import click

from kfd.api.v1 import control_pb2
from kfd_client import render
from kfd_client.cli import Context
from kfd_client.exits import Exit, Failure
from kfd_client.session import Session

__all__ = ["best_command", "show_command"]


@click.command("best")
@click.argument("campaign", default="@last")
@click.option("--source", is_flag=True, help="Print the kernel's source instead.")
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="Write the source into a file.")
@click.pass_obj
def best_command(context: Context, campaign: str, source: bool, output: str | None) -> int:
    """Show the best kernel of a campaign."""
    session: Session = context.session()
    asked = control_pb2.GetCampaignRequest(campaign=campaign)
    found = session.call(session.control.GetCampaign, asked).campaign
    if not found.best:
        ended = found.state in render.ENDED
        raise Failure(
            f"campaign {found.id} ({found.state}) has no correct kernel{'' if ended else ' yet'}",
            code=Exit.NOTHING_BETTER if ended else Exit.RUNNING,
            mend=f"See what became of its candidates: kfd-client status {found.id}"
            if ended
            else f"Follow it: kfd-client logs {found.id} -f",
        )
    request = control_pb2.GetCandidateRequest(
        candidate=found.best, campaign=found.id, source=source or output is not None or context.json
    )
    response = session.call(session.control.GetCandidate, request)
    if output is not None:
        _write(output, response.source)
        context.note(f"{response.candidate.id} written to {output}")
        return int(Exit.DONE)
    if source and not context.json:
        context.source(response.source)
        return int(Exit.DONE)
    afresh = [f"afresh   {render.speed_text(speed)}" for speed in found.final_speeds]
    simulated = ["simulated device: no number here is a measurement"] if found.simulated else []
    extra = "".join(f"{line}\n" for line in [*simulated, *afresh])
    context.give(response, f"{render.candidate_screen(response)}{extra}next     kfd-client best {found.id} -o FILE\n")
    return int(Exit.DONE)


@click.command("show")
@click.argument("candidate")
@click.option("--source", is_flag=True, help="Print its source.")
@click.option("--prompt", is_flag=True, help="Print the prompt that asked for it.")
@click.option("--answer", is_flag=True, help="Print the model's answer.")
@click.pass_obj
def show_command(context: Context, candidate: str, source: bool, prompt: bool, answer: bool) -> int:
    """Show one candidate: its verdict, its numbers, its texts."""
    session: Session = context.session()
    request = control_pb2.GetCandidateRequest(candidate=candidate, source=source, prompt=prompt, answer=answer)
    response = session.call(session.control.GetCandidate, request)
    texts = [
        text
        for wanted, text in ((prompt, response.prompt), (answer, response.answer), (source, response.source))
        if wanted
    ]
    if context.json or not texts:
        context.give(response, render.candidate_screen(response))
        return int(Exit.DONE)
    for text in texts:
        context.source(text if text.endswith("\n") else f"{text}\n")
    return int(Exit.DONE)


def _write(output: str, text: str) -> None:
    try:
        Path(output).write_bytes(text.encode("utf-8", "replace"))
    except OSError as error:
        raise Failure(
            f"cannot write {output}: {error.strerror}", code=Exit.FAILED, mend="Give -o another file."
        ) from None
