"""The CUDA child against a driver made of host memory: orders, buffers, misdeeds, the end of a lost device."""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kfd_worker.harness import child, cuda_child, cuda_memory
from kfd_worker.judge.gpu_clock import read_times

FOLDER = Path(child.__file__).parent
PAGES = 2
COUNT = 1500


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("cuda") / "libfake.so"
    source = Path(__file__).with_name("cuda_fake.cpp")
    subprocess.run(["g++", "-O1", "-shared", "-fPIC", "-o", library, source], check=True, timeout=120)
    return library


class Box:
    """A child with one map of two sets: x (read), y (written), n."""

    def __init__(self, driver: Path, folder: Path, env: dict[str, str]) -> None:
        self.folder = folder
        self.ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.ours.settimeout(30)
        command = [sys.executable, "-I", "-S", str(FOLDER / "cuda_child.py"), str(theirs.fileno()), str(driver)]
        self.process = subprocess.Popen(command, pass_fds=[theirs.fileno()], env=env, stderr=subprocess.PIPE)
        theirs.close()
        self.files = [os.memfd_create("in"), os.memfd_create("out")]
        for fd in self.files:
            os.ftruncate(fd, 2 * PAGES * 4096)
        self.x, self.y = (mmap.mmap(fd, 2 * PAGES * 4096) for fd in self.files)
        self.start = (PAGES * 4096 - COUNT * 4) // 64 * 64

    def close(self) -> int:
        """Hang up; the exit code."""
        self.ours.close()
        code = self.process.wait(30)
        assert self.process.stderr is not None
        self.process.stderr.close()
        return code

    def heard(self) -> tuple[int, int, bytes]:
        _, kind, _, status, _, text = child.ANSWER.unpack(self.ours.recv(4096))
        return kind, status, text

    def order(self, fds: tuple[int, ...] = (), **order: Any) -> tuple[int, int, bytes]:
        socket.send_fds(self.ours, [b"J" + json.dumps({**order, "nonce": 5}).encode()], list(fds))
        return self.heard()

    def load(self, image: bytes = b"cubin", **more: Any) -> tuple[int, int, bytes]:
        path = self.folder / "payload"
        path.write_bytes(image)
        return self.order(do="load", path=str(path), **more)

    def map(self, kernel: str, more: tuple[list[Any], ...] = (), scratch: tuple[int, ...] = (), **extra: Any) -> Any:
        launch = {
            "kernel": kernel,
            "grid": [2, 1, 1],
            "block": [64, 1, 1],
            "shared": 0,
            "args": [["arg", 0], ["arg", 1], ["arg", 2], *more],
        }
        arrays = [
            [["array", which, at * PAGES * 4096, PAGES, self.start, which == 1] for which in (0, 1)] for at in range(2)
        ]
        sets = [[*pair, ["scalar", "int64", COUNT]] for pair in arrays]
        plan = {"scratch": list(scratch), "launches": [launch]}
        return self.order(tuple(self.files), do="map", map=1, sets=sets, plan=plan, **extra)

    def call(self, *sets: int, number: int = 1) -> tuple[int, int, bytes]:
        order = child.CALL.pack(b"C", 0, len(sets), number, 9) + struct.pack(f"<{len(sets)}H", *sets)
        self.ours.send(order)
        return self.heard()


@pytest.fixture
def opened(driver: Path, tmp_path: Path) -> Iterator[Callable[..., Box]]:
    boxes: list[Box] = []

    def make(**env: str) -> Box:
        boxes.append(Box(driver, tmp_path, env))
        return boxes[-1]

    yield make
    for box in boxes:
        box.ours.close()
        box.process.kill()
        box.process.wait(30)
        if box.process.stderr is not None:
            box.process.stderr.close()


def fill(box: Box) -> None:
    values = struct.pack(f"<{COUNT}f", *range(COUNT))
    for at in range(2):
        first = at * PAGES * 4096 + box.start
        box.x[first : first + COUNT * 4] = values
        box.y[at * PAGES * 4096 : (at + 1) * PAGES * 4096] = b"\xa5" * PAGES * 4096


def outputs(box: Box, index: int) -> tuple[float, ...]:
    first = index * PAGES * 4096 + box.start
    return struct.unpack(f"<{COUNT}f", box.y[first : first + COUNT * 4])


@pytest.mark.parametrize("env", [{}, {"FAKE_NO_WAIT": "1"}], ids=["wait", "spin"])
def test_a_call_computes_leaves_slack_alone_and_tells_the_time(opened: Callable[..., Box], env: dict[str, str]) -> None:
    box = opened(**env)
    kind, _, text = box.heard()
    assert kind == child.READY
    assert text.startswith(b"sm_90 shield=" + (b"spin" if env else b"wait"))
    fill(box)
    assert box.load()[0] == child.LOADED
    assert box.map("double")[0] == child.MAPPED
    kind, status, text = box.call(0, 1, 0)
    assert (kind, status) == (child.DONE, 0)
    for index in range(2):
        assert outputs(box, index) == tuple(2.0 * value for value in range(COUNT))
        first = index * PAGES * 4096
        assert box.y[first : first + box.start] == b"\xa5" * box.start
    times = read_times(text)
    assert times is not None
    assert times.calls == 3
    assert times.shielded
    assert times.floor_ns == 1200
    assert times.median_ns == 51_200
    assert times.total_ns == 3 * 51_200
    assert times.each_ns == (51_200,) * 3
    assert box.call()[0] == child.DONE
    assert box.close() == 0


def test_slack_bytes_that_a_kernel_writes_reach_the_judge(opened: Callable[..., Box]) -> None:
    box = opened()
    box.heard()
    # Arrays that start at their first page have their slack behind them.
    box.start = 0
    fill(box)
    box.load()
    box.map("next_to")
    assert box.call(0)[:2] == (child.DONE, 0)
    end = COUNT * 4
    assert struct.unpack("<f", box.y[end + 8 : end + 12]) == (3.0,)
    assert box.y[end : end + 8] == b"\xa5" * 8


@pytest.mark.parametrize(
    ("kernel", "status", "words"),
    [
        ("overrun", cuda_memory.STATUS_RED_ZONE, b"behind array 1"),
        ("before", cuda_memory.STATUS_RED_ZONE, b"before the first array"),
        ("scribble", cuda_memory.STATUS_INPUT, b"array 0, an input, was written"),
    ],
)
def test_what_a_kernel_writes_elsewhere_is_seen_and_the_box_lives_on(
    opened: Callable[..., Box], kernel: str, status: int, words: bytes
) -> None:
    box = opened()
    box.heard()
    fill(box)
    box.load()
    box.map(kernel)
    kind, got, text = box.call(0)
    assert (kind, got) == (child.FAILED, status)
    assert words in text
    box.map("double")
    assert box.call(0)[:2] == (child.DONE, 0)


def test_outputs_are_poisoned_again_before_every_call(opened: Callable[..., Box]) -> None:
    box = opened()
    box.heard()
    fill(box)
    box.load()
    box.map("double")
    box.call(0)
    box.y[:] = b"\x5a" * len(box.y)
    box.map("half")
    assert box.call(0)[0] == child.DONE
    last = box.start + COUNT * 4
    assert box.y[last - 4 : last] == b"\x5a" * 4


def test_scratch_is_passed_and_guarded(opened: Callable[..., Box]) -> None:
    box = opened()
    box.heard()
    fill(box)
    box.load()
    more = (["scratch", 0], ["scalar", "int64", 256 - 64])
    assert box.map("scratch", more, (256,))[0] == child.MAPPED
    assert box.call(0)[:2] == (child.DONE, 0)
    more = (["scratch", 0], ["scalar", "int64", 300])
    box.map("scratch", more, (256,))
    kind, status, text = box.call(0)
    assert (kind, status) == (child.FAILED, cuda_memory.STATUS_RED_ZONE)
    assert b"behind scratch buffer 0" in text


def test_hidden_arguments_follow_the_kernels_own(opened: Callable[..., Box]) -> None:
    box = opened()
    box.heard()
    fill(box)
    box.load(b"xxcubin", modules=[[2, 5]], kernels={"k/4": [0, "hidden", [0, 128]]})
    assert box.map("k/4")[0] == child.MAPPED
    box.call(0)
    assert outputs(box, 0)[0] == 1.0


def test_a_lost_device_ends_the_process_with_its_own_code(opened: Callable[..., Box]) -> None:
    box = opened()
    box.heard()
    fill(box)
    box.load()
    box.map("trap")
    kind, status, text = box.call(0)
    assert (kind, status) == (child.FAILED, cuda_child.STATUS_LOST)
    assert b"CUDA_ERROR_LAUNCH_FAILED (719)" in text
    assert box.process.wait(30) == cuda_child.EXIT_STICKY


@pytest.mark.parametrize(
    ("image", "kernel", "words"), [(b"bad", "double", b"(200)"), (b"cubin", "missing", b"(500)")], ids=["image", "name"]
)
def test_code_that_cannot_be_loaded_fails_the_order_and_not_the_box(
    opened: Callable[..., Box], image: bytes, kernel: str, words: bytes
) -> None:
    box = opened()
    box.heard()
    first = box.load(image)
    second = box.map(kernel)
    assert {first[0], second[0]} & {child.FAILED}
    assert words in first[2] + second[2]
    assert box.load()[0] == child.LOADED
    assert box.close() == 0


def test_a_plan_that_does_not_fit_the_kernel_is_refused_before_the_launch(opened: Callable[..., Box]) -> None:
    box = opened()
    box.heard()
    box.load()
    kind, status, text = box.map("double", (["scalar", "int32", 1],))
    assert (kind, status) == (child.FAILED, cuda_memory.STATUS_PLAN)
    assert b"double takes parameters of [8, 8, 8] bytes, the launch plan gives [8, 8, 8, 4]" in text


def test_more_memory_than_there_is_fails_the_order(opened: Callable[..., Box]) -> None:
    box = opened()
    box.heard()
    box.load()
    kind, status, text = box.map("double", (), (1 << 45,))
    assert (kind, status) == (child.FAILED, cuda_memory.STATUS_MEMORY)
    assert b"device memory" in text
    assert box.map("double")[0] == child.MAPPED


def test_a_launch_that_waits_for_the_device_does_not_wait_for_the_shield_for_ever(opened: Callable[..., Box]) -> None:
    box = opened()
    box.heard()
    fill(box)
    box.load()
    box.map("waits")
    times = read_times(box.call(0)[2])
    assert times is not None
    assert not times.shielded
    box.map("double")
    again = read_times(box.call(0)[2])
    assert again is not None
    assert again.shielded


def test_what_a_kernel_prints_blocks_nothing(opened: Callable[..., Box]) -> None:
    box = opened()
    box.heard()
    fill(box)
    box.load()
    box.map("noisy")
    assert box.call(0)[:2] == (child.DONE, 0)
    assert outputs(box, 0)[3] == 6.0


def test_many_repeats_run_unshielded(opened: Callable[..., Box]) -> None:
    box = opened()
    box.heard()
    fill(box)
    box.load()
    box.map("double", repeat=100)
    times = read_times(box.call(0)[2])
    assert times is not None
    assert not times.shielded
    assert times.median_ns == pytest.approx(5_001_200, rel=1e-3)


def test_no_device_is_told_apart_from_a_bad_candidate(opened: Callable[..., Box]) -> None:
    box = opened(FAKE_NO_DEVICE="1")
    assert box.process.wait(30) == cuda_child.EXIT_NO_DEVICE


def test_inputs_that_are_sealed_can_be_mapped(opened: Callable[..., Box]) -> None:
    box = opened()
    box.heard()
    sealed = os.memfd_create("sealed", os.MFD_ALLOW_SEALING)
    os.ftruncate(sealed, 2 * PAGES * 4096)
    fcntl.fcntl(sealed, 1033, 0x10 | 0x2 | 0x4 | 0x1)
    box.files[0] = sealed
    box.load()
    assert box.map("double")[0] == child.MAPPED
    assert box.call(1)[:2] == (child.DONE, 0)
