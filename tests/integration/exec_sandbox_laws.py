"""Laws that every sandboxed back end must hold; standard library only, so that any user's Python can run it.

``python -m tests.integration.exec_sandbox_laws FOLDER [HIDDEN ...]`` prints ``laws hold: BACKEND``.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import time
from pathlib import Path

from kfd.base.instant import MILLISECOND, SECOND
from kfd_worker.sandbox.box import Box, BoxLimits, Ended, Limit, Mount
from kfd_worker.sandbox.detect import detect
from kfd_worker.sandbox.runner import Sandbox

PYTHON = "/usr/bin/python3"


def box(*argv: str, wall_ns: int = 10 * SECOND, scratch: int = 4 << 20, **limits: int) -> Box:
    return Box(
        name="law",
        argv=argv,
        scratch_bytes=scratch,
        uid=61990,
        limits=BoxLimits(wall_ns=wall_ns, **limits),
    )


def shell(script: str, wall_ns: int = 10 * SECOND, **limits: int) -> Box:
    return box("/bin/sh", "-c", script, wall_ns=wall_ns, **limits)


def marked(mark: str) -> list[int]:
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            try:
                if mark.encode() in Path(f"/proc/{entry}/cmdline").read_bytes():
                    found.append(int(entry))
            except OSError:
                continue
    return found


async def nothing_survives(sandbox: Sandbox) -> None:
    mark = f"31{os.getpid()}"
    script = f"(setsid sleep {mark} &); (setsid setsid sleep {mark} &); trap '' TERM HUP INT; "
    ended = await sandbox.run(shell(script + "exit 7"))
    assert (ended.code, ended.limit) == (7, Limit.NONE), ended
    assert not marked(mark), "processes outlived a box that ended by itself"
    began = time.monotonic()
    ended = await sandbox.run(shell(script + f"sleep {mark}", wall_ns=300 * MILLISECOND))
    assert ended.limit is Limit.WALL, ended
    assert time.monotonic() - began < 1.3, "a box at its limit was not gone at once"
    assert not marked(mark), "processes outlived a box that was ended"


async def ends_are_told(sandbox: Sandbox) -> None:
    assert (await sandbox.run(shell("exit 3"))).code == 3
    ended = await sandbox.run(shell("kill -SEGV $$"))
    assert ended.signal == 11, ended
    assert ended.describe() == "was ended by signal SIGSEGV"
    assert ended.started
    ended = await sandbox.run(box("/nowhere/at/all"))
    assert ended.code in (126, 127), ended


async def output_is_kept_at_both_ends(sandbox: Sandbox) -> None:
    script = "echo first; i=0; while [ $i -lt 20000 ]; do echo filler filler filler; i=$((i+1)); done; echo last >&2"
    ended = await sandbox.run(shell(script, log_bytes=2000))
    assert ended.log.startswith(b"first\n")
    assert ended.log.endswith(b"last\n")
    assert len(ended.log) < 2100
    assert ended.log_dropped > 100_000
    ended = await sandbox.run(shell("exec cat /dev/zero", flood_bytes=10 << 20))
    assert ended.limit is Limit.OUTPUT, ended.limit
    ended = await sandbox.run(shell("echo apart; echo log >&2", stdout_bytes=100))
    assert (ended.stdout, ended.log) == (b"apart\n", b"log\n")
    ended = await sandbox.run(shell("exec cat /dev/zero", stdout_bytes=1000))
    assert ended.limit is Limit.OUTPUT
    assert len(ended.stdout) == 1000


async def memory_and_processes_are_bounded(sandbox: Sandbox) -> None:
    hog = "x = []\nwhile True: x.append(bytearray(1 << 22))"
    ended = await sandbox.run(box(PYTHON, "-c", hog, memory_bytes=128 << 20))
    assert ended.limit is Limit.MEMORY, ended
    assert ended.peak_bytes < 1 << 30
    bomb = (
        "import os, time\nn = 0\ntry:\n    while n < 500:\n        if os.fork() == 0: time.sleep(60)\n        n += 1\n"
    )
    bomb += "except OSError: pass\nprint(n)"
    ended = await sandbox.run(box(PYTHON, "-c", bomb, processes=32))
    assert ended.limit is Limit.NONE, ended
    assert int(ended.log) <= 36, ended.log
    ended = await sandbox.run(shell("exec head -c 100000000 /dev/zero >/scratch/big", scratch=8 << 20))
    assert ended.code, "the scratch space has no end"
    ended = await sandbox.run(shell("exec head -c 100000 /dev/zero >/scratch/big", file_bytes=10_000))
    assert ended.code, "files have no end"


async def the_host_is_not_there(sandbox: Sandbox, folder: Path) -> None:
    secret = folder / "secret"
    secret.write_text("the secret")
    secret.chmod(0o644)
    for place in (str(secret), "/etc/passwd", "/root", "/home", "/var", f"/proc/{os.getpid()}/environ", "/sys/class"):
        ended = await sandbox.run(shell(f"cat {place} || ls {place}"))
        assert ended.code, f"{place} can be read: {ended.log!r}"
    for place in ("/", "/usr", "/etc", "/dev", "/tmp", "/dev/shm", "/var/tmp"):
        ended = await sandbox.run(shell(f"echo x >{place}/file"))
        assert ended.code, f"{place} can be written"
    ended = await sandbox.run(shell("env; id -u; ls /proc | grep -c '^[0-9]'; hostname"))
    assert b"SECRET" not in ended.log
    ended = await sandbox.run(shell("cat /proc/1/environ /proc/1/maps"))
    assert b"SECRET" not in ended.log


async def nobody_can_be_reached(sandbox: Sandbox) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as local:
        port = server.getsockname()[1]
        local.bind(f"\0kfd-law-{os.getpid()}")
        local.listen()
        reach = (
            f"import socket\n"
            f"try: socket.create_connection(('127.0.0.1', {port}), 1); print('tcp')\nexcept OSError: pass\n"
            f"try:\n s = socket.socket(socket.AF_UNIX); s.connect('\\0kfd-law-{os.getpid()}'); print('unix')\n"
            "except OSError: pass\n"
            "try: socket.getaddrinfo('example.org', 80); print('dns')\nexcept OSError: pass"
        )
        ended = await sandbox.run(box(PYTHON, "-c", reach))
        assert (ended.code, ended.log) == (0, b""), ended
    ended = await sandbox.run(shell(f"kill -0 {os.getpid()}; kill -9 -1; kill -9 1"))
    ended = await sandbox.run(shell("mount -t tmpfs x /scratch || exit 9"))
    assert ended.code, "mounting is possible"
    for space in ("--user", "--user --map-root-user --mount", "--mount", "--pid"):
        ended = await sandbox.run(shell(f"unshare {space} /bin/true"))
        assert ended.code, f"unshare {space} is possible: {ended.log!r}"


async def mounts_and_descriptors_are_what_was_named(sandbox: Sandbox, folder: Path) -> None:
    (folder / "given").mkdir()
    (folder / "given" / "file").write_text("hello")
    os.chmod(folder / "given", 0o755)
    read, write = os.pipe()
    try:
        made = Box(
            name="law",
            argv=("/bin/sh", "-c", "cat /job/file; echo x >/job/file; ls /proc/self/fd"),
            scratch_bytes=1 << 20,
            uid=61990,
            fds=(write,),
            mounts=(Mount(source=str(folder / "given"), target="/job"),),
        )
        ended = await sandbox.run(made)
    finally:
        os.close(read)
        os.close(write)
    lines = ended.log.decode().split("\n")
    assert "hello" in lines[0], ended
    assert (folder / "given" / "file").read_text() == "hello"
    # 0, 1, 2, the one that was passed, and the one that lists.
    numbers = {int(line) for line in lines if line.isdigit()}
    assert write in numbers, numbers
    assert len(numbers) <= 5, numbers


async def many_at_once_leave_no_descriptor(sandbox: Sandbox) -> None:
    before = len(os.listdir("/proc/self/fd"))
    ended: list[Ended] = await asyncio.gather(*(sandbox.run(shell(f"exit {n}")) for n in range(12)))
    assert [one.code for one in ended] == list(range(12))
    assert len(os.listdir("/proc/self/fd")) == before
    job = asyncio.ensure_future(sandbox.run(shell("sleep 60", wall_ns=60 * SECOND)))
    await asyncio.sleep(0.1)
    job.cancel()
    await asyncio.gather(job, return_exceptions=True)
    assert len(os.listdir("/proc/self/fd")) == before
    assert not sandbox.roots()


async def hold(folder: Path, hide: tuple[str, ...]) -> str:
    """All laws, for the back end that is left when some are hidden; its name."""
    os.environ["KFD_SECRET"] = "SECRET"
    sandbox = detect(str(folder / "root"), hide=hide)
    await nothing_survives(sandbox)
    await ends_are_told(sandbox)
    await output_is_kept_at_both_ends(sandbox)
    await memory_and_processes_are_bounded(sandbox)
    await the_host_is_not_there(sandbox, folder)
    await nobody_can_be_reached(sandbox)
    await mounts_and_descriptors_are_what_was_named(sandbox, folder)
    await many_at_once_leave_no_descriptor(sandbox)
    await sandbox.close()
    return str(sandbox.backend)


if __name__ == "__main__":
    sys.stdout.write(f"laws hold: {asyncio.run(hold(Path(sys.argv[1]), tuple(sys.argv[2:])))}\n")
