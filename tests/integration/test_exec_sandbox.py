"""Every back end holds the same laws, as whoever runs the tests and as an ordinary user."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kfd.base.instant import SECOND
from kfd_worker.sandbox.box import Backend, Box, BoxError, BoxLimits, Limit
from kfd_worker.sandbox.detect import detect
from tests.integration.exec_rig import until
from tests.integration.exec_sandbox_laws import hold, marked

REPOSITORY = Path(__file__).resolve().parents[2]
HIDDEN = [(), ("bwrap",), ("cgroup",), ("bwrap", "cgroup")]


@pytest.mark.parametrize(
    "hide",
    [
        pytest.param(hide, marks=() if len(hide) < 2 else pytest.mark.slow, id="-".join(hide) or "all")
        for hide in HIDDEN
    ],
)
async def test_every_back_end_holds_the_laws(tmp_path: Path, hide: tuple[str, ...]) -> None:
    expected = "unshare" if "bwrap" in hide or not shutil.which("bwrap") else "bwrap"
    assert await hold(tmp_path, hide) == expected


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize(
    "hide", [pytest.param((), id="bwrap"), pytest.param(("bwrap",), id="unshare", marks=pytest.mark.slow)]
)
def test_an_ordinary_user_has_the_same_laws(tmp_path: Path, hide: tuple[str, ...]) -> None:
    python = "/usr/bin/python3"
    ordinary = ["setpriv", "--reuid", "1000", "--regid", "1000", "--clear-groups", "--"]
    paths = f"{REPOSITORY}:{REPOSITORY / 'worker'}"
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1", "HOME": "/"}
    look = "import sys, kfd; assert sys.version_info >= (3, 11)"
    if subprocess.run([*ordinary, python, "-c", look], env=env, cwd="/", capture_output=True).returncode:
        pytest.skip("an ordinary user has no Python 3.11 or cannot read this folder")
    folder = Path("/tmp") / f"kfd-laws-{os.getpid()}-{len(hide)}"
    folder.mkdir(mode=0o755)
    try:
        os.chown(folder, 1000, 1000)
        command = [*ordinary, python, "-m", "tests.integration.exec_sandbox_laws", str(folder), *hide]
        done = subprocess.run(command, env=env, cwd="/", capture_output=True, timeout=60, text=True)
        assert done.returncode == 0, done.stderr
        assert done.stdout == f"laws hold: {'unshare' if hide else 'bwrap'}\n"
    finally:
        shutil.rmtree(folder)


def test_no_sandbox_is_a_refusal_that_names_the_flag(tmp_path: Path) -> None:
    with pytest.raises(BoxError, match="--accept-unsandboxed"):
        detect(str(tmp_path / "root"), hide=("bwrap", "unshare"))


async def test_what_runs_without_a_sandbox_is_still_ended_as_a_whole(tmp_path: Path) -> None:
    sandbox = detect(str(tmp_path / "root"), hide=("bwrap", "unshare"), accept_unsandboxed=True)
    assert sandbox.backend is Backend.PLAIN
    mark = f"32{os.getpid()}"
    script = f"(setsid sleep {mark} &); (setsid setsid sleep {mark} &); echo $HOME; sleep {mark}"
    box = Box(name="p", argv=("/bin/sh", "-c", script), scratch_bytes=1 << 20, limits=BoxLimits(wall_ns=SECOND // 2))
    began = time.monotonic()
    ended = await sandbox.run(box)
    assert ended.limit is Limit.WALL
    assert time.monotonic() - began < 2
    assert not marked(mark)
    assert not os.path.exists(ended.log.decode().strip())  # noqa: ASYNC240 - a look at one name


async def test_a_box_whose_launcher_is_killed_dies_with_it(tmp_path: Path) -> None:
    mark = f"33{os.getpid()}"
    for hide in ("()", "('bwrap',)"):
        code = (
            "import asyncio\nfrom kfd_worker.sandbox.detect import detect\nfrom kfd_worker.sandbox.box import Box\n"
            f"sandbox = detect({str(tmp_path / 'root')!r}, hide={hide})\n"
            f"box = Box(name='k', argv=('/bin/sh', '-c', 'setsid sleep {mark} & sleep {mark}'))\n"
            "asyncio.run(sandbox.run(box))\n"
        )
        launcher = await asyncio.create_subprocess_exec(sys.executable, "-c", code)
        assert await until(lambda: len(sleepers(mark)) >= 2, 10)
        launcher.kill()
        await launcher.wait()
        assert await until(lambda: not sleepers(mark), 1)


def sleepers(mark: str) -> list[int]:
    found = []
    for pid in marked(mark):
        try:
            if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"sleep\0"):
                found.append(pid)
        except OSError:
            continue
    return found
