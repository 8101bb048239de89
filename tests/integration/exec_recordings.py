"""Trees of recorded answers: what an answer is, where its file lies, and how a task's ``recorded`` folder is written.

Names of files hold the digest of the parent's whole text, so a folder must be written again whenever its kernel
changes; tests hold folders and trees equal.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kfd.prompting.answers import Drafted, Rejected, parse
from kfd.tasks import load, pack
from kfd.tasks.spec import KernelFile

__all__ = ["TASKS", "Reply", "Step", "fenced", "files_of", "patch", "walk", "write"]

TASKS = Path(__file__).resolve().parents[2] / "tasks"


@dataclass
class Reply:
    """One recorded answer, and what was recorded for the candidate it makes.

    ``ends`` is how the candidate must end: a verdict, ``slower``, ``faster`` (than the initial kernel), or
    ``refused`` when the answer makes no candidate.
    """

    operator: str
    text: str
    ends: str
    then: list[Reply] = field(default_factory=list)


def fenced(fence: str, operator: str, says: str, block: str, ends: str, *then: Reply) -> Reply:
    """An answer with a whole block in a fence of this language."""
    return Reply(operator, f"{says}\n\n```{fence}\n{block}```\n", ends, list(then))


def patch(says: str, edits: list[tuple[str, str]], ends: str, *then: Reply) -> Reply:
    """An answer of edits: (old lines, new lines)."""
    body = "".join(f"<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n" for old, new in edits)
    return Reply("patch", f"{says}\n\n{body}", ends, list(then))


@dataclass(frozen=True)
class Step:
    """One answer in its place: name of its file, what it was asked about, what it makes."""

    name: str
    reply: Reply
    made: KernelFile | Rejected
    depth: int


def walk(kernel: KernelFile, replies: list[Reply], entry: str, depth: int = 1) -> Iterator[Step]:
    """Every answer below a kernel, through the same parser as a campaign's."""
    parent = hashlib.sha256(kernel.text.encode()).hexdigest()[:12]
    asked: dict[str, int] = {}
    for reply in replies:
        nth = asked.get(reply.operator, 0)
        asked[reply.operator] = nth + 1
        result = parse(reply.text, "stop", reply.operator, kernel, entry)
        made = result.kernel if isinstance(result, Drafted) else result
        yield Step(f"recorded/{parent}/{reply.operator}.{nth}.md", reply, made, depth)
        if isinstance(made, KernelFile):
            yield from walk(made, reply.then, entry, depth + 1)


def files_of(task: str, replies: list[Reply], readme: str) -> dict[str, str]:
    """Files of a task's ``recorded`` folder by name inside the task. Raises ValueError when two answers collide."""
    spec = load(pack(TASKS / task)).spec
    files = {"recorded/README.md": readme}
    for step in walk(spec.kernel, replies, spec.entry):
        if files.setdefault(step.name, step.reply.text) != step.reply.text:
            raise ValueError(f"two answers for {step.name}")
    return files


def write(folders: Iterable[tuple[str, dict[str, str]]]) -> None:
    """Write the ``recorded`` folders of tasks afresh: (task, its files)."""
    for task, files in folders:
        shutil.rmtree(TASKS / task / "recorded", ignore_errors=True)
        for name, text in files.items():
            path = TASKS / task / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        sys.stderr.write(f"{task}: {len(files)} files\n")
