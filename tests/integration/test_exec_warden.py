"""The warden reads CPU time of processes that the judge cannot see."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from kfd_worker.judge.meter import Meter
from kfd_worker.launcher.warden import Warden

WORKS_WHEN_TOLD = (
    "import sys, threading\n"
    "print('up', flush=True)\n"
    "for line in sys.stdin:\n"
    "    work = lambda: sum(range(int(line.split()[1])))\n"
    "    if line[0] == 'h':\n"
    "        t = threading.Thread(target=work); t.start(); t.join()\n"
    "    else: work()\n"
    "    print('done', flush=True)\n"
)


def test_work_of_the_first_thread_and_of_helpers_that_have_ended_is_told_apart() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WORKS_WHEN_TOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdout.readline()  # a process that has not run yet has used no time
        warden = Warden([child.pid])
        meter = Meter(warden.theirs)
        try:

            def spent(order: str) -> tuple[int, int]:
                assert child.stdin is not None
                assert child.stdout is not None
                before = meter.read(0)
                child.stdin.write(f"{order}\n")
                child.stdin.flush()
                child.stdout.readline()
                after = meter.read(0)
                assert after.at_ns > before.at_ns
                return after.process_ns - before.process_ns, after.first_ns - before.first_ns

            assert meter.note(0).process_ns > 0
            whole, first = spent("m 3000000")
            assert first > whole / 2
            whole, first = spent("h 3000000")
            assert first < whole / 2
            child.stdin.close()
            child.wait()
            assert meter.read(0).process_ns == -1
        finally:
            warden.close()


@pytest.mark.parametrize(("code", "threads"), [("while True:\n    pass", 1), ("input()", 0)])
def test_threads_that_are_awake_are_told_from_those_that_sleep(code: str, threads: int) -> None:
    command = [sys.executable, "-c", f"print('up', flush=True)\n{code}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        warden = Warden([child.pid])
        meter = Meter(warden.theirs)
        try:
            assert meter.awake(0) == -1  # nobody has noted it yet
            meter.note(0)
            stop_at = time.monotonic() + 20
            while meter.awake(0) != threads and time.monotonic() < stop_at:
                pass
            assert meter.awake(0) == threads
            child.kill()
            child.wait()
            assert meter.awake(0) == -1
        finally:
            warden.close()


def test_a_warden_that_is_closed_leaves_no_thread_and_no_descriptor() -> None:
    def held() -> tuple[int, int]:
        return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))

    files, threads = held()
    for _ in range(20):
        Warden([os.getpid()]).close()
    stop_at = time.monotonic() + 20
    while held() > (files, threads) and time.monotonic() < stop_at:
        pass  # a thread that was joined is in the list until the kernel has cleaned up after it
    # Threads of other tests may have been in the list before.
    assert held()[0] == files
    assert held()[1] <= threads
