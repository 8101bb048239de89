"""The filter of system calls: what it lets through and what it ends, in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kfd_worker.harness import confine

RUN = f"""
import sys
sys.path.insert(0, {str(Path(confine.__file__).parent)!r})
import ctypes, os, signal, threading
from confine import confine
assert confine() == ""
libc = ctypes.CDLL(None, use_errno=True)
"""
SIGSYS = -31

pytestmark = pytest.mark.skipif(os.uname().machine not in confine.ARCHITECTURES, reason="no filter for this machine")


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", RUN + code], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    "code",
    [
        "os.fork()",
        "os.execv('/bin/true', ['true'])",
        "libc.shmget(0, 4096, 0o1600)",
        "os.memfd_create('x')",
        "libc.ptrace(0, 0, 0, 0)",
        "libc.setitimer(0, ctypes.create_string_buffer(32), None)",
        "libc.unshare(0x10000000)",
        "libc.syscall(425, 1, ctypes.create_string_buffer(256))",
        "import subprocess; subprocess.run(['true'])",
    ],
)
def test_what_a_kernel_never_needs_ends_the_process(code: str) -> None:
    assert run(code).returncode == SIGSYS


def test_threads_memory_and_time_are_free() -> None:
    done = run(
        "import time\n"
        "threads = [threading.Thread(target=lambda: sum(range(1000))) for _ in range(4)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]\n"
        "data = bytearray(1 << 24); time.sleep(0.001); os.sched_setaffinity(0, os.sched_getaffinity(0))\n"
        "print('fine')"
    )
    assert done.stdout == "fine\n", done.stderr


def test_signals_cannot_be_handled_and_threads_keep_the_filter() -> None:
    done = run(
        "try:\n    signal.signal(signal.SIGUSR1, lambda *_: None)\nexcept PermissionError:\n    print('refused')\n"
        "sys.stdout.flush()\n"
        "t = threading.Thread(target=os.fork); t.start(); t.join()"
    )
    assert done.stdout == "refused\n"
    assert done.returncode == SIGSYS


def test_the_other_calling_convention_is_closed_too() -> None:
    if os.uname().machine != "x86_64":
        pytest.skip("x32 is an x86-64 matter")
    assert run("libc.syscall(0x40000000 + 39)").returncode == SIGSYS


def test_an_unknown_machine_has_no_filter() -> None:
    with pytest.raises(KeyError):
        confine.program("vax")
