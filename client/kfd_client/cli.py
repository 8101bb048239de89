"""``kfd-client``: the command line. Commands are imported when they are called, so that ``--version`` is
quick."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import click

from kfd.base.plain import plain
from kfd.base.version import VERSION
from kfd_client.exits import Exit, Failure
from kfd_client.interrupt import watching

__all__ = ["Context", "cli", "main"]

_COMMANDS = {
    "ask": "manual",
    "best": "candidates",
    "cancel": "campaigns",
    "drain": "fleet",
    "list": "campaigns",
    "logs": "campaigns",
    "pause": "campaigns",
    "prompts": "prompts",
    "resume": "campaigns",
    "show": "candidates",
    "status": "campaigns",
    "submit": "submit",
    "tell": "manual",
    "undrain": "fleet",
    "validate": "validate",
    "workers": "fleet",
}
"""Module of each command, below ``kfd_client.commands``."""


@dataclass(slots=True)
class Context:
    """The global options, and what commands do with them."""

    json: bool = False
    address: str = ""
    token_file: str = ""
    timeout_s: float = 30.0
    closers: list[Callable[[], None]] = field(default_factory=list)

    def session(self) -> Any:
        """A session with the daemon, closed when the command ends."""
        from kfd_client.session import Session

        session = Session(self.address, self.token_file, self.timeout_s)
        self.closers.append(session.close)
        return session

    def close(self) -> None:
        """Close what the command has opened."""
        for closer in self.closers:
            closer()

    def say(self, text: str) -> None:
        """Text to standard output; made plain here too, so that no command can forget it."""
        click.echo(plain(text), nl=not text.endswith("\n"))

    def note(self, text: str) -> None:
        """Text beside the result, to standard error."""
        click.echo(plain(text), err=True, nl=not text.endswith("\n"))

    def data(self, value: Any) -> None:
        """A message or a mapping as one line of JSON."""
        from kfd_client.jsonout import json_line

        click.echo(json_line(value))

    def give(self, message: Any, text: str) -> None:
        """The message as JSON where that was asked for, else the text."""
        if self.json:
            self.data(message)
        else:
            self.say(text)

    def source(self, text: str) -> None:
        """A stranger's text: to the letter into a pipe or file, made plain on a terminal."""
        if sys.stdout.isatty():
            text = plain(text)
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode("utf-8", "replace"))
        sys.stdout.buffer.flush()


class _Lazy(click.Group):
    """A group whose commands are imported when they are named."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        module = _COMMANDS.get(cmd_name)
        if module is None:
            return None
        loaded = importlib.import_module(f"kfd_client.commands.{module}")
        command: click.Command = getattr(loaded, f"{cmd_name}_command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0] if args else ""
        if name and name not in _COMMANDS and not name.startswith("-"):
            import difflib

            close = difflib.get_close_matches(name, _COMMANDS, n=1)
            hint = f" Did you mean `{close[0]}`?" if close else ""
            ctx.fail(f"No such command {plain(name)!r}.{hint} Type `kfd-client --help` for those that exist.")
        return super().resolve_command(ctx, args)


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(VERSION, "-V", "--version", prog_name="kfd-client")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one object a line.")
@click.option("--address", default="", help="HOST:PORT of the daemon [KFD_ADDRESS, else the daemon's client.json].")
@click.option("--token-file", default="", help="File with the token [KFD_TOKEN_FILE, else the daemon's].")
@click.option(
    "--timeout", default=30.0, show_default=True, type=click.FloatRange(0.1, 86400), help="Seconds for one call."
)
@click.option("--no-color", is_flag=True, help="No colours [NO_COLOR].")
@click.pass_context
def cli(ctx: click.Context, as_json: bool, address: str, token_file: str, timeout: float, no_color: bool) -> None:
    """Evolve GPU kernels: submit tasks to a kfd daemon and follow their campaigns.

    \b
    Exit codes: 0 done, 1 failed, 2 usage, 3 not found, 4 not allowed, 5 daemon unreachable,
    6 wrong state, 7 budget or quota, 8 still running, 9 finished with nothing better than the
    baseline, 10 incident (try again), 130 interrupted (the campaign goes on).
    """
    context = Context(as_json, address, token_file, timeout)
    if no_color:
        ctx.color = False
    ctx.obj = context
    ctx.call_on_close(context.close)


def _report(failure: Failure, as_json: bool, color: bool | None) -> None:
    where = f"{failure.file}:{failure.line}: " if failure.file and failure.line else ""
    where = where or (f"{failure.file}: " if failure.file else "")
    text = failure.text if failure.text.startswith(where) else f"{where}{failure.text}"
    if as_json:
        from kfd_client.jsonout import json_line

        told = {"error": text, "next": failure.mend, "file": failure.file, "line": failure.line}
        click.echo(json_line({**told, "exit": int(failure.code)}), err=True)
        return
    click.secho(plain(f"kfd-client: {text}"), err=True, fg="red", color=color)
    if failure.mend:
        click.echo(plain(f"next: {failure.mend}"), err=True)


def main(arguments: list[str] | None = None) -> int:
    """Run one command and give its exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        with watching():
            result = cli.main(given, prog_name="kfd-client", standalone_mode=False)
        return int(result) if isinstance(result, int) else int(Exit.DONE)
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except Failure as failure:
        # None lets click decide by the terminal.
        _report(failure, "--json" in given, False if "--no-color" in given or os.environ.get("NO_COLOR") else None)
        return int(failure.code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return int(Exit.INTERRUPTED)
    except BrokenPipeError:
        # The reader went away (`| head`): nothing is left to say, not even at exit.
        sys.stdout = None
        return int(Exit.DONE)


if __name__ == "__main__":
    sys.exit(main())
