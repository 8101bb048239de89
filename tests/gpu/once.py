"""One unshielded call of one kernel, for profilers and checkers: ``python -m tests.gpu.once TASK [PROGRAM]``."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.gpu import hostile_cuda, hostile_triton
from tests.gpu.drive import Fault, Kernel, build, open_task, scratch_folder
from tests.gpu.programs import with_block
from tests.gpu.runner import Runner


def main(arguments: list[str]) -> int:
    """Build, load with ``plain``, call once on the first case."""
    task = open_task(arguments[0])
    text = task.text
    if len(arguments) > 1:
        programs = (*hostile_cuda.PROGRAMS, *hostile_triton.PROGRAMS)
        wanted = next(one for one in programs if (one.task, one.name) == (arguments[0], arguments[1]))
        text = with_block(text, wanted.block)
    with scratch_folder() as folder:
        runner = Runner(build(Kernel(task, text), Path(folder) / "once"), options=("plain",), patience_s=200.0)
        try:
            runner.map(1, task.module.CASES[0], 1)
            runner.refresh(1, 0, 1)
            runner.call(1, [0])
        except Fault as fault:
            sys.stderr.write(f"{fault}\n")
            return 1
        finally:
            runner.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
