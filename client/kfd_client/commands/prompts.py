"""``prompts``: how a campaign's prompt has evolved."""

from __future__ import annotations

import click

from kfd.api.v1 import control_pb2
from kfd_client import render_prompts
from kfd_client.cli import Context
from kfd_client.exits import Exit
from kfd_client.session import Session

__all__ = ["prompts_command"]

PAGE = 500


@click.command("prompts")
@click.argument("campaign", default="@last")
@click.argument("prompt", default="")
@click.option("--text", is_flag=True, help="Print what PROMPT says, without its parent.")
@click.option("--question", is_flag=True, help="Print what the meta-prompter was told.")
@click.option("--answer", is_flag=True, help="Print the meta-prompter's answer.")
@click.pass_obj
def prompts_command(context: Context, campaign: str, prompt: str, text: bool, question: bool, answer: bool) -> int:
    """Show the prompt variants of a campaign with their credit and lineage.

    With PROMPT, the id of a variant or of a mutation (p3): its regions, as a diff against the variant that it was
    made from.
    """
    session: Session = context.session()
    if not prompt:
        if text or question or answer:
            raise click.UsageError("--text, --question and --answer need a PROMPT")
        context.give(found := _all(session, campaign), render_prompts.prompt_table(found.prompts))
        return int(Exit.DONE)
    request = control_pb2.ListPromptsRequest(campaign=campaign, prompt=prompt)
    response = session.call(session.control.ListPrompts, request)
    one = response.prompts[0]
    wanted = [
        part
        for flag, part in ((text, render_prompts.prompt_text(one)), (question, one.question), (answer, one.answer))
        if flag
    ]
    if context.json or not wanted:
        context.give(response, render_prompts.prompt_screen(one))
        return int(Exit.DONE)
    for part in wanted:
        context.source(part if part.endswith("\n") else f"{part}\n")
    return int(Exit.DONE)


def _all(session: Session, campaign: str) -> control_pb2.ListPromptsResponse:
    """The whole list, page by page."""
    found = control_pb2.ListPromptsResponse()
    while True:
        request = control_pb2.ListPromptsRequest(campaign=campaign, skip=len(found.prompts), limit=PAGE)
        page = session.call(session.control.ListPrompts, request)
        found.prompts.extend(page.prompts)
        if not page.more or not page.prompts:
            return found
