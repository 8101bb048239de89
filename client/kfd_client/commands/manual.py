"""``ask`` and ``tell``: being the model."""

from __future__ import annotations

import re
from pathlib import Path

import click

from kfd.api.v1 import control_pb2
from kfd.base.plain import plain_line
from kfd_client.cli import Context
from kfd_client.exits import Exit, Failure
from kfd_client.session import Session

__all__ = ["ask_command", "tell_command"]

_MAX_ANSWER = 1 << 20
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@click.command("ask")
@click.argument("campaign", default="@last")
@click.option("-o", "--output", default=".", show_default=True, type=click.Path(file_okay=False), help="Folder.")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 500), help="At most so many.")
@click.pass_obj
def ask_command(context: Context, campaign: str, output: str, limit: int) -> None:
    """Write a manual campaign's pending prompts as files, one for each candidate."""
    session: Session = context.session()
    response = session.call(session.control.Ask, control_pb2.AskRequest(campaign=campaign, limit=limit))
    written = [(prompt, _write(Path(output), prompt)) for prompt in response.prompts]
    if context.json:
        context.data({"prompts": [{"candidate": one.candidate, "file": str(file)} for one, file in written]})
        return
    for prompt, file in written:
        context.say(f"{file}  {plain_line(prompt.operator, 40)}  answer with: kfd-client tell {prompt.candidate} FILE")
    if not written:
        context.note("nothing is waiting for an answer")


def _write(folder: Path, prompt: control_pb2.PendingPrompt) -> Path:
    if not _FILE_NAME.fullmatch(prompt.candidate):
        raise Failure("the daemon sent a candidate id that is no file name", code=Exit.FAILED, mend="Update kfd.")
    file = folder / f"{prompt.candidate}.md"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file.write_bytes(prompt.prompt.encode("utf-8", "replace"))
    except OSError as error:
        raise Failure(
            f"cannot write {file}: {error.strerror}", code=Exit.FAILED, mend="Give -o another folder."
        ) from None
    return file


@click.command("tell")
@click.argument("candidate")
@click.argument("file", type=click.Path(allow_dash=True))
@click.option("--model", default="", help="Who answered, for the record.")
@click.pass_obj
def tell_command(context: Context, candidate: str, file: str, model: str) -> None:
    """Answer a pending prompt with FILE, or with standard input for `-`."""
    answer = _read(file)
    session: Session = context.session()
    request = control_pb2.TellRequest(candidate=candidate, answer=answer, model=model)
    response = session.call(session.control.Tell, request, max(session.timeout_s, 40.0))
    became = plain_line(response.outcome or response.state, 60)
    text = f": {plain_line(response.text, 600)}" if response.text else ""
    context.give(response, f"{candidate} {became}{text}")


def _read(file: str) -> str:
    try:
        with click.open_file(file, "rb") as opened:
            data = opened.read(_MAX_ANSWER + 1)
        text: str = data.decode()
    except OSError as error:
        raise Failure(f"cannot read {file}: {error.strerror}", code=Exit.USAGE, mend="Check the path.") from None
    except UnicodeDecodeError:
        raise Failure(f"{file} is not UTF-8 text", code=Exit.USAGE, mend="Save it as UTF-8.") from None
    if len(data) > _MAX_ANSWER:
        raise Failure(f"{file} is larger than {_MAX_ANSWER} bytes", code=Exit.USAGE, mend="Send only the answer.")
    return text
