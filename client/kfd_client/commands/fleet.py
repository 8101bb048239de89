"""``workers``, ``drain`` and ``undrain``."""

from __future__ import annotations

import click

from kfd.api.v1 import admin_pb2
from kfd_client import render
from kfd_client.cli import Context
from kfd_client.session import Session

__all__ = ["drain_command", "undrain_command", "workers_command"]


@click.command("workers")
@click.pass_obj
def workers_command(context: Context) -> None:
    """List workers, their slots and the queue."""
    session: Session = context.session()
    response = session.call(session.admin.ListWorkers, admin_pb2.ListWorkersRequest())
    context.give(response, render.worker_table(response))


@click.command("drain")
@click.argument("worker")
@click.option("--reason", required=True, help="Why, for whoever looks.")
@click.pass_obj
def drain_command(context: Context, worker: str, reason: str) -> None:
    """Give a worker no more jobs; what runs may finish."""
    session: Session = context.session()
    response = session.call(session.admin.DrainWorker, admin_pb2.DrainWorkerRequest(worker=worker, reason=reason))
    context.give(response, f"{worker} is draining; put it back with `kfd-client undrain {worker}`")


@click.command("undrain")
@click.argument("worker")
@click.pass_obj
def undrain_command(context: Context, worker: str) -> None:
    """Put a drained worker back."""
    session: Session = context.session()
    response = session.call(session.admin.UndrainWorker, admin_pb2.UndrainWorkerRequest(worker=worker))
    context.give(response, f"{worker} takes jobs again")
