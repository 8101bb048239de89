"""The daemon as a process: starts, refuses, survives and stops as promised."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
import time
from pathlib import Path

import grpc
import pytest

from kfd.api.v1 import control_pb2, control_pb2_grpc, worker_pb2, worker_pb2_grpc
from kfd.tasks import pack
from kfd.testing.sim_task import write_sim_task
from tests.e2e.harness import Agent, Daemon, clean_environment, wait_for


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kfd.daemon.cli", *arguments],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        env=clean_environment(),
    )


def test_a_second_daemon_on_the_same_folder_is_refused_and_names_the_first(tmp_path: Path) -> None:
    with Daemon(tmp_path) as daemon:
        assert daemon.process is not None
        second = run("serve", "--state-dir", str(daemon.state), "--listen", "127.0.0.1:0")
        assert second.returncode == 3
        assert str(daemon.process.pid) in second.stderr
        assert "next:" in second.stderr


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "192.168.0.1:7440", "7440"])
def test_only_loopback_is_listened_on(tmp_path: Path, listen: str) -> None:
    refused = run("serve", "--state-dir", str(tmp_path / "state"), "--listen", listen)
    assert refused.returncode == 2
    assert "Traceback" not in refused.stderr
    assert not (tmp_path / "state").exists()


def test_a_taken_port_is_named_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    with Daemon(tmp_path / "one") as daemon:
        refused = run("serve", "--state-dir", str(tmp_path / "two"), "--listen", daemon.address)
        assert refused.returncode == 1
        assert "another program has the port" in refused.stderr


def test_the_token_is_private_and_needed(tmp_path: Path) -> None:
    with Daemon(tmp_path) as daemon:
        assert stat.S_IMODE(daemon.token_file.stat().st_mode) == 0o600
        assert stat.S_IMODE(daemon.state.stat().st_mode) == 0o700
        with grpc.insecure_channel(daemon.address) as channel:
            for metadata in ((), (("authorization", "Bearer wrong"),)):
                with pytest.raises(grpc.RpcError) as caught:
                    control_pb2_grpc.ControlServiceStub(channel).ListCampaigns(
                        control_pb2.ListCampaignsRequest(), metadata=metadata, timeout=5
                    )
                assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED  # type: ignore[attr-defined]
                with pytest.raises(grpc.RpcError) as caught:
                    worker_pb2_grpc.WorkerServiceStub(channel).Sync(
                        worker_pb2.SyncRequest(), metadata=metadata, timeout=5
                    )
                assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED  # type: ignore[attr-defined]
        text = (daemon.tail(100_000)).encode()
        assert daemon.token_file.read_bytes().strip() not in text


def test_sigterm_ends_it_within_ten_seconds_with_a_campaign_and_parked_agents(tmp_path: Path) -> None:
    archive = pack(write_sim_task(tmp_path / "task"))
    with Daemon(tmp_path) as daemon, Agent(tmp_path, daemon, "agent", "--executor", "simulated"):
        id_ = daemon.submit(archive, "key", generator="manual")
        wait_for("prompts to wait", lambda: daemon.campaign(id_).state == "running")
        begun = time.monotonic()
        assert daemon.terminate() == 0
        assert time.monotonic() - begun < 10
        daemon.start()
        campaign = daemon.campaign(id_)
        assert campaign.state == "running"
        assert [(c.key, c.value) for c in campaign.candidates_by_outcome] == [("drafting", 4), ("ok", 1)]


def test_a_person_can_be_the_model_and_answers_survive_a_kill(tmp_path: Path) -> None:
    archive = pack(write_sim_task(tmp_path / "task"))
    config = "[campaign.search.operators]\npatch = 0.0\n"
    with (
        Daemon(tmp_path, config=config) as daemon,
        Agent(tmp_path, daemon, "agent", "--executor", "simulated"),
    ):
        id_ = daemon.submit(archive, "key", generator="manual", candidates=3)

        def ask() -> list[control_pb2.PendingPrompt]:
            with daemon.control() as control:
                return list(control.Ask(control_pb2.AskRequest(campaign=id_)).prompts)

        prompts = wait_for("three prompts", lambda: found if len(found := ask()) == 3 else None)
        assert "solve" in prompts[0].prompt
        block = 'extern "C" int solve(const float *x, float *y, int64_t n) { (void)x; (void)y; (void)n; return 0; }\n'
        told = f"```cpp\n// sim: verdict=ok speedup=1.5\n{block}```\n"
        with daemon.control() as control:
            first = control.Tell(control_pb2.TellRequest(candidate=prompts[0].candidate, answer=told))
            assert first.state in ("building", "running", "judged")
            prose = control.Tell(control_pb2.TellRequest(candidate=prompts[1].candidate, answer="I would rather not."))
            assert prose.state == "discarded"
            with pytest.raises(grpc.RpcError) as caught:
                control.Tell(control_pb2.TellRequest(candidate=prompts[0].candidate, answer=told))
            assert caught.value.code() is grpc.StatusCode.FAILED_PRECONDITION  # type: ignore[attr-defined]
        daemon.kill()
        daemon.start()
        again = wait_for("the open prompt", lambda: found if len(found := ask()) == 1 else None)
        assert again[0].candidate == prompts[2].candidate
        with daemon.control() as control:
            control.Tell(control_pb2.TellRequest(candidate=again[0].candidate, answer=told.replace("1.5", "1.6")))
        campaign = daemon.wait_ended(id_)
        assert campaign.state == "finished"
        assert sum(count.value for count in campaign.candidates_by_outcome) == 4


def test_events_resume_by_number_and_end_with_the_campaign(tmp_path: Path) -> None:
    archive = pack(write_sim_task(tmp_path / "task"))
    with Daemon(tmp_path) as daemon, Agent(tmp_path, daemon, "agent", "--executor", "simulated"):
        id_ = daemon.submit(archive, "key", generator="manual", candidates=1)
        with daemon.control() as control:
            stream = control.WatchEvents(control_pb2.WatchEventsRequest(campaign=id_, follow=True), timeout=30)
            first = [next(stream).event for _ in range(2)]
            stream.cancel()
            control.CancelCampaign(control_pb2.CancelCampaignRequest(campaign=id_, reason="enough"))
            rest = [
                message.event
                for message in control.WatchEvents(
                    control_pb2.WatchEventsRequest(campaign=id_, follow=True, after_seq=first[-1].seq), timeout=30
                )
            ]
        numbers = [event.seq for event in (*first, *rest)]
        assert numbers == sorted(set(numbers))
        assert rest[-1].kind == "campaign.cancelled"


def test_errors_say_what_happened_and_what_to_do(tmp_path: Path) -> None:
    with Daemon(tmp_path) as daemon, daemon.control() as control:
        for call, request, code in (
            (control.GetCampaign, control_pb2.GetCampaignRequest(campaign="nope"), "NOT_FOUND"),
            (control.GetCandidate, control_pb2.GetCandidateRequest(candidate="nope"), "NOT_FOUND"),
            (control.SubmitCampaign, control_pb2.SubmitCampaignRequest(idempotency_key="k"), "INVALID_ARGUMENT"),
            (control.CancelCampaign, control_pb2.CancelCampaignRequest(campaign="nope"), "NOT_FOUND"),
        ):
            with pytest.raises(grpc.RpcError) as caught:
                call(request)
            error = caught.value
            assert error.code().name == code  # type: ignore[attr-defined]
            trailing = dict(error.trailing_metadata())  # type: ignore[attr-defined]
            assert trailing["kfd-reason"]
            assert re.search(r"\w", error.details())  # type: ignore[attr-defined]


def test_a_full_disk_stops_new_work_and_loses_nothing(tmp_path: Path) -> None:
    archive = pack(write_sim_task(tmp_path / "task"))
    free = os.statvfs(tmp_path).f_bavail * os.statvfs(tmp_path).f_frsize >> 20
    with (
        Daemon(tmp_path, config="[disk]\nfloor_mb = 1\n") as daemon,
        Agent(tmp_path, daemon, "agent", "--executor", "simulated"),
    ):
        id_ = daemon.submit(archive, "key", generator="manual", candidates=2)
        wait_for("prompts to wait", lambda: daemon.campaign(id_).state == "running")
        daemon.kill()
        (tmp_path / "kfd.toml").write_text(f"[disk]\nfloor_mb = {free * 2}\n")
        daemon.start()
        # Until its agent is back, the campaign waits for that as well.
        wait_for("the disk to be seen full", lambda: any("MiB free" in why for why in daemon.campaign(id_).waiting_for))
        daemon.kill()
        (tmp_path / "kfd.toml").write_text("[disk]\nfloor_mb = 1\n")
        daemon.start()
        counts = {count.key: count.value for count in daemon.campaign(id_).candidates_by_outcome}
        assert counts == {"ok": 1, "drafting": 2}


def test_a_state_folder_that_cannot_be_used_is_named_without_a_traceback(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    (damaged / "kfd.sqlite3").write_bytes(b"not a database at all " * 50)
    for folder in (damaged, Path("/proc/nowhere")):
        refused = run("serve", "--state-dir", str(folder), "--listen", "127.0.0.1:0")
        assert refused.returncode == 1
        assert "Traceback" not in refused.stderr
        assert "next:" in refused.stderr
    assert (damaged / "kfd.sqlite3").read_bytes().startswith(b"not a database")
