"""The run side of the small judge: one child, its orders, its outputs held against double precision."""

from __future__ import annotations

import json
import os
import secrets
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch

from kfd.base.work import IncidentCode, VerdictCode
from kfd.tasks.spec import Role
from kfd_worker.harness import child, cuda_child
from kfd_worker.judge.arena import Arena
from kfd_worker.judge.compare import compare, poison, slack_touched
from kfd_worker.judge.gpu_clock import DeviceTimes, fault_code, read_times
from kfd_worker.toolchains.ptxas import parse_ptxas
from tests.gpu.drive import Built, Fault

__all__ = ["Runner", "verdict"]

_CHILD = Path(cuda_child.__file__)


class Runner:
    """One child with one kernel loaded."""

    def __init__(
        self, built: Built, *, options: tuple[str, ...] = (), patience_s: float = 20.0, library: str = ""
    ) -> None:
        self.built = built
        self.task = built.kernel.task
        self.patience_s = patience_s
        self.ready = b""
        self._arenas: dict[int, tuple[dict[str, Any], Arena, Arena]] = {}
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        library = library or os.environ.get("KFD_TEST_LIBCUDA", "")
        command = [sys.executable, "-I", "-S", str(_CHILD), str(theirs.fileno()), *([library] if library else [])]
        self.process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stderr=subprocess.PIPE)
        theirs.close()
        self._ours.settimeout(60)
        try:
            self._start(options)
        except Fault:
            self.close()
            raise

    def _start(self, options: tuple[str, ...]) -> None:
        kind, _, self.ready = self._heard("starting")
        if kind != child.READY:
            raise Fault(IncidentCode.DEVICE, "the child is not ready")
        self._ours.settimeout(self.patience_s)
        try:
            self._order(child.LOADED, do="load", path=str(self.built.path), options=list(options), **self.built.load)
        except Fault as error:
            raise Fault(VerdictCode.LOAD_ERROR, str(error)) from error

    def close(self) -> int:
        """End the child; its exit code."""
        self._ours.close()
        try:
            code = self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait(60)
        assert self.process.stderr is not None
        self.process.stderr.close()
        for _, inputs, outputs in self._arenas.values():
            inputs.close()
            outputs.close()
        return code

    def map(self, number: int, case: dict[str, Any], sets: int, *, repeat: int = 1, empty: bool = False) -> None:
        """Buffers of a case; ``empty`` maps a plan without a launch."""
        if number not in self._arenas:
            low = range(1, sets, 2)
            inputs = Arena(f"in-{number}", self.task.arrays(case, Role.IN), sets, writable=False, low=low)
            outputs = Arena(f"out-{number}", self.task.arrays(case, Role.OUT), sets, writable=True, low=low)
            self._arenas[number] = (case, inputs, outputs)
        _, inputs, outputs = self._arenas[number]
        plan = {"scratch": [], "launches": []} if empty else self.built.order(case)
        arguments = [self._arguments(index, case, inputs, outputs) for index in range(sets)]
        order = {"do": "map", "map": number, "sets": arguments, "plan": plan, "repeat": repeat}
        self._order(child.MAPPED, (inputs.fd, outputs.fd), **order)

    def _arguments(self, index: int, case: dict[str, Any], inputs: Arena, outputs: Arena) -> list[list[Any]]:
        made: list[list[Any]] = []
        for one in self.task.parameters:
            if one.role is Role.SIZE:
                made.append(["scalar", "int64", case[one.name]])
                continue
            out = one.role is Role.OUT
            region = (outputs if out else inputs).regions[index][one.name]
            made.append(["array", int(out), region.offset, region.spec.pages, region.start, out])
        return made

    def refresh(self, number: int, index: int, seed: int) -> dict[str, torch.Tensor]:
        """New inputs and poison for a set; the inputs."""
        case, inputs, outputs = self._arenas[number]
        values = self.task.inputs(case, seed)
        for name, region in inputs.regions[index].items():
            region.tensor.copy_(values[name])
        for region in outputs.regions[index].values():
            poison(region.tensor, secrets.randbits(62))
            for part in region.slack:
                part.fill_(77)
        return values

    def call(self, number: int, sets: list[int]) -> tuple[DeviceTimes, int]:
        """Device times and our own clock's nanoseconds. Raises Fault."""
        order = child.CALL.pack(b"C", 0, len(sets), number, 3) + struct.pack(f"<{len(sets)}H", *sets)
        began = time.monotonic_ns()
        self._ours.send(order)
        kind, status, text = self._heard("running")
        took = time.monotonic_ns() - began
        if kind == child.FAILED:
            raise Fault(fault_code(status), text.rstrip(b"\0").decode("utf-8", "replace"))
        times = read_times(text)
        if times is None:
            raise Fault(IncidentCode.INTERNAL, f"no times in {text[:40]!r}")
        return times, took

    def judge(self, number: int, index: int, values: dict[str, torch.Tensor]) -> None:
        """Compare a set's outputs. Raises Fault with incorrect."""
        case, _, outputs = self._arenas[number]
        want = self.task.oracle(values)
        for name, region in outputs.regions[index].items():
            touched = slack_touched(region.slack, 77)
            if touched:
                raise Fault(VerdictCode.INCORRECT, f"bytes {touched} the output {name} were written")
            difference = compare(region.tensor, want, self.task.tolerance)
            if not difference.passed:
                raise Fault(VerdictCode.INCORRECT, f"case {case['name']}: {difference.detail}")

    def _order(self, expected: int, fds: tuple[int, ...] = (), **order: Any) -> None:
        socket.send_fds(self._ours, [b"J" + json.dumps({**order, "nonce": 4}).encode()], list(fds))
        kind, status, text = self._heard(str(order["do"]))
        if kind != expected:
            raise Fault(fault_code(status), text.rstrip(b"\0").decode("utf-8", "replace"))

    def _heard(self, phase: str) -> tuple[int, int, bytes]:
        try:
            data = self._ours.recv(4096)
        except TimeoutError as error:
            self.process.kill()
            raise Fault(VerdictCode.TIMEOUT, f"no answer while {phase}") from error
        if not data:
            code = self.process.wait(60)
            assert self.process.stderr is not None
            said = self.process.stderr.read().decode("utf-8", "replace")[-300:]
            what = IncidentCode.DEVICE if code == cuda_child.EXIT_NO_DEVICE else VerdictCode.RUNTIME_ERROR
            raise Fault(what, f"the child ended with {code} while {phase}: {said}")
        _, kind, _, status, _, text = child.ANSWER.unpack(data)
        return kind, status, text


def verdict(built: Built, *, draws: int = 2, patience_s: float = 10.0, library: str = "") -> tuple[str, str]:
    """Check a kernel on every case, the smallest first, fresh inputs, two sets an order: its verdict and why."""
    cases = sorted(built.kernel.task.module.CASES, key=built.kernel.task.volume)
    try:
        runner = Runner(built, patience_s=patience_s, library=library)
        try:
            for number, case in enumerate(cases, start=1):
                runner.map(number, case, 2)
                for draw in range(draws):
                    values = [runner.refresh(number, index, 1000 * draw + index + 7) for index in range(2)]
                    runner.call(number, [0, 1])
                    for index in range(2):
                        runner.judge(number, index, values[index])
        finally:
            runner.close()
    except Fault as error:
        return error.code.value, str(error)[:300]
    uses = ", ".join(f"{one.name} {one.registers} registers" for one in parse_ptxas(built.log))
    return VerdictCode.OK.value, uses
