"""The OpenCL child inside a real run box: it sees its driver, computes, and sees nothing else of the host's Python."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import struct
from pathlib import Path

import pytest

from kfd.base.instant import SECOND
from kfd_worker.devices.opencl import find_runtime, probe
from kfd_worker.harness import child
from kfd_worker.launcher.harnesses import opencl_harness
from kfd_worker.launcher.places import base_interpreter, interpreter_mounts, package_masks
from kfd_worker.sandbox.box import Box, BoxLimits, Mount
from kfd_worker.sandbox.detect import detect
from kfd_worker.sandbox.runner import Sandbox
from kfd_worker.toolchains.port import NotInstalled

SOURCE = (
    "kernel void solve(global const int *x, global int *y, int n)\n"
    "{ const size_t i = get_global_id(0); y[i] = n * x[i]; }\n"
)
PLAN = {
    "scratch": [],
    "launches": [
        {"kernel": "solve", "grid": [4, 1, 1], "block": [8, 1, 1], "shared": 0,
         "args": [["arg", 0], ["arg", 1], ["scalar", "int32", 3]]}
    ],
}  # fmt: skip


async def test_a_kernel_is_loaded_and_run_inside_a_confined_box(tmp_path: Path) -> None:
    try:
        runtime = find_runtime(tmp_path)
    except NotInstalled as error:
        pytest.skip(str(error))
    facts = await asyncio.to_thread(probe, runtime, "cpu")
    (tmp_path / "empty").mkdir(mode=0o755)
    (tmp_path / "job").mkdir(mode=0o755)
    (tmp_path / "job" / "payload").write_text(SOURCE)
    harness = opencl_harness(runtime, facts, "cpu", tmp_path / "empty", 2)
    assert harness.facts()["device"] == facts["device"]
    sandbox: Sandbox = detect(str(tmp_path / "root"), accept_unsandboxed=False, hide=())
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.settimeout(30)
    with theirs:
        box = Box(
            name="run",
            argv=(base_interpreter(), "-I", "-S", "-B", harness.program, str(theirs.fileno()), *harness.arguments),
            mounts=(
                *interpreter_mounts(packages=False),
                *harness.mounts,
                *package_masks(tmp_path / "empty"),
                Mount(source=str(tmp_path / "job"), target="/job"),
            ),
            env=harness.env,
            fds=(theirs.fileno(),),
            uid=61999,
            limits=BoxLimits(wall_ns=60 * SECOND, memory_bytes=512 << 20, processes=32, file_bytes=1 << 20),
        )
        running = sandbox.start(box)
    fd = os.memfd_create("buffers")
    try:
        os.ftruncate(fd, 2 * child.PAGE)
        os.pwrite(fd, struct.pack("<32i", *range(32)), 0)

        def talk() -> list[tuple[int, int, bytes]]:
            answers = [child.ANSWER.unpack(ours.recv(child.ANSWER.size))]
            load = {"do": "load", "path": "/job/payload", "kind": "opencl-source", "options": ["-DN=1"], "nonce": 1}
            sets = [[["array", 0, 0, 1, 0, False], ["array", 0, child.PAGE, 1, 0, True]]]
            orders: list[tuple[bytes, list[int]]] = [
                (b"J" + json.dumps(load).encode(), []),
                (b"J" + json.dumps({"do": "map", "map": 1, "sets": sets, "plan": PLAN, "nonce": 2}).encode(), [fd]),
                (child.CALL.pack(b"C", 0, 1, 1, 3) + struct.pack("<H", 0), []),
            ]
            for data, fds in orders:
                socket.send_fds(ours, [data], fds)
                answers.append(child.ANSWER.unpack(ours.recv(child.ANSWER.size)))
            return [(kind, status, text.rstrip(b"\0")) for _, kind, _, status, _, text in answers]

        answers = await asyncio.to_thread(talk)
        assert answers == [(child.READY, 0, b""), (child.LOADED, 0, b""), (child.MAPPED, 0, b""), (child.DONE, 0, b"")]
        assert struct.unpack("<32i", os.pread(fd, 128, child.PAGE)) == tuple(3 * value for value in range(32))
    finally:
        ours.close()
        os.close(fd)
        ended = await running.wait()
        await sandbox.close()
    assert ended.code == 0, ended.log
