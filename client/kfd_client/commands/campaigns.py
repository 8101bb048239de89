"""``list``, ``status``, ``logs``, ``cancel``, ``pause`` and ``resume``."""

from __future__ import annotations

import click

from kfd.api.v1 import control_pb2
from kfd_client import render
from kfd_client.cli import Context
from kfd_client.exits import Exit
from kfd_client.follow import events, outcome
from kfd_client.interrupt import check
from kfd_client.session import Session

__all__ = [
    "cancel_command",
    "list_command",
    "logs_command",
    "pause_command",
    "resume_command",
    "status_command",
]


@click.command("list")
@click.option("--state", default="", help="Only campaigns in this state.")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, 500), help="The newest so many.")
@click.pass_obj
def list_command(context: Context, state: str, limit: int) -> None:
    """List campaigns, the newest first."""
    session: Session = context.session()
    request = control_pb2.ListCampaignsRequest(state=state, limit=limit)
    response = session.call(session.control.ListCampaigns, request)
    context.give(response, render.campaign_table(response.campaigns))


@click.command("status")
@click.argument("campaign", default="@last")
@click.option("--exit-status", is_flag=True, help="Exit with 8 while it runs, 9 when nothing better was found, ...")
@click.pass_obj
def status_command(context: Context, campaign: str, exit_status: bool) -> int:
    """Show one campaign: its state, its best kernel, what it waits for."""
    session: Session = context.session()
    request = control_pb2.GetCampaignRequest(campaign=campaign)
    found = session.call(session.control.GetCampaign, request).campaign
    context.give(found, render.campaign_screen(found))
    return int(outcome(found)) if exit_status else int(Exit.DONE)


@click.command("logs")
@click.argument("campaign", default="@last")
@click.option("-f", "--follow", "keep", is_flag=True, help="Go on until the campaign has ended.")
@click.option("--tail", type=click.IntRange(1, 10_000), help="Only the last so many events.")
@click.pass_obj
def logs_command(context: Context, campaign: str, keep: bool, tail: int | None) -> int:
    """Print the events of a campaign."""
    session: Session = context.session()
    request = control_pb2.GetCampaignRequest(campaign=campaign)
    found = session.call(session.control.GetCampaign, request).campaign
    try:
        for event in events(session, found.id, tail=tail or 0, keep=keep, on_lost=context.note):
            check()
            if event is not None:
                context.give(event, render.event_line(event))
            elif keep and session.call(session.control.GetCampaign, request).campaign.state in render.ENDED:
                break
    except KeyboardInterrupt:
        context.note(f"campaign {found.id} goes on; stop it with `kfd-client cancel {found.id}`")
        return int(Exit.INTERRUPTED)
    return int(Exit.DONE)


@click.command("cancel")
@click.argument("campaign")
@click.option("--reason", default="", help="Why, for the record.")
@click.pass_obj
def cancel_command(context: Context, campaign: str, reason: str) -> None:
    """End a campaign now; what it has found stays."""
    session: Session = context.session()
    request = control_pb2.CancelCampaignRequest(campaign=campaign, reason=reason)
    _told(context, session.call(session.control.CancelCampaign, request).campaign)


@click.command("pause")
@click.argument("campaign")
@click.option("--reason", default="", help="Why, for the record.")
@click.pass_obj
def pause_command(context: Context, campaign: str, reason: str) -> None:
    """Ask for nothing new until it is resumed."""
    session: Session = context.session()
    request = control_pb2.PauseCampaignRequest(campaign=campaign, reason=reason)
    _told(context, session.call(session.control.PauseCampaign, request).campaign)


@click.command("resume")
@click.argument("campaign")
@click.pass_obj
def resume_command(context: Context, campaign: str) -> None:
    """Let a paused campaign go on."""
    session: Session = context.session()
    request = control_pb2.ResumeCampaignRequest(campaign=campaign)
    _told(context, session.call(session.control.ResumeCampaign, request).campaign)


def _told(context: Context, campaign: control_pb2.Campaign) -> None:
    context.give(campaign, f"{render.table((campaign.id, campaign.name, campaign.state), ())}")
