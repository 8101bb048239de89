"""``kfd``: the daemon's command line."""

from __future__ import annotations

import os
import sqlite3
import sys
from pathlib import Path

import click

from kfd.base.failure import BadInput, CallerError, WrongState
from kfd.base.version import VERSION

__all__ = ["main"]

EXIT_USAGE, EXIT_HELD = 2, 3


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, prog_name="kfd")
def main() -> None:
    """The kfd daemon: makes GPU kernels faster by evolution."""


@main.command()
@click.option("--config", "config_path", type=click.Path(path_type=Path), help="TOML file with the configuration.")
@click.option(
    "--state-dir",
    type=click.Path(path_type=Path),
    help="State folder; default $KFD_STATE_DIR or ~/.local/state/kfd.",
)
@click.option("--listen", help="HOST:PORT on loopback; port 0 takes a free one.")
@click.option("--with-worker", is_flag=True, help="Start an agent on this machine as a child.")
@click.option("--accept-unsandboxed", is_flag=True, help="Let the embedded agent run kernels without a sandbox.")
def serve(
    config_path: Path | None,
    state_dir: Path | None,
    listen: str | None,
    with_worker: bool,
    accept_unsandboxed: bool,
) -> None:
    """Serve campaigns until stopped (SIGTERM or Ctrl-C)."""
    # The embedded agent is spawned, never forked with gRPC's threads in it; without this gRPC remarks on each spawn.
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")
    try:
        import asyncio  # here, so that --version and --help stay quick

        import uvloop

        from kfd.daemon.config import load_config
        from kfd.daemon.config import state_dir as state_dir_of
        from kfd.daemon.lifespan import serve as run
        from kfd.daemon.state import StateFolder
        from kfd.daemon.telemetry import configure_logging
    except ModuleNotFoundError as error:
        _fail(f"the daemon's packages are missing ({error.name})", "pip install 'kfd[daemon]'", EXIT_USAGE)
    try:
        config = load_config(config_path)
        changed = {}
        if listen is not None:
            changed["listen"] = listen
        if state_dir is not None:
            changed["state_dir"] = str(state_dir)
        data = config.model_dump(mode="json")
        data["server"].update(changed)
        data["worker"]["accept_unsandboxed"] |= accept_unsandboxed
        config = type(config).model_validate(data)
        configure_logging(config.log.format, config.log.level)
        state = StateFolder(state_dir_of(config))
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(run(config, state, with_worker=with_worker))
    except WrongState as error:
        _fail(str(error), error.mend, EXIT_HELD)
    except BadInput as error:
        _fail(str(error), error.mend, EXIT_USAGE)
    except CallerError as error:
        _fail(str(error), error.mend, 1)
    except ValueError as error:
        _fail(str(error), "see kfd serve --help", EXIT_USAGE)
    except sqlite3.Error as error:
        _fail(f"the state cannot be opened: {error}", "free space, or restore the state folder from a backup", 1)
    except OSError as error:
        _fail(str(error), "check the state folder's owner, mode and free space", 1)


@main.command()
@click.argument("task", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--folder", type=click.Path(path_type=Path), default=Path(".demo"), help="Where state, log and result go."
)
@click.option(
    "--least-gain", type=float, default=1.0, help="Fail unless the best kernel beats the initial one by this."
)
@click.option("--accept-unsandboxed", is_flag=True, help="Run kernels without a sandbox; they can harm this machine.")
def demo(task: Path, folder: Path, least_gain: float, accept_unsandboxed: bool) -> None:
    """Run one campaign on TASK with its recorded answers, daemon and agent included."""
    from kfd.daemon.demo import run_demo

    sys.exit(run_demo(task, folder, least_gain, accept_unsandboxed=accept_unsandboxed))


@main.group()
def debug() -> None:
    """Look into what a daemon has stored."""


@debug.command("replay")
@click.argument("campaign")
@click.option(
    "--state-dir",
    type=click.Path(path_type=Path),
    help="State folder; default $KFD_STATE_DIR or ~/.local/state/kfd.",
)
def debug_replay(campaign: str, state_dir: Path | None) -> None:
    """Make every decision of CAMPAIGN's search again from what is stored; exit 1 at the first difference."""
    import asyncio

    from kfd.daemon.config import Config
    from kfd.daemon.config import state_dir as state_dir_of
    from kfd.daemon.replay import replayed
    from kfd.daemon.state import StateFolder

    database = StateFolder(state_dir if state_dir is not None else state_dir_of(Config())).database
    if not database.exists():
        _fail(f"there is no {database}", "name the daemon's state folder with --state-dir", EXIT_USAGE)
    try:
        is_equal, text = asyncio.run(replayed(database, campaign))
    except CallerError as error:
        _fail(str(error), error.mend, EXIT_USAGE)
    except (sqlite3.Error, ValueError) as error:
        _fail(f"the state cannot be read: {error}", "name the daemon's state folder with --state-dir", EXIT_USAGE)
    click.echo(text)
    sys.exit(0 if is_equal else 1)


def _fail(text: str, mend: str, code: int) -> None:
    click.echo(f"kfd: {text}", err=True)
    if mend:
        click.echo(f"  next: {mend}", err=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
