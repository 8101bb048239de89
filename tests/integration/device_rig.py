"""Builds of device-form tasks in real boxes, and a child that is spoken to as the judge does, for tests."""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
import mmap
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from kfd.base.digest import digest_of
from kfd.base.work import BuildSpec, JobSpec, Limits
from kfd.tasks import load, pack
from kfd.tasks.spec import Role, TaskSpec
from kfd_worker.devices.opencl import find_runtime
from kfd_worker.harness import child, opencl_child
from kfd_worker.judge.device_plan import load_order, plan_order
from kfd_worker.launcher.client import LauncherClient
from kfd_worker.launcher.config import JobDone
from kfd_worker.toolchains import package
from kfd_worker.toolchains.port import NotInstalled

TASKS = Path(__file__).resolve().parents[2] / "tasks"
_ANSWER_S = 60


def missing(toolchain: str, folder: Path) -> str:
    """Why a toolchain cannot be tried on this machine; empty when it can."""
    try:
        find_runtime(folder)
        if toolchain == "sycl":
            importlib.metadata.version("intel-sycl-rt")
    except (NotInstalled, importlib.metadata.PackageNotFoundError) as error:
        return f"{toolchain} is not installed: {error}"
    return ""


async def build(client: LauncherClient, cache: Path, name: str, source: str = "", **choices: Any) -> JobDone:
    """Build a task's kernel (or ``source`` in its place); ``choices`` are fields of the BuildSpec."""
    archive = pack(TASKS / name)
    spec = load(archive).spec
    digest = digest_of(archive)
    (cache / digest.hash).write_bytes(archive)
    fields = {"toolchain": spec.toolchain, "target": spec.targets[0], **choices}
    work = BuildSpec(task=digest, source=source or spec.kernel.text, kernel_path=spec.kernel.path, **fields)
    ref = f"{name}-{digest_of(repr(work).encode()).short}/1"
    job = JobSpec(work=work, limits=Limits())
    return await client.run(ref, "build-0", job, {digest.hash: cache / digest.hash}, lambda _: None)


async def package_of(client: LauncherClient, cache: Path, name: str, source: str = "", **choices: Any) -> bytes:
    """The package of a build that must be good."""
    done = await build(client, cache, name, source, **choices)
    assert done.artifact is not None, (done.report.outcome, done.report.log_tail)
    return await asyncio.to_thread(done.artifact.read_bytes)


class ChildRig:
    """One child process with a kernel in it."""

    def __init__(self, folder: Path, data: bytes, *, options: Sequence[str] = ()) -> None:
        self.header, payload = package.read(data)
        runtime = find_runtime(folder)
        (folder / "payload").write_bytes(payload)
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._ours.settimeout(_ANSWER_S)
        with theirs:
            fd = theirs.fileno()
            os.set_inheritable(fd, True)
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-B", opencl_child.__file__, str(fd), runtime.loader, "cpu"],
                pass_fds=(fd,),
                env={"PATH": "/usr/bin:/bin", **dict(runtime.environment(threads=2))},
                stderr=subprocess.PIPE,
            )
        self._nonce = 0
        self.kind = self._receive()[1]
        order = load_order(self.header, str(folder / "payload"))
        order["options"] += options
        self.loaded = self.order(order)

    def close(self) -> None:
        """Hang up and wait for the end."""
        self._ours.close()
        self.process.kill()
        self.process.communicate()

    def _receive(self) -> tuple[Any, ...]:
        data = self._ours.recv(child.ANSWER.size + 1)
        assert data, f"the child is gone: {((self.process.stderr and self.process.stderr.read()) or b'').decode()}"
        return child.ANSWER.unpack(data)

    def order(self, order: Mapping[str, Any], fds: Sequence[int] = ()) -> tuple[int, int, str]:
        """(kind, status, text) of the answer to an order."""
        self._nonce += 1
        data = b"J" + json.dumps({**order, "nonce": self._nonce}).encode()
        socket.send_fds(self._ours, [data], list(fds))
        _, kind, nonce, status, _, text = self._receive()
        assert nonce == self._nonce
        return kind, status, text.rstrip(b"\0").decode()

    def call(self, number: int, indices: Sequence[int]) -> tuple[int, int]:
        """(kind, status) of the answer to a call."""
        self._nonce += 1
        order = child.CALL.pack(b"C", 0, len(indices), number, self._nonce) + struct.pack(f"<{len(indices)}H", *indices)
        self._ours.send(order)
        _, kind, nonce, status, _, _ = self._receive()
        assert nonce == self._nonce
        return kind, status


class Buffers:
    """Arrays of one case in one memory file, each on pages of its own, as often as there are sets."""

    def __init__(self, spec: TaskSpec, inputs: Sequence[Mapping[str, torch.Tensor]], shapes: Mapping[str, Any]) -> None:
        self.outputs: list[dict[str, torch.Tensor]] = []
        self.sets: list[list[list[Any]]] = []
        pages = {name: -(-4 * int(torch.Size(shape).numel()) // child.PAGE) for name, shape in shapes.items()}
        total = sum(pages.values()) * len(inputs) * child.PAGE
        self.fd = os.memfd_create("buffers")
        os.ftruncate(self.fd, total)
        self._memory = mmap.mmap(self.fd, total)
        at = 0
        for values in inputs:
            arguments: list[list[Any]] = []
            outputs: dict[str, torch.Tensor] = {}
            for parameter in spec.parameters:
                if parameter.role is Role.SIZE:
                    arguments.append(["scalar", "int64", shapes_size(spec, parameter.name, values)])
                    continue
                shape = shapes[parameter.name]
                count = int(torch.Size(shape).numel())
                view = torch.frombuffer(self._memory, dtype=torch.float32, count=count, offset=at).reshape(shape)
                written = parameter.role is Role.OUT
                if written:
                    view.fill_(float("nan"))
                    outputs[parameter.name] = view
                else:
                    view.copy_(values[parameter.name])
                arguments.append(["array", 0, at, pages[parameter.name], 0, written])
                at += pages[parameter.name] * child.PAGE
            self.sets.append(arguments)
            self.outputs.append(outputs)

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self.fd)


def shapes_size(spec: TaskSpec, name: str, values: Mapping[str, torch.Tensor]) -> int:
    """A size, read from the first input whose shape names it."""
    for parameter in spec.parameters:
        if parameter.role is Role.IN and name in parameter.shape:
            return int(values[parameter.name].shape[parameter.shape.index(name)])
    raise KeyError(name)


def map_order(header: Mapping[str, Any], sizes: Mapping[str, int], buffers: Buffers) -> dict[str, Any]:
    """The map order of a case, numbered 1."""
    return {"do": "map", "map": 1, "sets": buffers.sets, "plan": plan_order(header, sizes, 1 << 30)}
