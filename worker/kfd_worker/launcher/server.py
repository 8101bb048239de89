"""The launcher's loop: orders from the agent in, stages and reports out. Never imports gRPC.

It is the only process that makes boxes. When the agent's socket closes, whatever the reason, every box is
ended and the launcher exits; when the launcher dies, the kernel ends the boxes.
"""

from __future__ import annotations

import asyncio
import dataclasses
import errno
import importlib.util
import os
import shutil
import socket
from pathlib import Path
from typing import Any
from zlib import crc32

from kfd.base.codec import decode, encode
from kfd.base.digest import Digest
from kfd.base.work import AdmitSpec, BuildSpec, Incident, IncidentCode, JobSpec, Report
from kfd_worker.devices import canary, nvidia
from kfd_worker.devices.cpu import cpu_device
from kfd_worker.devices.opencl import find_runtime, probe
from kfd_worker.devices.port import Device
from kfd_worker.launcher.admissions import Admissions
from kfd_worker.launcher.buildcache import BuildCache
from kfd_worker.launcher.builds import Workbench, build
from kfd_worker.launcher.config import DeviceFact, LauncherConfig, LauncherFacts, ToolchainFact
from kfd_worker.launcher.frames import read_frame, write_frame
from kfd_worker.launcher.harnesses import (
    Harness,
    cuda_harness,
    host_harness,
    interpreter_harness,
    opencl_harness,
)
from kfd_worker.launcher.job import Job
from kfd_worker.launcher.judges import JudgeDied, JudgeProcess
from kfd_worker.launcher.places import Inputs, MissingInput, MissingPackage, folder_name, package_folders
from kfd_worker.launcher.runs import RunSlot, prove, run
from kfd_worker.sandbox.box import BoxError
from kfd_worker.sandbox.detect import detect
from kfd_worker.sandbox.runner import Sandbox
from kfd_worker.toolchains.cpp import Cpp
from kfd_worker.toolchains.cuda import Cuda
from kfd_worker.toolchains.opencl import OpenCL
from kfd_worker.toolchains.port import NotInstalled, Toolchain
from kfd_worker.toolchains.sycl import Sycl
from kfd_worker.toolchains.triton import Triton

__all__ = ["Launcher", "serve"]

_FIRST_UID = 61000
_UIDS_EACH = 40
_MAX_JOBS = 256
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)


def toolchains(config: LauncherConfig) -> tuple[Toolchain, ...]:
    """Every toolchain this program knows; what they keep lies below the launcher's folder."""
    folder = Path(config.state_dir, "toolchains")
    return (Cpp(), OpenCL(folder / "opencl"), Sycl(folder / "sycl"), Cuda(), Triton())


def devices(
    config: LauncherConfig, problems: list[tuple[str, str]], absent: dict[str, str]
) -> dict[str, tuple[Device, tuple[Harness, ...]]]:
    """Every device of this machine with what runs artifacts on it, the processor last. Blocking.

    What is there and does not work is added to ``problems`` with the reason, what is not installed to ``absent``.
    """
    found: dict[str, tuple[Device, tuple[Harness, ...]]] = {}
    try:
        for device in nvidia.probe():
            song = canary.sing(device.id)
            if song.healthy:
                found[device.id] = (device, (cuda_harness(device),))
            else:
                problems.append((f"device {device.name}", song.text))
    except TimeoutError as error:
        problems.append(("NVIDIA devices", str(error)))
    cpu = cpu_device(config.cores)
    threads = config.threads or len(config.cores or os.sched_getaffinity(0))
    return {**found, cpu.id: (cpu, cpu_harnesses(config, threads, problems, absent))}


def cpu_harnesses(
    config: LauncherConfig, threads: int, problems: list[tuple[str, str]], absent: dict[str, str]
) -> tuple[Harness, ...]:
    """What runs artifacts on the processor: libraries always, OpenCL's and SYCL's packages with a runtime for them.

    Without a runtime, what to install is added to ``absent``; one that does not work is among the ``problems``: nothing
    about it may keep the worker from what it can do.
    """
    found = [host_harness()]
    if all(importlib.util.find_spec(name) is not None for name in ("triton", "numpy")):
        found.append(interpreter_harness())
    folder = Path(config.state_dir, "toolchains", "opencl")
    empty = folder / "empty"
    empty.mkdir(parents=True, exist_ok=True)
    empty.chmod(0o755)
    try:
        runtime = find_runtime(folder)
        found.append(opencl_harness(runtime, probe(runtime, "cpu"), "cpu", empty, threads))
    except NotInstalled as error:
        for name in ("opencl", "sycl"):
            absent.setdefault(name, str(error))
    except (OSError, ValueError) as error:
        problems.append(("OpenCL on the processor", str(error)))
    return tuple(found)


class Launcher:
    """Jobs of one agent."""

    def __init__(self, config: LauncherConfig, sandbox: Sandbox, writer: asyncio.StreamWriter) -> None:
        self._config = config
        self._sandbox = sandbox
        self._writer = writer
        self._folder = Path(config.state_dir, "jobs")
        self._toolchains: dict[str, Toolchain] = {}
        self._fingerprints: dict[str, Digest] = {}
        self._bench = Workbench(self._toolchains, self._fingerprints, BuildCache(Path(config.state_dir, "builds")))
        self._slots: dict[str, RunSlot] = {}
        self._uids: dict[str, int] = {}
        self._jobs: dict[str, Job] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._kept: dict[str, Path] = {}
        self._count = 0
        self._warming: list[asyncio.Task[None]] = []

    # Getting ready.

    async def prepare(self) -> LauncherFacts:
        """Sweep, self-test, start the judges' warming up; what this machine offers."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True, mode=0o711)
        problems: list[tuple[str, str]] = []
        absent: dict[str, str] = {}
        passed = await self._test_toolchains(problems, absent)
        found = await asyncio.to_thread(devices, self._config, problems, absent)
        offered = []
        try:
            package_folders()
        except MissingPackage as error:
            problems.append(("judge", str(error)))
            found = {}
        for name, (device, harnesses) in list(found.items())[: self._config.run_slots]:
            targets = tuple(dict.fromkeys(target for one in harnesses for target in one.targets))
            offered.append(DeviceFact(id=device.id, name=device.name, facts=device.facts, targets=targets))
            self._slots[name] = self._run_slot(name, device, harnesses)
            self._warming.append(asyncio.create_task(self._warm(self._slots[name].judge)))
        return LauncherFacts(
            toolchains=tuple(passed),
            devices=tuple(offered),
            sandbox=self._sandbox.facts,
            problems=tuple(problems),
            absent=tuple(sorted(absent.items())),
        )

    async def _test_toolchains(self, problems: list[tuple[str, str]], absent: dict[str, str]) -> list[ToolchainFact]:
        passed = []
        # A machine that only runs needs no compiler, and is not asked for one.
        known = toolchains(self._config) if self._config.build_lanes else ()
        tests = await asyncio.gather(*(asyncio.to_thread(one.self_test) for one in known), return_exceptions=True)
        for toolchain, tested in zip(known, tests, strict=True):
            if isinstance(tested, NotInstalled):
                # Nobody needs every toolchain: what is not there is no problem, but people may ask why.
                absent[toolchain.name] = str(tested)
                continue
            if isinstance(tested, OSError | ValueError):
                problems.append((f"toolchain {toolchain.name}", str(tested)))
                continue
            if isinstance(tested, BaseException):
                raise tested
            self._toolchains[toolchain.name] = toolchain
            self._fingerprints[toolchain.name] = tested.fingerprint
            passed.append(
                ToolchainFact(
                    name=toolchain.name,
                    version=tested.version,
                    fingerprint=tested.fingerprint,
                    targets=toolchain.targets,
                )
            )
        return passed

    def _run_slot(self, name: str, device: Device, harnesses: tuple[Harness, ...]) -> RunSlot:
        cpus = self._config.cores
        threads = self._config.threads or len(cpus or os.sched_getaffinity(0))
        judge = JudgeProcess(self._sandbox, name, self._uid(f"{name}/judge"), threads, cpus, harnesses[0])
        return RunSlot(
            judge=judge,
            admissions=Admissions(Path(self._config.state_dir, "admissions")),
            uids=(
                self._uid(f"{name}/candidate"),
                self._uid(f"{name}/initial"),
                self._uid(f"{name}/incumbent"),
            ),
            threads=threads,
            cpus=cpus,
            harnesses=harnesses,
            device=device,
            gpu=name if harnesses[0].nodes else "",
        )

    async def _warm(self, judge: JudgeProcess) -> None:
        async with judge.lock:
            try:
                await judge.start()
            except (JudgeDied, BoxError):
                # The first job tries again and reports what it finds.
                await judge.kill()

    def _uid(self, purpose: str) -> int:
        """A host user for one purpose: other slots and, mostly, other agents of this host have others."""
        if purpose not in self._uids:
            base = _FIRST_UID + crc32(self._config.state_dir.encode()) % 100 * _UIDS_EACH
            self._uids[purpose] = base + len(self._uids) % _UIDS_EACH
        return self._uids[purpose]

    # Orders.

    def obey(self, frame: dict[str, Any]) -> None:
        """Take one order of the agent. Raises ValueError for one that makes no sense."""
        kind, ref = frame.get("do"), str(frame.get("ref", ""))
        if kind == "run":
            self._start(ref, frame)
        elif kind == "stop":
            if ref in self._jobs:
                self._jobs[ref].stop(str(frame.get("reason", "")))
        elif kind == "discard":
            folder = self._kept.pop(ref, None)
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)
        else:
            raise ValueError(f"unknown order {kind!r}")

    def _start(self, ref: str, frame: dict[str, Any]) -> None:
        if ref in self._jobs or len(self._jobs) >= _MAX_JOBS:
            text = "this job runs already" if ref in self._jobs else f"{_MAX_JOBS} jobs run already"
            self._tell({"is": "done", "ref": ref, "report": encode(_internal(text))})
            return
        self._count += 1
        folder = self._folder / folder_name(ref, self._count)
        inputs = Inputs({str(key): str(value) for key, value in frame["inputs"].items()})
        job = Job(ref, folder, inputs, lambda stage: self._tell({"is": "stage", "ref": ref, "stage": str(stage)}))
        self._jobs[ref] = job
        spec = decode(JobSpec, frame["spec"])
        self._tasks[ref] = asyncio.create_task(self._run(job, str(frame["slot"]), spec))

    async def _run(self, job: Job, slot: str, spec: JobSpec) -> None:
        try:
            report = await self._report(job, slot, spec)
        except asyncio.CancelledError:
            await job.end_boxes()
            raise
        finally:
            del self._jobs[job.ref]
            del self._tasks[job.ref]
        self._kept[job.ref] = job.folder
        self._tell(
            {
                "is": "done",
                "ref": job.ref,
                "report": encode(dataclasses.replace(report, stages_ns=job.stages())),
                "artifact": str(job.artifact) if job.artifact else None,
                "log": str(job.log) if job.log else None,
            }
        )

    async def _report(self, job: Job, slot: str, spec: JobSpec) -> Report:
        try:
            job.folder.mkdir(mode=0o711)
            if isinstance(spec.work, BuildSpec):
                return await build(job, spec.work, spec.limits, self._sandbox, self._bench, self._uid(f"{slot}/build"))
            run_slot = self._slots.get(slot)
            if run_slot is None:
                return _internal(f"this launcher has no run slot {slot!r}")
            if isinstance(spec.work, AdmitSpec):
                return await prove(job, spec.work, spec.limits, run_slot)
            return await run(job, spec.work, spec.limits, self._sandbox, run_slot)
        except MissingInput as error:
            return Report(outcome=Incident(code=IncidentCode.MISSING_INPUT, text=str(error), missing=error.digest))
        except BoxError as error:
            return Report(outcome=Incident(code=IncidentCode.SANDBOX, text=str(error)))
        except OSError as error:
            code = IncidentCode.DISK_FULL if error.errno in _DISK_FULL else IncidentCode.INTERNAL
            return Report(outcome=Incident(code=code, text=f"the launcher failed: {error}"))
        except Exception as error:  # noqa: BLE001 - a fault of ours ends one job, never the launcher
            return _internal(f"the launcher failed: {type(error).__name__}: {error}")
        finally:
            await job.end_boxes()

    def _tell(self, frame: dict[str, Any]) -> None:
        write_frame(self._writer, frame)

    # The end.

    async def close(self) -> None:
        """End every job, box and judge."""
        tasks = [*self._tasks.values(), *self._warming]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(slot.judge.kill() for slot in self._slots.values()))
        await self._sandbox.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def _internal(text: str) -> Report:
    return Report(outcome=Incident(code=IncidentCode.INTERNAL, text=text))


async def serve(fd: int) -> int:
    """Serve the agent on an inherited socket; returns the exit code."""
    reader, writer = await asyncio.open_connection(sock=socket.socket(fileno=fd), limit=1 << 20)
    first = await read_frame(reader)
    if first is None:
        return 0
    config = decode(LauncherConfig, first["config"])
    try:
        os.makedirs(config.state_dir, exist_ok=True, mode=0o700)
        os.chmod(config.state_dir, 0o700)
        sandbox = detect(
            os.path.join(config.state_dir, "root"), accept_unsandboxed=config.accept_unsandboxed, hide=config.hide
        )
    except (BoxError, OSError) as error:
        write_frame(writer, {"is": "refused", "text": str(error)})
        await writer.drain()
        return 3
    launcher = Launcher(config, sandbox, writer)
    try:
        write_frame(writer, {"is": "facts", "facts": encode(await launcher.prepare())})
        while (frame := await read_frame(reader)) is not None:
            launcher.obey(frame)
    finally:
        await launcher.close()
        writer.close()
    return 0
