"""The judge: one long-lived process for each run slot, in a box of its own, with torch imported once.

It holds the task, the secret seed, the expected values and the clock. It gets one order at a time from the
launcher (descriptors of the task archive and of each run box's socket come with it) and sends ``stage``,
``alive`` and one ``done`` message back.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from kfd.base.codec import decode, encode
from kfd.base.instant import MILLISECOND, Span
from kfd.base.measure import speedup
from kfd.base.work import (
    AdmitResult,
    AdmitSpec,
    CaseResult,
    Comparison,
    Incident,
    IncidentCode,
    Limits,
    Roof,
    RunResult,
    RunSpec,
    Stage,
    Verdict,
    VerdictCode,
)
from kfd_worker.judge.admit import Admission, admit
from kfd_worker.judge.benchmark import benchmark
from kfd_worker.judge.channel import receive, send
from kfd_worker.judge.check import CheckNotes, check
from kfd_worker.judge.draws import Draws, Pools
from kfd_worker.judge.faults import BaselineFault, CandidateFault, DeviceFault, ReferenceFault, SideLost
from kfd_worker.judge.floor import GPU_BYTES_PER_S, write_rate
from kfd_worker.judge.gpu_side import GpuSide
from kfd_worker.judge.machine import environment, steal_ticks
from kfd_worker.judge.meter import Meter
from kfd_worker.judge.side import Side
from kfd_worker.judge.taskcode import LoadedTask, draw_seed
from kfd_worker.toolchains.package import HOST_FORM, INTERPRETED, ON_GPU

__all__ = ["Judge", "main"]

ARTIFACT = "/job/kernel.so"
_MAX_ARCHIVE = 1 << 30
_MAX_ADMISSIONS = 1000


class Judge:
    """Follows orders; keeps the last task warm."""

    def __init__(self, channel: socket.socket, scratch: Path, threads: int) -> None:
        self._channel = channel
        self._scratch = scratch
        self._threads = threads
        self._task: LoadedTask | None = None
        self._admissions: dict[str, Admission] = {}
        self.bytes_per_s = write_rate(threads)
        """What this machine can write at most."""

    def serve(self) -> None:
        """Serve until the launcher hangs up."""
        send(self._channel, {"type": "ready"})
        while (received := receive(self._channel)) is not None:
            message, fds = received
            if message["type"] == "admit":
                send(self._channel, self._admit(message, fds[0]))
            else:
                send(self._channel, _Run(self, message, fds).done())

    @property
    def threads(self) -> int:
        """Threads that every side may use."""
        return self._threads

    def say(self, message: dict[str, Any]) -> None:
        """Tell the launcher something about the running job."""
        send(self._channel, message)

    def task(self, fd: int, digest: str) -> LoadedTask:
        """The task of an archive, warm when it was the last one. Raises ReferenceFault."""
        if self._task is not None and str(self._task.digest) == digest:
            return self._task
        if self._task is not None:
            self._task.close()
            self._task = None
        with os.fdopen(os.dup(fd), "rb") as file:
            archive = file.read(_MAX_ARCHIVE)
        self._task = LoadedTask(archive, self._scratch, self._threads)
        return self._task

    def _admit(self, message: dict[str, Any], fd: int) -> dict[str, Any]:
        """Prove a task, whoever has done so before: the asker has a secret of its own."""
        spec = decode(AdmitSpec, message["spec"])
        found: Admission | None = None
        detail: AdmitResult | None = None
        steal = steal_ticks()
        try:
            task = self.task(fd, str(spec.task))
            found = admit(task, lambda phase: self.say({"type": "alive", "phase": phase}), spec.seed)
            detail = found.result(task.spec.cases)
            code = VerdictCode.OK if found.admitted else VerdictCode.INCORRECT
            outcome: Verdict | Incident = Verdict(code=code, text=found.reason)
        except ReferenceFault as error:
            outcome = Incident(code=IncidentCode.REFERENCE, text=str(error))
        except Exception as error:  # noqa: BLE001 - an unforeseen fault of ours must be told, not fatal
            text = f"the judge failed while proving the task: {type(error).__name__}: {error}"
            outcome = Incident(code=IncidentCode.INTERNAL, text=text)
        finally:
            os.close(fd)
        return {
            "type": "done",
            "outcome": encode(outcome),
            "result": encode(detail),
            "environment": encode(environment(self._threads, steal_ticks() - steal)),
            "admission": None if found is None else found.to_json(),
        }

    def admission(self, task: LoadedTask, known: Admission | None, progress: Callable[[str], None]) -> Admission:
        """Whether a task is fit to judge by; probed once for each task unless it is known. Raises ReferenceFault."""
        digest = str(task.digest)
        found = known or self._admissions.get(digest) or admit(task, progress)
        if len(self._admissions) >= _MAX_ADMISSIONS:
            self._admissions.clear()
        self._admissions[digest] = found
        return found


class _Run:
    """One run job."""

    def __init__(self, judge: Judge, message: dict[str, Any], fds: list[int]) -> None:
        self._judge = judge
        self._spec = decode(RunSpec, message["spec"])
        self._limits = decode(Limits, message["limits"])
        names, self._paths, headers = zip(*message["sides"], strict=True)
        self._known = Admission.from_json(message.get("admission"))
        self._ran = message["ran"]
        self._task_fd = fds[0]
        self._sockets = [socket.socket(fileno=fd) for fd in fds[1:]]
        meter = Meter(self._sockets[-1])
        on_gpu = headers[0]["abi"]["kind"] in ON_GPU
        made = GpuSide if on_gpu else Side
        guarded = _GuardedGpu if on_gpu else _Guarded
        self._candidate = made(names[0], self._sockets[0], self._limits, headers[0], meter)
        # The others have passed jobs of their own within these limits; twice is for a loaded machine.
        self._baselines = [
            # What is between the calls of a baseline matters only where a runtime's threads must come to rest.
            guarded(
                names[number],
                self._sockets[number],
                replace(self._limits, wall_ns=2 * self._limits.wall_ns),
                headers[number],
                None if headers[number]["abi"]["kind"] == HOST_FORM else meter,
                number,
            )
            for number in range(1, len(names))
        ]
        self._cases: list[CaseResult] = []
        self._comparisons: list[Comparison] = []
        self._roofs: list[Roof] = []
        self._notes = CheckNotes()
        self._task: LoadedTask | None = None
        self._admission: Admission | None = None
        self._stages: list[tuple[str, Span]] = []
        self._phase = "loading the task"
        self._steal = steal_ticks()

    def done(self) -> dict[str, Any]:
        """Run to the end, whatever it is."""
        outcome: Verdict | Incident | None = None
        lost: SideLost | None = None
        try:
            self._run()
            outcome = Verdict(code=VerdictCode.OK, text="")
        except CandidateFault as fault:
            outcome = Verdict(code=fault.code, text=str(fault))
        except SideLost as error:
            lost = error
        except (ReferenceFault, BaselineFault) as error:
            outcome = Incident(code=IncidentCode.REFERENCE, text=str(error))
        except DeviceFault as error:
            outcome = Incident(code=error.code, text=str(error), device_suspect=error.code is IncidentCode.DEVICE)
        except Exception as error:  # noqa: BLE001 - an unforeseen fault of ours must be told, not fatal
            outcome = Incident(
                code=IncidentCode.INTERNAL,
                text=f"the judge failed while {self._phase}: {type(error).__name__}: {error}",
            )
        finally:
            os.close(self._task_fd)
            for channel in self._sockets:
                channel.close()
        return {
            "type": "done",
            "outcome": encode(outcome),
            "lost": None if lost is None else {"side": lost.side, "phase": lost.phase},
            "result": encode(self._result(outcome)),
            "stages": [[name, span] for name, span in self._stages],
            "environment": encode((*environment(self._judge.threads, steal_ticks() - self._steal), *self._told())),
            "admission": None if self._admission is None else self._admission.to_json(),
        }

    def _told(self) -> tuple[tuple[str, str], ...]:
        """What is worth knowing beside the verdict, for people."""
        told = []
        if self._admission is not None and self._admission.admitted:
            told.append(("noise_floor", f"{self._admission.noise_floor:.4f}"))
        if self._cases:
            told.append(("bitwise_repeatable", "yes" if self._notes.bitwise else "no"))
        if self._candidate.header["abi"]["kind"] == INTERPRETED:
            told.append(("timing", "refused on the interpreter"))
        if self._notes.skipped:
            told.append(("check_skipped", "; ".join(self._notes.skipped)[:1000]))
        if self._task is not None:
            calls = self._task.own_cpu_ns + sum(side.claimed_cpu_ns for side in (self._candidate, *self._baselines))
            told.append(("calls_cpu_ms", f"{calls / MILLISECOND:.1f}"))
            ledger = self._candidate.ledger
            between = f"{ledger.helpers_ns / MILLISECOND:.2f} + {ledger.first_ns / MILLISECOND:.2f}"
            told.append(("between_calls_cpu_ms", f"{between} in {ledger.gaps} gaps"))
        return tuple(told)

    def _result(self, outcome: Verdict | Incident | None) -> RunResult:
        passed = isinstance(outcome, Verdict) and outcome.code is VerdictCode.OK
        seed = draw_seed(self._spec.seed, "bootstrap")
        speedups = []
        for baseline in dict.fromkeys(one.baseline for one in self._comparisons) if passed else ():
            ours = [one for one in self._comparisons if one.baseline == baseline]
            speedups.append(speedup(ours, confidence=self._spec.plan.confidence, seed=seed))
        return RunResult(
            cases=tuple(self._cases),
            comparisons=tuple(self._comparisons) if passed else (),
            speedups=tuple(speedups),
            ran=self._spec.artifact if self._ran else None,
            roofs=tuple(self._roofs) if passed else (),
        )

    def _run(self) -> None:
        task = self._task = self._judge.task(self._task_fd, str(self._spec.task))
        self._admission = self._judge.admission(task, self._known, self._alive)
        if not self._admission.admitted:
            raise ReferenceFault(f"the task is not admitted: {self._admission.reason}")
        task.own_cpu_ns = 0
        candidate, baselines = self._candidate, self._baselines
        began = self._stage(Stage.CHECK, time.monotonic_ns())
        for side, path in zip([candidate, *baselines], self._paths, strict=True):
            self._phase = f"preparing the {side.name} kernel"
            self._alive(self._phase)
            side.prepare()
            side.load(path)
        draws = Draws(Pools(draw_seed(self._spec.seed, "pools")).fill)
        checked = check(task, self._spec.seed, candidate, baselines, self._cases, self._alive, self._notes, draws)
        self._stages.append((str(Stage.CHECK), time.monotonic_ns() - began))
        if candidate.header["abi"]["kind"] == INTERPRETED:
            # An interpreter's times say nothing about the kernel.
            return
        began = self._stage(Stage.BENCHMARK, time.monotonic_ns())
        self._comparisons, self._roofs = benchmark(
            task,
            self._spec.seed,
            self._spec.plan,
            candidate,
            baselines,
            checked,
            self._alive,
            GPU_BYTES_PER_S if task.on_gpu else self._judge.bytes_per_s,
            draws,
        )
        self._stages.append((str(Stage.BENCHMARK), time.monotonic_ns() - began))

    def _stage(self, stage: Stage, now: Span) -> Span:
        self._judge.say({"type": "stage", "stage": str(stage)})
        return now

    def _alive(self, phase: str) -> None:
        self._phase = phase
        self._judge.say({"type": "alive", "phase": phase})


class _Guarded(Side):
    """A baseline's box: whatever it does wrong is an incident, never the candidate's verdict."""

    def _check(self, data: bytes, expected: int, nonce: int) -> tuple[int, str]:
        try:
            status, text = super()._check(data, expected, nonce)
        except CandidateFault as fault:
            raise BaselineFault(f"the {self.name} kernel: {fault}") from fault
        if status:
            raise BaselineFault(f"the {self.name} kernel gave status {status} {text}")
        return status, text

    def _timeout(self, patience_ns: Span = 0) -> CandidateFault:
        raise BaselineFault(f"the {self.name} kernel: {super()._timeout(patience_ns)}")


class _GuardedGpu(_Guarded, GpuSide):
    """A baseline on a device."""


def main(fd: int, scratch: str, threads: int) -> None:
    """Start a judge on an inherited descriptor."""
    # Copying and comparing with several threads costs more CPU time than it saves, and wakes cores that are about
    # to be measured; the reference alone gets all of them (``LoadedTask.at_full_width``).
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    torch.use_deterministic_algorithms(False)
    Judge(socket.socket(fileno=fd), Path(scratch), threads).serve()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
