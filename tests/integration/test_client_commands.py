"""The client against a real gRPC server with scripted services."""

# ruff: noqa: E501 - tables

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import grpc
import pytest

from kfd.api.v1 import (
    admin_pb2,
    admin_pb2_grpc,
    blob_pb2,
    blob_pb2_grpc,
    control_pb2,
    control_pb2_grpc,
)
from kfd.base.digest import digest_of
from kfd.base.work import CHECKED_ONLY
from kfd.tasks import load, pack
from kfd_client import follow as following
from kfd_client.cli import main
from kfd_client.commands.submit import _wanted
from kfd_client.exits import Failure

TOKEN = "t0ken-" + "x" * 40
CONFIG = """\
name: scale
target: cpp:native
kernel: kernel.cpp
interface:
  - {name: x, role: in, dtype: float32, shape: [n]}
  - {name: y, role: out, dtype: float32, shape: [n]}
  - {name: n, role: size}
"""
TASK = 'CASES = [{"name": "a", "n": 8}]\ndef make_inputs(case, generator):\n    return {}\ndef reference(x):\n    return x\n'
KERNEL = 'extern "C"\n// [EVOLVE_START]\nint solve(const float *x, float *y, long n) { return 0; }\n// [EVOLVE_END]\n'


class Daemon(
    control_pb2_grpc.ControlServiceServicer, blob_pb2_grpc.BlobServiceServicer, admin_pb2_grpc.AdminServiceServicer
):
    """What a daemon looks like from outside, with faults on request."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytearray] = {}
        self.sizes: dict[str, int] = {}
        self.calls: list[tuple[str, Any]] = []
        self.chunks: list[int] = []
        self.faults: dict[str, list[tuple[grpc.StatusCode, str, tuple[tuple[str, str], ...]] | None]] = {}
        self.campaign = control_pb2.Campaign(
            id="c7f3k2x",
            name="scale-1",
            state="running",
            budget_candidates=4,
            baseline="reference",
            initial="c7f3k2x-0",
        )
        self.keys: dict[str, str] = {}
        self.streams: list[list[int]] = []
        self.watched = Event()
        self.hold = Event()
        self.hold.set()
        self.source = "int solve() { return 0; }\x1b[31m\n"
        self.break_upload_after = -1
        self.pending = [
            control_pb2.PendingPrompt(
                candidate="c7f3k2x-3", operator="patch", prompt="Do\x1b[2J it", campaign="c7f3k2x"
            )
        ]

    def note(self, name: str, request: Any, context: grpc.ServicerContext) -> None:
        metadata = dict(context.invocation_metadata())
        if metadata.get("authorization") != f"Bearer {TOKEN}":
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "the token is missing or wrong")
        self.calls.append((name, request))
        faults = self.faults.get(name)
        fault = faults.pop(0) if faults else None
        if fault is not None:
            code, text, trailing = fault
            context.set_trailing_metadata(trailing)
            context.abort(code, text)

    def named(self, name: str) -> list[Any]:
        return [request for called, request in self.calls if called == name]

    def finish(self, **fields: Any) -> None:
        self.campaign.MergeFrom(control_pb2.Campaign(state="finished", best="c7f3k2x-2", **fields))
        self.campaign.best_speeds.append(
            control_pb2.Speed(baseline="reference", value=2.0, low=1.9, high=2.1, rounds=8)
        )

    def GetServerInfo(self, request: Any, context: Any) -> Any:
        raise NotImplementedError

    def ListCandidates(self, request: Any, context: Any) -> Any:
        raise NotImplementedError

    def Read(self, request: Any, context: Any) -> Any:
        raise NotImplementedError

    def FindMissing(self, request: Any, context: Any) -> Any:
        self.note("FindMissing", request, context)
        return blob_pb2.FindMissingResponse(missing=[d for d in request.digests if not self.complete(d)])

    def complete(self, digest: Any) -> bool:
        return bool(len(self.blobs.get(digest.hash, b"")) == digest.size)

    def QueryWrite(self, request: Any, context: Any) -> Any:
        self.note("QueryWrite", request, context)
        kept = len(self.blobs.get(request.digest.hash, b""))
        return blob_pb2.QueryWriteResponse(committed_bytes=kept, complete=self.complete(request.digest))

    def Write(self, request_iterator: Any, context: Any) -> Any:
        self.note("Write", None, context)
        header = next(request_iterator).header
        data = self.blobs.setdefault(header.digest.hash, bytearray())
        assert header.offset == len(data)
        for request in request_iterator:
            self.chunks.append(len(request.data))
            data += request.data
            if 0 <= self.break_upload_after <= len(data):
                self.break_upload_after = -1
                context.abort(grpc.StatusCode.UNAVAILABLE, "cut")
        return blob_pb2.WriteResponse(committed_bytes=len(data), complete=self.complete(header.digest))

    def SubmitCampaign(self, request: Any, context: Any) -> Any:
        existed = request.idempotency_key in self.keys
        self.keys[request.idempotency_key] = self.campaign.id
        self.note("SubmitCampaign", request, context)
        return control_pb2.SubmitCampaignResponse(campaign=self.campaign.id, name=self.campaign.name, existed=existed)

    def GetCampaign(self, request: Any, context: Any) -> Any:
        self.note("GetCampaign", request, context)
        return control_pb2.GetCampaignResponse(campaign=self.campaign)

    def ListCampaigns(self, request: Any, context: Any) -> Any:
        self.note("ListCampaigns", request, context)
        return control_pb2.ListCampaignsResponse(campaigns=[self.campaign])

    def CancelCampaign(self, request: Any, context: Any) -> Any:
        self.note("CancelCampaign", request, context)
        self.campaign.state = "cancelled"
        return control_pb2.CancelCampaignResponse(campaign=self.campaign)

    def PauseCampaign(self, request: Any, context: Any) -> Any:
        self.note("PauseCampaign", request, context)
        self.campaign.state = "paused"
        return control_pb2.PauseCampaignResponse(campaign=self.campaign)

    def ResumeCampaign(self, request: Any, context: Any) -> Any:
        self.note("ResumeCampaign", request, context)
        self.campaign.state = "running"
        return control_pb2.ResumeCampaignResponse(campaign=self.campaign)

    def GetCandidate(self, request: Any, context: Any) -> Any:
        self.note("GetCandidate", request, context)
        return control_pb2.GetCandidateResponse(
            candidate=control_pb2.Candidate(id=request.candidate, outcome="ok"),
            source=self.source if request.source else "",
            prompt="the prompt" if request.prompt else "",
            answer="the answer" if request.answer else "",
        )

    def ListPrompts(self, request: Any, context: Any) -> Any:
        self.note("ListPrompts", request, context)
        if request.prompt:
            one = control_pb2.PromptVariant(
                variant=request.prompt,
                mutation="c7f3k2x-p1",
                parent="aaa",
                state="accepted",
                question="Q\x1b[2J",
                answer="A",
            )
            one.regions.add(name="pitfalls", text="Mask tails.", parent_text="Beware.")
            return control_pb2.ListPromptsResponse(prompts=[one])
        last = min(request.skip + 2, 5)
        made = [control_pb2.PromptVariant(variant=f"v{n}", state="accepted") for n in range(request.skip, last)]
        return control_pb2.ListPromptsResponse(prompts=made, more=last < 5)

    def WatchEvents(self, request: Any, context: Any) -> Iterator[Any]:
        self.note("WatchEvents", request, context)
        self.watched.set()
        self.hold.wait(20)
        seqs = self.streams.pop(0) if self.streams else None
        if seqs is None:
            if self.campaign.state == "running":
                self.finish()
            return
        for seq in seqs:
            if seq < 0:
                context.abort(grpc.StatusCode.UNAVAILABLE, "cut")
            yield control_pb2.WatchEventsResponse(
                event=control_pb2.Event(
                    seq=seq, at="2026-12-01T07:00:00Z", campaign="c7f3k2x", kind="candidate.judged", body='{"n": 1}'
                )
            )

    def Ask(self, request: Any, context: Any) -> Any:
        self.note("Ask", request, context)
        return control_pb2.AskResponse(prompts=self.pending)

    def Tell(self, request: Any, context: Any) -> Any:
        self.note("Tell", request, context)
        return control_pb2.TellResponse(state="building", text="")

    def ListWorkers(self, request: Any, context: Any) -> Any:
        self.note("ListWorkers", request, context)
        return admin_pb2.ListWorkersResponse(workers=[admin_pb2.WorkerView(worker="lab1", state="up")])

    def DrainWorker(self, request: Any, context: Any) -> Any:
        self.note("DrainWorker", request, context)
        return admin_pb2.DrainWorkerResponse()

    def UndrainWorker(self, request: Any, context: Any) -> Any:
        self.note("UndrainWorker", request, context)
        return admin_pb2.UndrainWorkerResponse()


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "state"
    folder.mkdir()
    monkeypatch.setenv("KFD_STATE_DIR", str(folder))
    for name in ("KFD_ADDRESS", "KFD_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture
def daemon(state: Path) -> Iterator[Daemon]:
    made = Daemon()
    server = grpc.server(ThreadPoolExecutor(4), options=[("grpc.so_reuseport", 0)])
    control_pb2_grpc.add_ControlServiceServicer_to_server(made, server)
    blob_pb2_grpc.add_BlobServiceServicer_to_server(made, server)
    admin_pb2_grpc.add_AdminServiceServicer_to_server(made, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    (state / "token").write_text(TOKEN + "\n")
    (state / "client.json").write_text(json.dumps({"address": f"127.0.0.1:{port}", "token_file": str(state / "token")}))
    yield made
    made.hold.set()
    server.stop(None).wait(5)


@pytest.fixture
def task(tmp_path: Path) -> Path:
    folder = tmp_path / "scale"
    folder.mkdir()
    for name, text in (("config.yaml", CONFIG), ("task.py", TASK), ("kernel.cpp", KERNEL)):
        (folder / name).write_text(text)
    return folder


Capture = Any


def run(capsys: Capture, *arguments: object) -> tuple[int, str, str]:
    code = main([str(argument) for argument in arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


# ---- submit ----


def test_submit_uploads_the_canonical_archive_and_prints_only_the_id_into_a_pipe(
    daemon: Daemon, task: Path, capsys: Capture
) -> None:
    code, out, _ = run(
        capsys, "submit", task, "--candidates", 5, "--hours", 0.5, "--model", "a", "--model", "b", "--seed", 7
    )
    assert (code, out) == (0, "c7f3k2x\n")
    archive = pack(task)
    assert bytes(daemon.blobs[digest_of(archive).hash]) == archive
    assert load(archive).spec.name == "scale"
    (request,) = daemon.named("SubmitCampaign")
    options = request.options
    assert (options.candidates, options.max_ns, list(options.models), options.seed) == (
        5,
        1_800_000_000_000,
        ["a", "b"],
        7,
    )
    assert request.task.hash == digest_of(archive).hash
    assert len(request.idempotency_key) >= 16
    assert not daemon.named("WatchEvents")


def test_budgets_are_submitted_as_they_are_typed_and_are_absent_unless_they_are(
    daemon: Daemon, task: Path, capsys: Capture
) -> None:
    flags = ["--budget-money", "2.5", "--budget-tokens", "2000000", "--budget-device", "1.5h"]
    assert run(capsys, "submit", task, *flags)[0] == run(capsys, "submit", task)[0] == 0
    typed, none = (request.options for request in daemon.named("SubmitCampaign"))
    assert (typed.budget_micro_money, typed.budget_tokens) == (2_500_000, 2_000_000)
    assert typed.budget_device_ns == 5400 * 10**9
    assert not any(none.HasField(f"budget_{name}") for name in ("micro_money", "tokens", "device_ns"))


@pytest.mark.parametrize(
    ("flag", "values"),
    [
        ("--budget-money", ["0", "-1", "nan", "inf", "1e12", "five", "0.0000001"]),
        ("--budget-tokens", ["0", "-5", "many"]),
        ("--budget-device", ["0s", "2", "-2h", "2 hours", "9999d", "nan"]),
    ],
)
def test_a_budget_that_is_none_is_refused_before_anything_is_sent(
    daemon: Daemon, task: Path, capsys: Capture, flag: str, values: list[str]
) -> None:
    for value in values:
        code, _, err = run(capsys, "submit", task, f"{flag}={value}")
        assert code == 2
        assert flag in err
    assert not daemon.calls


def test_an_upload_is_cut_into_small_messages_and_taken_up_where_it_broke(
    daemon: Daemon, task: Path, capsys: Capture
) -> None:
    (task / "notes.bin").write_bytes(os.urandom(1 << 20))
    daemon.break_upload_after = 600_000
    assert run(capsys, "submit", task)[0] == 0
    assert max(daemon.chunks) <= 256 << 10
    assert sum(daemon.chunks) == len(pack(task))
    assert len(daemon.named("Write")) == 2


def test_what_the_daemon_has_is_not_sent_again(daemon: Daemon, task: Path, capsys: Capture) -> None:
    for _ in range(2):
        run(capsys, "submit", task)
    assert len(daemon.named("Write")) == 1


def test_a_submission_whose_answer_was_lost_is_repeated_with_the_same_key(
    daemon: Daemon, task: Path, capsys: Capture
) -> None:
    daemon.faults["SubmitCampaign"] = [(grpc.StatusCode.UNAVAILABLE, "gone", ())]
    code, out, _ = run(capsys, "submit", task)
    assert (code, out) == (0, "c7f3k2x\n")
    assert len(daemon.named("SubmitCampaign")) == 2
    assert len(daemon.keys) == 1


def of_targets(task: Path, *targets: str) -> None:
    config = task / "config.yaml"
    kept = [line for line in config.read_text("utf-8").split("\n") if not line.startswith("target:")]
    config.write_text("\n".join([f"targets: [{', '.join(targets)}]", *kept]), encoding="utf-8")


def test_a_target_that_the_task_has_not_starts_no_campaign_for_the_others(
    daemon: Daemon, task: Path, capsys: Capture
) -> None:
    of_targets(task, "sim:device", "sim:other")
    code, _, err = run(capsys, "submit", task, "--target", "sim:device", "--target", "cpp:natve")
    assert code == 2
    assert "the task has no target 'cpp:natve'" in err
    assert "sim:device, sim:other" in err
    assert not daemon.calls


def test_a_submission_that_is_refused_half_way_says_what_goes_on_and_how_to_start_the_rest(
    daemon: Daemon, task: Path, capsys: Capture
) -> None:
    of_targets(task, "sim:device", "sim:other")
    daemon.faults["SubmitCampaign"] = [None, (grpc.StatusCode.INVALID_ARGUMENT, "there is a campaign named x", ())]
    code, out, err = run(capsys, "submit", task, "--target", "all", "--name", "x")
    assert (code, out) == (2, "c7f3k2x\n")
    assert "started and going on: c7f3k2x" in err
    (key,) = re.findall(r"--idempotency-key ([0-9a-f]{32})\n", err)
    assert [one.idempotency_key for one in daemon.named("SubmitCampaign")] == [f"{key}:sim:device", f"{key}:sim:other"]


@pytest.mark.parametrize(
    ("targets", "wanted", "sent"),
    [
        (["all"], ["sim:device", "sim:other"], ["sim:device", "sim:other"]),
        (["sim:other", "all", "sim:other"], ["sim:device", "sim:other"], ["sim:other", "sim:device"]),
        (["sim:device", "sim:device"], ["sim:device", "sim:other"], ["sim:device"]),
        (["all"], ["triton:sm_90", CHECKED_ONLY], ["triton:sm_90"]),
        ([CHECKED_ONLY], ["triton:sm_90", CHECKED_ONLY], [CHECKED_ONLY]),
        ([], ["sim:device", "sim:other"], [""]),
        (["triton:sm_90", CHECKED_ONLY], ["triton:sm_90", CHECKED_ONLY], None),
        (["all"], [CHECKED_ONLY], None),
    ],
)
def test_targets_are_taken_once_each_and_all_of_them_can_be_timed(
    targets: list[str], wanted: list[str], sent: list[str] | None
) -> None:
    if sent is None:
        with pytest.raises(Failure, match="never"):
            _wanted(tuple(targets), tuple(wanted))
    else:
        assert _wanted(tuple(targets), tuple(wanted)) == tuple(sent)


def test_a_bad_task_is_refused_before_any_call_with_file_line_and_mend(
    daemon: Daemon, task: Path, capsys: Capture
) -> None:
    (task / "config.yaml").write_text(
        CONFIG.replace("kernel: kernel.cpp", "kernel: kernal.cpp").replace("name: scale", "nam: scale")
    )
    code, out, err = run(capsys, "submit", task)
    assert (code, out) == (2, "")
    assert "config.yaml:1: unknown key nam" in err
    assert "more)" in err
    assert f"kfd-client validate {task}" in err
    assert daemon.calls == []


def test_wait_follows_to_the_end_and_keeps_standard_output_to_the_id(
    daemon: Daemon, task: Path, capsys: Capture
) -> None:
    daemon.streams = [[1, 2, 3]]
    code, out, err = run(capsys, "submit", task, "--wait")
    assert (code, out) == (0, "c7f3k2x\n")
    assert "2.00x vs reference [1.90, 2.10], 8 rounds" in err


def test_wait_with_json_prints_one_object(daemon: Daemon, task: Path, capsys: Capture) -> None:
    code, out, _ = run(capsys, "--json", "submit", task, "--wait")
    assert code == 0
    assert json.loads(out)["state"] == "finished"


def test_the_exit_code_of_wait_says_that_nothing_better_was_found(daemon: Daemon, task: Path, capsys: Capture) -> None:
    daemon.campaign.state = "finished"
    assert run(capsys, "submit", task, "--wait")[0] == 9


def test_following_resumes_after_the_last_event_when_the_connection_breaks(daemon: Daemon, capsys: Capture) -> None:
    daemon.streams = [[4, 5, -1], [5, 6, -1], []]
    code, out, err = run(capsys, "logs", "c7f3k2x", "-f")
    assert code == 0
    assert [line.split()[1] for line in out.splitlines()] == ["4", "5", "6"]
    assert [request.after_seq for request in daemon.named("WatchEvents")] == [0, 5, 6, 6]
    assert "daemon is away" in err


def test_ctrl_c_leaves_the_campaign_running_and_says_so(daemon: Daemon, task: Path) -> None:
    daemon.hold.clear()
    command = [sys.executable, "-m", "kfd_client.cli", "submit", str(task), "--wait"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert daemon.watched.wait(20)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (130, "c7f3k2x\n")
    assert "c7f3k2x goes on" in err
    assert "kfd-client cancel c7f3k2x" in err
    assert daemon.named("CancelCampaign") == []


def test_following_gives_up_on_a_daemon_that_stays_away_but_only_after_long(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    daemon.faults["WatchEvents"] = [(grpc.StatusCode.UNAVAILABLE, "", ())] * 100
    monkeypatch.setattr(following, "_PATIENCE_S", -60.0)
    code, _, err = run(capsys, "logs", "c7f3k2x", "-f")
    assert code == 5
    assert "next:" in err


# ---- the other commands ----


def test_lists_screens_and_controls(daemon: Daemon, capsys: Capture) -> None:
    assert "scale-1" in run(capsys, "list")[1]
    assert "no correct kernel yet" in run(capsys, "status", "@last")[1]
    assert run(capsys, "status", "--exit-status")[0] == 8
    assert "paused" in run(capsys, "pause", "c7", "--reason", "lunch")[1]
    assert daemon.named("PauseCampaign")[0].reason == "lunch"
    assert "running" in run(capsys, "resume", "c7")[1]
    assert "cancelled" in run(capsys, "cancel", "c7")[1]
    assert "lab1" in run(capsys, "workers")[1]
    assert "undrain lab1" in run(capsys, "drain", "lab1", "--reason", "dust")[1]
    assert run(capsys, "undrain", "lab1")[0] == 0
    assert json.loads(run(capsys, "--json", "list")[1])["campaigns"][0]["id"] == "c7f3k2x"


def test_best_says_that_there_is_none_yet_or_none_at_all(daemon: Daemon, capsys: Capture) -> None:
    code, _, err = run(capsys, "best", "c7")
    assert (code, "kfd-client logs c7f3k2x -f" in err) == (8, True)
    daemon.campaign.state = "finished"
    assert run(capsys, "best", "c7")[0] == 9


def test_sources_go_into_files_and_pipes_to_the_letter(daemon: Daemon, tmp_path: Path, capfdbinary: Capture) -> None:
    daemon.finish()
    file = tmp_path / "best.cpp"
    assert main(["best", "c7", "-o", str(file)]) == 0
    assert file.read_bytes() == daemon.source.encode()
    capfdbinary.readouterr()
    assert main(["best", "c7", "--source"]) == 0
    assert capfdbinary.readouterr().out == daemon.source.encode()
    assert main(["show", "c7-2", "--prompt", "--answer"]) == 0
    assert capfdbinary.readouterr().out == b"the prompt\nthe answer\n"


def test_prompts_are_listed_whole_whatever_a_page_holds(daemon: Daemon, capsys: Capture) -> None:
    code, out, _ = run(capsys, "prompts", "c7")
    assert code == 0
    assert [line.split()[1] for line in out.splitlines()[1:]] == ["v0", "v1", "v2", "v3", "v4"]
    assert [request.skip for request in daemon.named("ListPrompts")] == [0, 2, 4]
    (whole,) = (json.loads(line) for line in run(capsys, "--json", "prompts", "c7")[1].splitlines())
    assert [one["variant"] for one in whole["prompts"]] == ["v0", "v1", "v2", "v3", "v4"]


def test_one_prompt_is_shown_as_a_diff_or_to_the_letter(daemon: Daemon, capfdbinary: Capture) -> None:
    assert main(["prompts", "c7", "bbb"]) == 0
    assert b"  -Beware.\n  +Mask tails.\n" in capfdbinary.readouterr().out
    assert main(["prompts", "c7", "bbb", "--text"]) == 0
    assert capfdbinary.readouterr().out == b"pitfalls:\n\nMask tails.\n"
    assert main(["prompts", "c7", "bbb", "--question", "--answer"]) == 0
    assert capfdbinary.readouterr().out == b"Q\x1b[2J\nA\n"
    assert [request.prompt for request in daemon.named("ListPrompts")] == ["bbb"] * 3


def test_texts_of_a_prompt_need_its_name(daemon: Daemon, capsys: Capture) -> None:
    code, _, err = run(capsys, "prompts", "c7", "--text")
    assert (code, "need a PROMPT" in err) == (2, True)
    assert not daemon.named("ListPrompts")


def test_a_source_on_a_terminal_is_made_plain(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch, capfdbinary: Capture
) -> None:
    daemon.finish()
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    main(["best", "c7", "--source"])
    assert capfdbinary.readouterr().out == b"int solve() { return 0; }\n"


def test_ask_writes_prompts_and_tell_answers_them(daemon: Daemon, tmp_path: Path, capsys: Capture) -> None:
    code, out, _ = run(capsys, "ask", "c7", "-o", tmp_path / "asks")
    assert code == 0
    assert "kfd-client tell c7f3k2x-3" in out
    assert (tmp_path / "asks" / "c7f3k2x-3.md").read_text() == "Do\x1b[2J it"
    (tmp_path / "answer.md").write_text("```\nx\n```\n")
    code, out, _ = run(capsys, "tell", "c7f3k2x-3", tmp_path / "answer.md", "--model", "alice")
    assert (code, out) == (0, "c7f3k2x-3 building\n")
    (request,) = daemon.named("Tell")
    assert (request.answer, request.model) == ("```\nx\n```\n", "alice")


@pytest.mark.parametrize("candidate", ["../evil", "/etc/evil", "", "a/b", ".hidden", "x" * 300])
def test_a_candidate_id_never_chooses_where_a_prompt_is_written(
    candidate: str, daemon: Daemon, tmp_path: Path, capsys: Capture
) -> None:
    daemon.pending[0].candidate = candidate
    before = set(tmp_path.rglob("*"))
    assert run(capsys, "ask", "c7", "-o", tmp_path / "asks")[0] == 1
    assert set(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("content", "message"), [(b"\xff\xfe", "UTF-8"), (b"x" * ((1 << 20) + 1), "larger"), (None, "cannot read")]
)
def test_an_answer_that_cannot_be_sent_is_refused_here(
    content: bytes | None, message: str, daemon: Daemon, tmp_path: Path, capsys: Capture
) -> None:
    if content is not None:
        (tmp_path / "a").write_bytes(content)
    code, _, err = run(capsys, "tell", "c7-3", tmp_path / "a")
    assert (code, message in err) == (2, True)
    assert daemon.named("Tell") == []


# ---- errors ----


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (grpc.StatusCode.NOT_FOUND, 3),
        (grpc.StatusCode.PERMISSION_DENIED, 4),
        (grpc.StatusCode.UNAUTHENTICATED, 4),
        (grpc.StatusCode.UNAVAILABLE, 5),
        (grpc.StatusCode.FAILED_PRECONDITION, 6),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, 7),
        (grpc.StatusCode.INVALID_ARGUMENT, 2),
        (grpc.StatusCode.INTERNAL, 1),
        (grpc.StatusCode.UNIMPLEMENTED, 1),
    ],
)
@pytest.mark.parametrize("advised", [True, False])
def test_each_failed_call_has_its_exit_code_and_says_what_to_do_next(
    status: grpc.StatusCode, code: int, advised: bool, daemon: Daemon, capsys: Capture
) -> None:
    trailing = (
        (("kfd-reason", "X"), ("kfd-mend", "Type this."), ("kfd-file", "task.py"), ("kfd-line", "12"))
        if advised
        else ()
    )
    daemon.faults["GetCampaign"] = [(status, "it is \x1b[31mso", trailing)]
    got, out, err = run(capsys, "status", "c7")
    assert (got, out) == (code, "")
    assert "\x1b" not in err
    assert "next: " in err
    if advised:
        assert "next: " + ("Type this." if status is not grpc.StatusCode.UNIMPLEMENTED else "Update") in err
        assert "task.py:12: " in err


def test_an_error_as_json_is_one_object(daemon: Daemon, capsys: Capture) -> None:
    daemon.faults["GetCampaign"] = [(grpc.StatusCode.NOT_FOUND, "no campaign zz", ())]
    code, out, err = run(capsys, "--json", "status", "zz")
    told = json.loads(err)
    assert (code, out, told["exit"], told["error"]) == (3, "", 3, "no campaign zz")
    assert told["next"]


def test_a_daemon_that_is_not_there_is_told_from_one_that_is_not_known(state: Path, capsys: Capture) -> None:
    code, _, err = run(capsys, "list")
    assert (code, "kfd serve" in err) == (5, True)
    code, _, err = run(capsys, "--address", "127.0.0.1:1", "--timeout", "3", "list")
    assert (code, "no daemon answers at 127.0.0.1:1" in err) == (5, True)


def test_a_wrong_token_is_not_allowed_and_never_shown(daemon: Daemon, state: Path, capsys: Capture) -> None:
    (state / "token").write_text("wrong-token-value\n")
    code, out, err = run(capsys, "list")
    assert (code, "--token-file" in err) == (4, True)
    assert "wrong-token-value" not in out + err


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--address", "nonsense", "list"], 2),
        (["--address", "example.org:7411", "list"], 4),
        (["--address", "127.0.0.1:1", "--token-file", "/nowhere/token", "list"], 4),
        (["lst"], 2),
        (["submit"], 2),
        (["submit", "x", "--candidates", "0"], 2),
        (["submit", "/nowhere"], 2),
    ],
)
def test_wrong_usage_is_told_with_what_to_type(arguments: list[str], code: int, state: Path, capsys: Capture) -> None:
    got, out, err = run(capsys, *arguments)
    assert (got, out) == (code, "")
    assert err.strip()


def test_a_misspelt_command_names_the_one_that_was_meant(capsys: Capture) -> None:
    assert "`submit`" in run(capsys, "sumbit")[2]


def test_a_token_goes_only_with_the_address_it_belongs_to(daemon: Daemon, state: Path, capsys: Capture) -> None:
    announced = json.loads((state / "client.json").read_text())
    (state / "client.json").write_text(json.dumps({**announced, "address": "127.0.0.1:2"}))
    code, _, _ = run(capsys, "--address", announced["address"], "list")
    assert code == 4
    assert run(capsys, "--address", announced["address"], "--token-file", state / "token", "list")[0] == 0


# ---- validate, and being thin ----


def test_validate_lists_every_problem_and_needs_no_daemon(task: Path, state: Path, capsys: Capture) -> None:
    code, out, _ = run(capsys, "validate", task)
    assert (code, "is well formed" in out) == (0, True)
    (task / "config.yaml").write_text(CONFIG.replace("name: scale", "nam: scale"))
    (task / "kernel.cpp").write_text("// [EVOLVE_END]\n")
    code, out, err = run(capsys, "validate", task)
    assert code == 1
    assert "config.yaml:1: unknown key nam" in out
    assert "kernel.cpp:1: [EVOLVE_END] without" in out
    assert "3 problems" in err
    told = json.loads(run(capsys, "--json", "validate", task)[1])
    first = told["problems"][0]
    assert (first["file"], first["line"]) == ("config.yaml", 1)


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["validate", "/nowhere"], ["list"]])
def test_no_command_needs_a_heavy_package(arguments: list[str]) -> None:
    heavy = ["torch", "openai", "aiosqlite", "pydantic", "structlog", "jinja2", "tree_sitter", "uvloop", "rich"]
    code = (
        "import sys\n"
        f"for name in {heavy!r}: sys.modules[name] = None\n"
        f"from kfd_client.cli import main\ncode = main({arguments!r})\n"
        "assert 'grpc' not in sys.modules or sys.argv, code\n"
        f"print('grpc' in sys.modules, file=sys.stderr)\nsys.exit(0 if code in (0, 2, 1, 5) else 1)"
    )
    result = python(code)
    assert result.returncode == 0, result.stderr
    if arguments == ["--version"]:
        assert result.stderr.strip().endswith("False")


def test_version_is_quick() -> None:
    def once() -> float:
        process = subprocess.Popen([sys.executable, "-m", "kfd_client.cli", "--version"], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        return usage.ru_utime + usage.ru_stime

    # CPU time, and the least of several, so that a busy machine does not matter.
    assert min(once() for _ in range(5)) < 0.2


def test_every_command_has_help(capsys: Capture) -> None:
    _, out, _ = run(capsys, "--help")
    names = [line.split()[0] for line in out[out.index("Commands:") :].splitlines()[1:] if line.strip()]
    assert set(names) >= {
        "submit",
        "list",
        "status",
        "logs",
        "best",
        "show",
        "prompts",
        "cancel",
        "workers",
        "ask",
        "tell",
        "validate",
    }
    for name in names:
        assert run(capsys, name, "--help")[0] == 0
