"""Starts the real programs as processes, on loopback, in a folder of the test's own."""

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

from kfd.api.v1 import blob_pb2, blob_pb2_grpc, common_pb2, control_pb2, control_pb2_grpc
from kfd.base.digest import digest_of

__all__ = ["Agent", "Daemon", "wait_for"]


def wait_for(what: str, check: Any, seconds: float = 30.0, every: float = 0.05) -> Any:
    """Poll until ``check`` gives something true; fails naming what was waited for."""
    stop_at = time.monotonic() + seconds
    while time.monotonic() < stop_at:
        found = check()
        if found:
            return found
        time.sleep(every)
    raise AssertionError(f"waited {seconds:.0f} s in vain for {what}")


def clean_environment(**extra: str) -> dict[str, str]:
    """The environment of a started program: nothing of the caller's kfd settings."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("KFD_")}
    return kept | {"PYTHONUNBUFFERED": "1"} | extra


class Process:
    """One program with its log."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self.process: subprocess.Popen[bytes] | None = None

    def spawn(self, command: list[str], **environment: str) -> None:
        """Start it in a session of its own, log appended."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=clean_environment(**environment),
                start_new_session=True,
            )

    def kill(self) -> None:
        """Kill -9, this process only."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                self.process.kill()
            self.process.wait(10)

    def terminate(self, seconds: float = 10.0) -> int:
        """SIGTERM and wait; the exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)

    @property
    def is_alive(self) -> bool:
        """Whether it runs."""
        return self.process is not None and self.process.poll() is None

    def tail(self, characters: int = 4000) -> str:
        """End of its log."""
        return self.log.read_text("utf-8", "replace")[-characters:] if self.log.exists() else ""


class Daemon(Process):
    """``kfd serve`` with its own state folder; keeps its port over restarts."""

    def __init__(self, folder: Path, *arguments: str, config: str = "") -> None:
        super().__init__(folder / "daemon.log")
        self.state = folder / "state"
        self.arguments = list(arguments)
        if config:
            path = folder / "kfd.toml"
            path.write_text(config, encoding="utf-8")
            self.arguments += ["--config", str(path)]

    def start(self, **environment: str) -> None:
        """Start and wait until it answers."""
        command = [sys.executable, "-m", "kfd.daemon.cli", "serve", "--listen", "127.0.0.1:0"]
        before = self._announced()
        self.spawn([*command, "--state-dir", str(self.state), *self.arguments], **environment)

        def up() -> bool:
            if not self.is_alive:
                raise AssertionError(f"the daemon ended at once:\n{self.tail()}")
            announced = self._announced()
            return announced is not None and announced != before

        wait_for("the daemon to start", up)

    def _announced(self) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = json.loads((self.state / "client.json").read_text())
        except (OSError, ValueError):
            return None
        return found

    @property
    def address(self) -> str:
        """HOST:PORT."""
        announced = self._announced()
        assert announced is not None
        return str(announced["address"])

    @property
    def token_file(self) -> Path:
        """Where the token lies."""
        return self.state / "token"

    def __enter__(self) -> Daemon:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_alive:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.terminate()
        self.kill()

    # ---- its services ---------------------------------------------------------------------------------

    @contextlib.contextmanager
    def control(self) -> Iterator[control_pb2_grpc.ControlServiceStub]:
        """A stub whose calls carry the token and a deadline."""
        with grpc.insecure_channel(self.address) as channel:
            yield control_pb2_grpc.ControlServiceStub(grpc.intercept_channel(channel, _Caller(self.token_file)))

    def upload(self, archive: bytes) -> common_pb2.Digest:
        """Put a blob."""
        digest = digest_of(archive)
        message = common_pb2.Digest(hash=digest.hash, size=digest.size)
        metadata = (("authorization", f"Bearer {self.token_file.read_text().strip()}"),)

        def parts() -> Iterator[blob_pb2.WriteRequest]:
            yield blob_pb2.WriteRequest(header=blob_pb2.WriteHeader(digest=message, offset=0))
            for at in range(0, len(archive), 256 << 10):
                yield blob_pb2.WriteRequest(data=archive[at : at + (256 << 10)])

        with grpc.insecure_channel(self.address) as channel:
            blob_pb2_grpc.BlobServiceStub(channel).Write(parts(), metadata=metadata, timeout=30)
        return message

    def submit(self, archive: bytes, key: str, **options: Any) -> str:
        """Start a campaign; its id."""
        task = self.upload(archive)
        request = control_pb2.SubmitCampaignRequest(
            idempotency_key=key, task=task, options=control_pb2.CampaignOptions(**options)
        )
        with self.control() as control:
            return str(control.SubmitCampaign(request).campaign)

    def campaign(self, id_: str) -> control_pb2.Campaign:
        """One campaign."""
        with self.control() as control:
            return control.GetCampaign(control_pb2.GetCampaignRequest(campaign=id_)).campaign

    def candidates(self, id_: str) -> list[control_pb2.Candidate]:
        """All candidates of a campaign."""
        found: list[control_pb2.Candidate] = []
        with self.control() as control:
            while True:
                request = control_pb2.ListCandidatesRequest(campaign=id_, from_start=not found, limit=500)
                if found:
                    request.after_ordinal = found[-1].ordinal
                page = control.ListCandidates(request)
                found += page.candidates
                if not page.more:
                    return found

    def wait_ended(self, id_: str, seconds: float = 120.0) -> control_pb2.Campaign:
        """Wait until a campaign has ended; survives restarts of the daemon."""

        def ended() -> control_pb2.Campaign | None:
            try:
                campaign = self.campaign(id_)
            except grpc.RpcError:
                return None
            return campaign if campaign.state in ("finished", "failed", "cancelled") else None

        try:
            found: control_pb2.Campaign = wait_for(f"campaign {id_} to end", ended, seconds, 0.2)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.tail()}") from error
        return found


class _Caller(grpc.UnaryUnaryClientInterceptor, grpc.UnaryStreamClientInterceptor):  # type: ignore[misc,type-arg]
    def __init__(self, token_file: Path) -> None:
        self._metadata = (("authorization", f"Bearer {token_file.read_text().strip()}"),)

    def _with(self, details: Any) -> Any:
        return details._replace(metadata=self._metadata, timeout=details.timeout or 20)

    def intercept_unary_unary(self, continuation: Any, client_call_details: Any, request: Any) -> Any:
        return continuation(self._with(client_call_details), request)

    def intercept_unary_stream(self, continuation: Any, client_call_details: Any, request: Any) -> Any:
        return continuation(self._with(client_call_details), request)


class Agent(Process):
    """``kfd-worker run``."""

    def __init__(self, folder: Path, daemon: Daemon, name: str, *arguments: str) -> None:
        super().__init__(folder / f"{name}.log")
        self.state = folder / name
        self.name = name
        self.daemon = daemon
        self.arguments = arguments

    def start(self, **environment: str) -> None:
        """Start it; it registers by itself."""
        command = [sys.executable, "-m", "kfd_worker.cli", "run", "--daemon", self.daemon.address]
        command += ["--token-file", str(self.daemon.token_file), "--state-dir", str(self.state), "--name", self.name]
        self.spawn([*command, *self.arguments], **environment)

    def __enter__(self) -> Agent:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_alive:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.terminate(15)
        self.kill()
