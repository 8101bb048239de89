"""``validate``: everything that can be said about a task without a daemon."""

from __future__ import annotations

import click

from kfd.base.failure import BadInput
from kfd.base.plain import plain
from kfd.tasks import load, pack, problems
from kfd.tasks.signature import c_signature
from kfd_client.cli import Context
from kfd_client.exits import Exit

__all__ = ["validate_command"]


@click.command("validate")
@click.argument("task", type=click.Path())
@click.pass_obj
def validate_command(context: Context, task: str) -> int:
    """Check TASK and list everything that is wrong with it, with file, line and mend."""
    try:
        archive = pack(task)
        found = problems(archive)
    except BadInput as error:
        found = [error]
    if context.json:
        told = [{"message": p.args[0], "file": p.file, "line": p.line, "mend": p.mend} for p in found]
        context.data({"ok": not found, "problems": told})
    elif found:
        for problem in found:
            context.say(plain(f"{problem}\n  next: {problem.mend}"))
        context.note(f"{len(found)} problem{'' if len(found) == 1 else 's'}")
    else:
        spec = load(archive).spec
        timed = sum(case.timed for case in spec.cases)
        blocks = "empty" if spec.kernel.is_empty else f"{len(spec.kernel.blocks)} EVOLVE block(s)"
        context.say(plain(f"{spec.name} is well formed ({spec.digest.short})"))
        context.say(plain(f"  targets   {', '.join(spec.targets)}, baseline {spec.baseline}"))
        context.say(plain(f"  kernel    {spec.kernel.path}, {blocks}: {c_signature(spec)}"))
        context.say(f"  cases     {len(spec.cases)}, {timed} timed; tolerance {spec.tolerance.error_class}")
        context.say(f"  next      kfd-client submit {task}")
    return int(Exit.FAILED) if found else int(Exit.DONE)
