"""The command ``kfd-worker``. Imports no gRPC until the launcher runs: none must be born of a gRPC process."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path
from typing import Any, NoReturn

import click
import structlog
from structlog.tracebacks import ExceptionDictTransformer as _Traces

from kfd.base.failure import CallerError, KfdError
from kfd.base.version import VERSION
from kfd_worker.config import AgentConfig, load_config
from kfd_worker.executors.local import LocalExecutor
from kfd_worker.executors.port import Executor
from kfd_worker.executors.simulated import SimulatedExecutor
from kfd_worker.files import take_lock
from kfd_worker.launcher.config import LauncherConfig, LauncherFacts

__all__ = ["doctor_lines", "main"]

_REFUSED = 78
"""Exit status that means: starting again makes no sense until somebody mends something (EX_CONFIG)."""
_TRY_LATER = 75
"""Exit status that means: try again (EX_TEMPFAIL)."""
_LOCK_SECONDS = 15.0
"""Patience with a past life that is still ending its boxes."""

_ALL_DEVICES = 64
_WIDEST = 1000


@click.group()
@click.version_option(VERSION, prog_name="kfd-worker")
def main() -> None:
    """Does jobs for a kfd daemon on this machine."""


@main.command()
@click.option("--daemon", metavar="HOST:PORT", help="Where the daemon listens (KFD_DAEMON).")
@click.option("--token-file", help="File with the daemon's token (KFD_TOKEN_FILE).")
@click.option("--name", help="This worker's name; the host's name if not given.")
@click.option("--state-dir", help="Folder for the outbox, the cache and the launcher.")
@click.option("--build-lanes", type=int, help="Builds at a time; by cores if not given.")
@click.option("--run-slots", type=int, help="Devices to offer, at most.")
@click.option("--executor", type=click.Choice(["real", "simulated"]), help="simulated runs nothing at all.")
@click.option(
    "--accept-unsandboxed", is_flag=True, default=None, help="Run candidates without a box. Dangerous: see the docs."
)
@click.option("--shared-host", is_flag=True, default=None, help="Build beside benchmarks; times get noisier.")
@click.option("--grace-seconds", type=float, help="How long jobs may go on after SIGTERM.")
@click.option("--exit-with-stdin", is_flag=True, default=None, help="End when standard input ends.")
@click.option("--config", "config_file", type=click.Path(path_type=Path), help="TOML file with the same keys.")
@click.option("--log-format", type=click.Choice(["auto", "console", "json"]), help="auto: console on a terminal.")
def run(config_file: Path | None, **given: Any) -> None:
    """Work for a daemon until SIGTERM."""
    try:
        config = load_config(config_file, given, os.environ)
        _set_up_logging(config.log_format)
    except CallerError as error:
        _refuse(error, _REFUSED)
    try:
        lock = take_lock(config.state, _LOCK_SECONDS)
    except CallerError as error:
        _refuse(error, _TRY_LATER)
    with lock:
        try:
            code = asyncio.run(_run(config))
        except KfdError as error:
            _refuse(error, _REFUSED)
    sys.exit(code)


@main.command()
@click.option("--state-dir", help="Folder for what self-tests keep; a running agent's is in use.")
@click.option(
    "--accept-unsandboxed", is_flag=True, default=None, help="Run candidates without a box. Dangerous: see the docs."
)
def doctor(state_dir: str | None, accept_unsandboxed: bool | None) -> None:
    """Say what this machine can build and run, what fails and what could be installed; 1 when it can do nothing."""
    # What is found does not depend on a daemon; only ``run`` needs one.
    given = {"daemon": "unix:doctor", "state_dir": state_dir, "accept_unsandboxed": accept_unsandboxed}
    try:
        config = load_config(None, {**given, "build_lanes": 1, "run_slots": _ALL_DEVICES}, os.environ)
        with take_lock(config.state):
            facts = asyncio.run(_examine(config))
    except KfdError as error:
        _refuse(error, _REFUSED)
    for line in doctor_lines(facts):
        click.echo(line)
    sys.exit(0 if facts.toolchains or facts.devices else 1)


async def _examine(config: AgentConfig) -> LauncherFacts:
    inner = await _start_executor(config)
    try:
        return await inner.facts()
    finally:
        await inner.close()


def doctor_lines(facts: LauncherFacts) -> list[str]:
    """What a machine offers, for people: one line a fact, what is missing last with what to do about it."""
    lines = [f"builds   {one.name} ({one.version}): {', '.join(one.targets)}" for one in facts.toolchains]
    lines += [f"runs     {one.name}: {', '.join(one.targets)}" for one in facts.devices]
    lines += [f"sandbox  {key}: {value}" for key, value in facts.sandbox]
    lines += [f"fails    {name}: {reason}" for name, reason in facts.problems]
    lines += [f"missing  {name}: {mend}" for name, mend in facts.absent]
    return [" ".join(line.split("\n"))[:_WIDEST] for line in lines]


def _refuse(error: KfdError, code: int) -> NoReturn:
    mend = getattr(error, "mend", "")
    click.echo(f"kfd-worker: {error}" + (f"\n  {mend}" if mend else ""), err=True)
    sys.exit(code)


async def _run(config: AgentConfig) -> int:
    inner = await _start_executor(config)
    try:
        facts = await inner.facts()
        for name, reason in facts.problems:
            structlog.get_logger("kfd.worker").warning("not.offered", name=name, reason=reason[:500])
        # Only now: the launcher runs.
        from kfd_worker.agent import Agent
        from kfd_worker.executors.sound import SoundExecutor
        from kfd_worker.transport import check_address

        check_address(config.daemon)
        agent = Agent(config, SoundExecutor(inner), facts)
        _heed_signals(agent)
        if config.exit_with_stdin:
            _watch_stdin(agent)
        return await agent.run()
    finally:
        await inner.close()


async def _start_executor(config: AgentConfig) -> Executor:
    if config.executor == "simulated":
        return SimulatedExecutor(config.state / "simulated", config.run_slots)
    return await LocalExecutor.start(
        LauncherConfig(
            state_dir=str(config.state / "launcher"),
            build_lanes=config.lanes,
            run_slots=config.run_slots,
            accept_unsandboxed=config.accept_unsandboxed,
        )
    )


def _heed_signals(agent: Any) -> None:
    """The first signal drains, the second ends."""
    loop = asyncio.get_running_loop()
    seen = 0

    def heed() -> None:
        nonlocal seen
        seen += 1
        if seen == 1:
            agent.drain()
        else:
            agent.abandon()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, heed)


def _watch_stdin(agent: Any) -> None:
    """A parent that dies takes its end of the pipe along, however it dies."""
    loop = asyncio.get_running_loop()
    descriptor = sys.stdin.fileno()

    def readable() -> None:
        with contextlib.suppress(BlockingIOError, InterruptedError):
            try:
                data = os.read(descriptor, 4096)
            except OSError:
                data = b""
            if not data:
                loop.remove_reader(descriptor)
                agent.abandon()

    loop.add_reader(descriptor, readable)


def _set_up_logging(log_format: str) -> None:
    """Structured lines on standard error. Tracebacks come without local variables: those may hold the token."""
    console = log_format == "console" or (log_format == "auto" and sys.stderr.isatty())
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    last: list[Any] = (
        [structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)]
        if console
        else [structlog.processors.ExceptionRenderer(_Traces(show_locals=False)), structlog.processors.JSONRenderer()]
    )
    structlog.configure(
        processors=[*shared, *last],
        wrapper_class=structlog.make_filtering_bound_logger("info"),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )


if __name__ == "__main__":
    main()
