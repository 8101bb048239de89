"""Figures of a machine with an NVIDIA device, one JSON object a line: ``python -m tests.gpu.figures PART...``.

Parts: ``device``, ``smoke`` (each task is right, its time beside PyTorch's), ``clock``, ``answers``,
``hostile``, ``aa`` and ``profile``. Without a part, all of them. 0 when every figure that has a bar holds it.
"""

from __future__ import annotations

import concurrent.futures
import os
import shutil
import subprocess
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from kfd_worker.devices import canary, nvidia
from kfd_worker.judge.gpu_clock import round_time_ns
from kfd_worker.judge.gpu_reference import GpuReference
from kfd_worker.profilers import ncu
from kfd_worker.profilers.evidence import NoProfile
from tests.gpu import answers, hostile_cuda, hostile_triton
from tests.gpu.drive import Built, Fault, Kernel, Task, build, figure, open_task, scratch_folder
from tests.gpu.programs import Program, with_block
from tests.gpu.runner import Runner, verdict
from tests.gpu.timing import aa, clock

__all__ = ["main"]

TASKS = ("softmax_cuda", "matmul_cuda", "softmax_triton", "matmul_triton")


# ---- smoke -------------------------------------------------------------------------------------------------------


def smoke(folder: Path) -> bool:
    """Every task that ships: right on every case, timed on the timed ones, PyTorch beside it."""
    fine = True
    for name in TASKS:
        task = open_task(name)
        try:
            built = build(Kernel(task, task.text), folder / name)
        except Fault as error:
            figure(f"gpu.{name}", 0, "", ok=False, note=str(error))
            fine = False
            continue
        code, text = verdict(built)
        figure(f"gpu.{name}.correct", float(code == "ok"), "", ok=code == "ok", note=text, build_cpu_s=built.cpu_s)
        fine = fine and code == "ok"
        for case in [one for one in task.module.CASES if one.get("timed", True)]:
            mine = _timed(built, case)
            for tf32 in (False, True):
                other = _torch_ns(task, case, tf32)
                more = {"torch_us": other / 1e3, "tf32": tf32, "speedup": other / mine}
                figure(f"gpu.{name}.{case['name']}_us", mine / 1e3, "us", **more)
    return fine


def _timed(built: Built, case: dict[str, Any], sets: int = 4) -> int:
    runner = Runner(built)
    try:
        runner.map(1, case, sets)
        for index in range(sets):
            runner.refresh(1, index, index)
        runner.call(1, list(range(sets)))
        return round_time_ns([runner.call(1, list(range(sets)))[0] for _ in range(5)])
    finally:
        runner.close()


def _torch_ns(task: Task, case: dict[str, Any], tf32: bool) -> int:
    """PyTorch's time of the reference by the judge's own class."""

    class Loaded:
        """The two verbs of a loaded task that the class needs."""

        @staticmethod
        def compute(_: Any, values: dict[str, Any]) -> list[torch.Tensor]:
            return [task.module.reference(**values)]

        reference = compute

    held: Any = Loaded()
    place: Any = types.SimpleNamespace(name=case["name"])
    reference = GpuReference(held, place, 2)
    try:
        for index in range(2):
            reference.refresh(index, dict(task.inputs(case, index)))
        reference.call([0, 1], tf32=tf32)
        return round_time_ns([reference.call([0, 1], tf32=tf32) for _ in range(10)])
    finally:
        reference.close()


# ---- hostile -----------------------------------------------------------------------------------------------------


def hostile(folder: Path) -> bool:
    """Every program that cheats or looks as if it did."""
    return _play("hostile", (*hostile_cuda.PROGRAMS, *hostile_triton.PROGRAMS), folder)


def recorded(folder: Path) -> bool:
    """Every kind of recorded answer."""
    return _play("answers", answers.PROGRAMS, folder)


def _play(kind: str, programs: tuple[Program, ...], folder: Path) -> bool:
    """Programs built in parallel and run one by one."""
    tasks = {name: open_task(name) for name in {one.task for one in programs}}

    def made(one: Program) -> Built | Fault:
        task = tasks[one.task]
        try:
            return build(Kernel(task, with_block(task.text, one.block)), folder / one.task / one.name)
        except Fault as fault:
            return fault

    with concurrent.futures.ThreadPoolExecutor(max(2, (os.cpu_count() or 2) // 2)) as pool:
        builds = list(pool.map(made, programs))
    accepted = refused = wrong = 0
    for one, outcome in zip(programs, builds, strict=True):
        began = time.monotonic()
        if isinstance(outcome, Fault):
            code, text = outcome.code.value, str(outcome)[:200]
        else:
            code, text = verdict(outcome, patience_s=5.0)
        good = code in one.expect
        wrong += not good
        accepted += code == "ok" and not one.honest
        refused += code != "ok" and one.honest
        more = {"expected": sorted(one.expect), "got": code, "ok": good, "note": text}
        figure(f"gpu.{kind}.{one.task}.{one.name}", time.monotonic() - began, "s", **more)
    honest = sum(one.honest for one in programs)
    figure(f"gpu.{kind}.accepted", accepted, "programs", n=len(programs) - honest, bar=0, ok=accepted == 0)
    figure(f"gpu.{kind}.honest_refused", refused, "programs", n=honest, bar=0, ok=refused == 0)
    figure(f"gpu.{kind}.other_verdict", wrong, "programs", n=len(programs), bar=0, ok=wrong == 0)
    return accepted == 0 and refused == 0


# ---- profile, device ---------------------------------------------------------------------------------------------


def profile(folder: Path) -> bool:
    """Nsight Compute on each task's kernel, and compute-sanitizer on one that writes beside its output."""
    fine = True
    folder.mkdir(parents=True, exist_ok=True)
    if shutil.which("ncu") is None:
        figure("gpu.ncu", 0, "", note="ncu is not there")
        return fine
    for name in TASKS:
        program = [sys.executable, "-m", "tests.gpu.once", name]
        done = subprocess.run(
            ncu.command(program, kernels=[name.partition("_")[0]]), capture_output=True, text=True, timeout=300
        )
        try:
            found = ncu.profile(done.stdout)
        except NoProfile as error:
            figure(f"gpu.ncu.{name}", 0, "", ok=False, note=f"{error} {done.stderr[-200:]}")
            fine = False
            continue
        figure(
            f"gpu.ncu.{name}", 1, "", ok=True, bottleneck=found.bottleneck, note=found.short_text, **dict(found.facts)
        )
        (folder / f"ncu-{name}.csv").write_text(done.stdout)
        if os.environ.get("OUT"):
            shutil.copy(folder / f"ncu-{name}.csv", os.environ["OUT"])
    if shutil.which("compute-sanitizer"):
        command = ["compute-sanitizer", "--tool", "memcheck", "--target-processes", "all", "--error-exitcode", "9"]
        for name, wanted in (("write_far_away", True), ("plain", False)):
            done = subprocess.run(
                [*command, sys.executable, "-m", "tests.gpu.once", "softmax_cuda", name],
                capture_output=True,
                text=True,
                timeout=300,
            )
            seen = "Invalid __global__ write" in done.stdout + done.stderr
            figure(f"gpu.sanitizer.{name}", float(seen), "", ok=seen == wanted, note=(done.stdout + done.stderr)[-200:])
    return fine


def device(_: Path) -> bool:
    """What is known of the device, and the canary."""
    found = nvidia.probe()
    for one in found:
        figure("gpu.device", 1, "", id=one.id, device=one.name, **dict(one.facts))
    state = nvidia.read_state(found[0].id) if found else None
    figure("gpu.device_state", float(state is not None), "", note=repr(state))
    sung = canary.sing()
    figure("gpu.canary", sung.took_ns / 1e6, "ms", ok=sung.healthy, note=sung.text)
    return bool(found) and sung.healthy


PARTS: dict[str, Callable[[Path], bool]] = {
    "device": device,
    "smoke": smoke,
    "clock": clock,
    "answers": recorded,
    "hostile": hostile,
    "aa": aa,
    "profile": profile,
}


def main(arguments: list[str]) -> int:
    """Run parts; 0 when all bars hold."""
    torch.set_grad_enabled(False)
    fine = True
    with scratch_folder() as folder:
        for name in arguments or list(PARTS):
            began = time.monotonic()
            try:
                held = PARTS[name](Path(folder) / name)
            except Exception as error:  # noqa: BLE001 - the other parts are still worth their device time
                figure(f"gpu.{name}.failed", 1, "", ok=False, note=f"{type(error).__name__}: {error}"[:400])
                held = False
            fine = fine and held
            figure(f"gpu.{name}.seconds", time.monotonic() - began, "s")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
