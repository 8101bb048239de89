"""A campaign on recorded answers with a real daemon, one agent that only builds and agents that only run."""

from __future__ import annotations

import contextlib
import importlib.metadata
from pathlib import Path

from kfd.api.v1 import control_pb2
from kfd.tasks import pack
from kfd_worker.devices.opencl import find_runtime
from kfd_worker.toolchains.port import NotInstalled
from tests.e2e.harness import Agent, Daemon

__all__ = ["TASKS", "compilerless", "missing", "played"]

TASKS = Path(__file__).resolve().parents[2] / "tasks"
_COMPILERS = ("g++", "gcc", "c++", "cc", "clang", "nvcc", "icpx", "ocloc", "cpp", "as", "ld")


def compilerless(folder: Path) -> str:
    """A PATH with the system's programs but no compiler."""
    folder.mkdir(exist_ok=True)
    for place in ("/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/local/nvidia/bin"):
        for program in Path(place).glob("*"):
            if not program.name.startswith(_COMPILERS) or program.name in ("gcore", "asan_symbolize", "ldconfig"):
                with contextlib.suppress(FileExistsError):
                    (folder / program.name).symlink_to(program)
    return str(folder)


def missing(toolchain: str, folder: Path) -> str:
    """Why a toolchain of the processor cannot be tried on this machine; empty when it can."""
    try:
        find_runtime(folder)
        if toolchain == "sycl":
            importlib.metadata.version("intel-sycl-rt")
    except (NotInstalled, importlib.metadata.PackageNotFoundError) as error:
        return f"{toolchain} is not installed: {error}"
    return ""


def played(
    folder: Path, task: str, *, runners: int = 1, candidates: int = 40, seconds: float = 300.0
) -> tuple[control_pb2.Campaign, list[control_pb2.Candidate], str]:
    """Play a shipped task to its end: the campaign, its candidates, and the logs of all programs."""
    folder.mkdir(parents=True, exist_ok=True)
    path = compilerless(folder / "bin")
    with contextlib.ExitStack() as stack:
        daemon = stack.enter_context(Daemon(folder))
        builder = Agent(folder, daemon, "builder", "--run-slots", "0", "--build-lanes", "1", "--shared-host")
        agents = [builder]
        agents += [Agent(folder, daemon, f"runner{n}", "--build-lanes", "0") for n in range(runners)]
        for agent in agents:
            stack.callback(agent.__exit__, None, None, None)
            agent.start(**({} if agent is builder else {"PATH": path}))
        campaign = daemon.submit(pack(TASKS / task), key=task, generator="recorded", candidates=candidates)
        ended = daemon.wait_ended(campaign, seconds)
        logs = "\n".join(f"--- {one.log.name}\n{one.tail(3000)}" for one in (daemon, *agents))
        return ended, daemon.candidates(campaign), logs
