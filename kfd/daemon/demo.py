"""``kfd demo``: a whole campaign on this machine, through the programs that users run.

A daemon with an embedded agent, the client, real builds, checks and measurements. Only the answers are recordings,
when the task has them and no model is configured; the client says so.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc

from kfd.api.v1 import admin_pb2, admin_pb2_grpc, control_pb2, control_pb2_grpc

__all__ = ["run_demo"]

_CONFIG = """# Short measurements: the demo is to end within minutes on a busy machine.
[campaign.measure]
min_rounds = 6
max_seconds = 3.0
"""

SEED = 26
"""With the shipped task, the first asks of this seed meet every way in which a candidate can fail."""

START_SECONDS = 30.0
STOP_SECONDS = 12.0
WORKER_SECONDS = 120.0
"""An agent tries every toolchain first; on a slow machine that takes a while."""


def run_demo(task: Path, folder: Path, least_gain: float, *, accept_unsandboxed: bool) -> int:
    """Run the demo and give its exit code: 0 when the best kernel, measured afresh, beats the initial one by
    ``least_gain``."""
    folder.mkdir(parents=True, exist_ok=True)
    state = folder / "state"
    log = folder / "daemon.log"
    with _daemon(state, log, accept_unsandboxed=accept_unsandboxed):
        _await_worker(state, log)
        code = _client(state, "validate", str(task))
        if code != 0:
            return code
        code = _client(state, "submit", str(task), "--generator", "recorded", "--seed", str(SEED), "--wait")
        if code not in (0, 9):
            _say(f"the campaign did not end well (exit code {code}); the daemon's log is {log}")
            return code or 1
        campaign = _campaign(state)
        best = folder / f"best{Path(_kernel_path(state)).suffix}"
        if _client(state, "best", campaign.id, "--source", "-o", str(best)) != 0:
            return 1
        return _verdict(campaign, best, least_gain)


def _verdict(campaign: control_pb2.Campaign, best: Path, least_gain: float) -> int:
    _say("")
    _say(f"{campaign.name}: {campaign.reason}")
    _say("candidates by verdict")
    for count in campaign.candidates_by_outcome:
        _say(f"  {count.value:4d}  {count.key}")
    _say("the best kernel, measured afresh in a new process")
    gain = 0.0
    for speed in campaign.final_speeds:
        against = "the reference (PyTorch)" if speed.baseline == "reference" else "the initial kernel"
        interval = f"95 % interval [{speed.low:.2f}, {speed.high:.2f}], {speed.rounds} rounds"
        _say(f"  {speed.value:.2f}x against {against}, {interval}")
        if speed.baseline == "initial":
            gain = speed.value
    _say(f"its source: {best}")
    if gain < least_gain:
        _say(f"but it should beat the initial kernel by {least_gain:g}x; {campaign.verify_note or 'see the log'}")
        return 1
    return 0


@contextlib.contextmanager
def _daemon(state: Path, log: Path, *, accept_unsandboxed: bool) -> Iterator[None]:
    command = [sys.executable, "-m", "kfd.daemon.cli", "serve", "--with-worker", "--listen", "127.0.0.1:0"]
    command += ["--state-dir", str(state), *(["--accept-unsandboxed"] if accept_unsandboxed else [])]
    config = state.parent / "kfd.toml"
    config.write_text(_CONFIG, encoding="utf-8")
    command += ["--config", str(config)]
    announced = state / "client.json"
    announced.unlink(missing_ok=True)
    _say(f"starting the daemon with an agent on this machine (log: {log})")
    with log.open("wb") as sink:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink)
    try:
        stop_at = time.monotonic() + START_SECONDS
        while not announced.exists():
            if process.poll() is not None or time.monotonic() > stop_at:
                raise SystemExit(f"kfd demo: the daemon did not start; read {log}")
            time.sleep(0.05)
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _await_worker(state: Path, log: Path) -> None:
    """Wait for the agent to register. Raises SystemExit when it has ended for good or takes too long."""
    stop_at = time.monotonic() + WORKER_SECONDS
    while not _call(state, "ListWorkers", admin_pb2.ListWorkersRequest(), admin_pb2_grpc.AdminServiceStub).workers:
        if '"agent.refused"' in log.read_text("utf-8", "replace") or time.monotonic() > stop_at:
            raise SystemExit(f"kfd demo: the agent on this machine did not start; read {log}, or try kfd-worker doctor")
        time.sleep(0.1)


def _client(state: Path, *arguments: str) -> int:
    _say(f"$ kfd-client {' '.join(arguments)}")
    environment = os.environ | {"KFD_STATE_DIR": str(state.absolute())}
    environment.pop("KFD_ADDRESS", None)
    return subprocess.run([sys.executable, "-m", "kfd_client.cli", *arguments], env=environment, check=False).returncode


def _call(state: Path, method: str, request: Any, service: Any = control_pb2_grpc.ControlServiceStub) -> Any:
    found = json.loads((state / "client.json").read_text("utf-8"))
    token = Path(found["token_file"]).read_text("ascii").strip()
    with grpc.insecure_channel(found["address"]) as channel:
        return getattr(service(channel), method)(request, metadata=(("authorization", f"Bearer {token}"),), timeout=20)


def _campaign(state: Path) -> control_pb2.Campaign:
    found: control_pb2.Campaign = _call(state, "GetCampaign", control_pb2.GetCampaignRequest(campaign="@last")).campaign
    return found


def _kernel_path(state: Path) -> str:
    request = control_pb2.GetCandidateRequest(candidate="@best", campaign="@last")
    return str(_call(state, "GetCandidate", request).kernel_path)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
