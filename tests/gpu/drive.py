"""A small judge for one device-form kernel on an NVIDIA device: builds, runs ``cuda_child.py``, compares, times.

Builds here, runs in ``runner.py``: the judge's pure parts (arena, comparison, poison, clock) and the real child over a
real socket, so that a machine with a device can be asked before, and without, a whole worker.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import yaml

from kfd.base.digest import digest_of
from kfd.base.expr import evaluate
from kfd.base.work import BuildSpec, IncidentCode, VerdictCode
from kfd.tasks import launchplan
from kfd.tasks.launchbind import bind
from kfd.tasks.spec import Parameter, Role
from kfd.tasks.targets import TOLERANCES
from kfd.tasks.tunables import PlanError
from kfd_worker.harness import cuda_child, triton_compile
from kfd_worker.judge.arena import ArraySpec
from kfd_worker.toolchains import nvcc_messages
from kfd_worker.toolchains.compiled import split_listing
from kfd_worker.toolchains.cuda import Cuda
from kfd_worker.toolchains.elf import ElfError
from kfd_worker.toolchains.port import SOURCE, Refused
from kfd_worker.toolchains.triton_entries import jobs, kernel_key, load_order, resolve, split

__all__ = ["ROOT", "Built", "Fault", "Kernel", "Task", "build", "figure", "open_task", "scratch_folder"]

ROOT = Path(__file__).resolve().parents[2]
_CHILD = Path(cuda_child.__file__)
_MEMORY = 8 << 30
_BUILD_S = 120


def figure(name: str, value: float, unit: str, **more: Any) -> None:
    """One JSON object, one line."""
    print(json.dumps({"figure": name, "value": value, "unit": unit, **more}), flush=True)


class Fault(Exception):
    """A verdict, with its text."""

    def __init__(self, code: VerdictCode | IncidentCode, text: str) -> None:
        super().__init__(f"{code.value}: {text}")
        self.code = code


@dataclass
class Task:
    """What config.yaml and task.py say."""

    name: str
    toolchain: str
    text: str
    path: str
    parameters: tuple[Parameter, ...]
    tolerance: Any
    module: Any

    def arrays(self, case: dict[str, Any], role: Role) -> list[ArraySpec]:
        sizes = self.sizes(case)
        return [
            ArraySpec(one.name, one.dtype, tuple(evaluate(text, sizes) for text in one.shape))
            for one in self.parameters
            if one.role is role
        ]

    def sizes(self, case: dict[str, Any]) -> dict[str, int]:
        return {name: value for name, value in case.items() if name not in ("name", "timed")}

    def volume(self, case: dict[str, Any]) -> int:
        return sum(one.nbytes for role in (Role.IN, Role.OUT) for one in self.arrays(case, role))

    def inputs(self, case: dict[str, Any], seed: int) -> dict[str, torch.Tensor]:
        made: dict[str, torch.Tensor] = self.module.make_inputs(case, torch.Generator().manual_seed(seed))
        return made

    def oracle(self, values: dict[str, torch.Tensor]) -> torch.Tensor:
        made: torch.Tensor = self.module.reference(**{name: one.double() for name, one in values.items()})
        return made


def open_task(name: str) -> Task:
    """A task that ships, by its folder."""
    folder = ROOT / "tasks" / name
    config = yaml.safe_load((folder / "config.yaml").read_text())
    spec = importlib.util.spec_from_file_location(f"task_{name}", folder / "task.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    parameters = tuple(
        Parameter(
            name=one["name"],
            role=Role(one["role"]),
            dtype=one.get("dtype", "int64"),
            shape=tuple(str(extent) for extent in one.get("shape", ())),
        )
        for one in config["interface"]
    )
    path = config["kernel"]
    return Task(
        name=name,
        toolchain=config["target"].partition(":")[0],
        text=(folder / path).read_text(),
        path=path,
        parameters=parameters,
        tolerance=TOLERANCES[config["tolerance"]["class"]],
        module=module,
    )


@dataclass
class Kernel:
    """A kernel text of a task, with its chosen tunables."""

    task: Task
    text: str
    chosen: dict[str, int] = field(default_factory=dict)
    flags: tuple[str, ...] = ()

    def plan(self) -> launchplan.LaunchPlan:
        return launchplan.parse(self.text, self.task.parameters, self.task.toolchain)


@dataclass
class Built:
    """A payload and what the child must know of it."""

    kernel: Kernel
    path: Path
    load: dict[str, Any]
    entries: dict[str, dict[str, Any]]
    log: str
    cpu_s: float

    def order(self, case: dict[str, Any]) -> dict[str, Any]:
        bound = bind(self.kernel.plan(), self.kernel.task.sizes(case), self.kernel.chosen, _MEMORY)
        return resolve(bound, self.entries) if self.kernel.task.toolchain == "triton" else bound.order()


def build(kernel: Kernel, folder: Path, capability: str = "sm_90") -> Built:
    """Compile. Raises Fault with compile_error or load_error."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        plan = kernel.plan()
        bound = [bind(plan, kernel.task.sizes(case), kernel.chosen, _MEMORY) for case in kernel.task.module.CASES]
    except PlanError as error:
        raise Fault(VerdictCode.COMPILE_ERROR, str(error)) from error
    source = folder / kernel.task.path
    source.write_text(kernel.text)
    wanted = sorted({launch.kernel for one in bound for launch in one.launches})
    if kernel.task.toolchain == "triton":
        order = {
            "capability": int(capability.removeprefix("sm_").rstrip("a")),
            "shown": kernel.task.path,
            "kernels": [job.to_json() for job in jobs(plan, bound, kernel.task.parameters)],
        }
        argv = [sys.executable, triton_compile.__file__, json.dumps(order), str(source)]
    else:
        argv = _cuda_command(kernel, plan, folder, capability)
    before = os.times()
    try:
        done = subprocess.run(argv, capture_output=True, timeout=_BUILD_S, env={**os.environ, "TMPDIR": str(folder)})
    except subprocess.TimeoutExpired as error:
        raise Fault(VerdictCode.TIMEOUT, f"the compiler did not end within {_BUILD_S} s") from error
    after = os.times()
    cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
    log = done.stderr.decode("utf-8", "replace")
    if done.returncode:
        messages = nvcc_messages.parse_messages(log, box_path=str(source), kernel_path=kernel.task.path)
        errors = [one for one in messages if "error" in one.severity]
        raise Fault(VerdictCode.COMPILE_ERROR, f"{errors[0].line}: {errors[0].text}" if errors else log[-300:])
    path = folder / "payload"
    _, payload = split_listing(done.stdout)
    path.write_bytes(payload)
    if kernel.task.toolchain == "triton":
        try:
            entries = {one.key: one.to_json() for one in split(payload)}
        except ElfError as error:
            raise Fault(VerdictCode.LOAD_ERROR, str(error)) from error
        needed = {kernel_key(launch) for one in bound for launch in one.launches}
        if needed - entries.keys():
            raise Fault(VerdictCode.LOAD_ERROR, f"not compiled: {sorted(needed - entries.keys())}")
        return Built(kernel, path, load_order(entries), entries, log, cpu_s)
    missing = Cuda().missing(payload, wanted)
    if missing:
        raise Fault(VerdictCode.LOAD_ERROR, missing)
    return Built(kernel, path, {}, {}, log, cpu_s)


def _cuda_command(kernel: Kernel, plan: launchplan.LaunchPlan, folder: Path, capability: str) -> list[str]:
    spec = BuildSpec(
        task=digest_of(b""),
        source=kernel.text,
        kernel_path=kernel.task.path,
        toolchain="cuda",
        target=f"cuda:{capability}",
        flags=kernel.flags,
        defines=tuple((name, str(value)) for name, value in kernel.chosen.items()),
    )
    try:
        nothing: Any = None
        request = Cuda().request(spec, nothing, plan)
    except Refused as error:
        raise Fault(VerdictCode.COMPILE_ERROR, str(error)) from error
    return [one.replace(SOURCE, str(folder)).replace("/scratch", str(folder)) for one in request.argv]


def scratch_folder() -> tempfile.TemporaryDirectory[str]:
    """A folder for builds."""
    return tempfile.TemporaryDirectory(prefix="kfd-gpu-")
