"""The command ``kfd-worker``: what it refuses and how it says so; and that no launcher is born of a gRPC process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kfd.base.digest import digest_of
from kfd.base.failure import BadInput
from kfd.base.work import (
    BuildResult,
    Incident,
    IncidentCode,
    JobSpec,
    Report,
    RunResult,
    SlotKind,
    Stage,
    Verdict,
    VerdictCode,
)
from kfd.testing.fleetkit import build_job
from kfd_worker.cli import main
from kfd_worker.config import AgentConfig, load_config
from kfd_worker.executors.script import script_of
from kfd_worker.executors.simulated import simulate_build, simulate_run
from kfd_worker.executors.sound import SoundExecutor
from kfd_worker.files import take_lock
from kfd_worker.launcher.config import DeviceFact, JobDone, LauncherFacts
from kfd_worker.slots import slots_of
from kfd_worker.transport import check_address


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["run", *arguments], catch_exceptions=False)
    return result.exit_code, result.output


class TestRefusals:
    def test_no_daemon(self, tmp_path: Path) -> None:
        code, text = run("--state-dir", str(tmp_path))
        assert code == 78
        assert "--daemon" in text

    def test_an_unknown_key_names_the_nearest_known_one(self, tmp_path: Path) -> None:
        config = tmp_path / "agent.toml"
        config.write_text('daemno = "127.0.0.1:1"\n')
        code, text = run("--config", str(config), "--state-dir", str(tmp_path / "state"))
        assert code == 78
        assert "agent.toml" in text
        assert "'daemno'" in text
        assert "'daemon'" in text

    @pytest.mark.parametrize(
        "line",
        ['build_lanes = "two"', "build_lanes = true", "name = 7", "build_lanes = 99", 'executor = "magic"', "= broken"],
    )
    def test_values_that_cannot_be(self, tmp_path: Path, line: str) -> None:
        config = tmp_path / "agent.toml"
        config.write_text(f'daemon = "127.0.0.1:1"\n{line}\n')
        assert run("--config", str(config), "--state-dir", str(tmp_path / "state"))[0] == 78

    def test_a_state_folder_in_use(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("kfd_worker.cli._LOCK_SECONDS", 0.0)
        with take_lock(tmp_path):
            code, text = run("--daemon", "127.0.0.1:1", "--state-dir", str(tmp_path))
        assert code == 75
        assert "already" in text

    @pytest.mark.parametrize("address", ["10.0.0.7:50", "gpu.example:50", "0.0.0.0:50", "[2001:db8::1]:50"])
    def test_a_token_never_crosses_a_network_in_clear(self, address: str) -> None:
        with pytest.raises(BadInput, match="another machine"):
            check_address(address)

    @pytest.mark.parametrize("address", ["127.0.0.1", "localhost:", ":50x", "127.0.0.1:0", "127.0.0.1:99999"])
    def test_what_is_no_address(self, address: str) -> None:
        with pytest.raises(BadInput, match="not an address"):
            check_address(address)

    @pytest.mark.parametrize("address", ["127.0.0.1:50", "localhost:50", "[::1]:50", "unix:/run/kfd.sock"])
    def test_this_machine_is_fine(self, address: str) -> None:
        check_address(address)


class TestConfig:
    def load(self, environment: dict[str, str], **given: Any) -> AgentConfig:
        return load_config(None, given, {"HOME": "/home/x", **environment})

    def test_options_go_before_the_environment(self) -> None:
        assert self.load({"KFD_DAEMON": "a:1"}).daemon == "a:1"
        assert self.load({"KFD_DAEMON": "a:1"}, daemon="b:2").daemon == "b:2"

    def test_the_environment_goes_before_the_file(self, tmp_path: Path) -> None:
        path = tmp_path / "c.toml"
        path.write_text('daemon = "file:1"\nrun_slots = 3\n')
        config = load_config(path, {}, {"HOME": "/", "KFD_DAEMON": "env:2"})
        assert (config.daemon, config.run_slots) == ("env:2", 3)

    def test_systemd_says_where_the_state_is(self) -> None:
        assert self.load({"KFD_DAEMON": "a:1", "STATE_DIRECTORY": "/var/lib/w"}).state_dir == "/var/lib/w"
        assert self.load({"KFD_DAEMON": "a:1"}).state_dir == "/home/x/.local/state/kfd-worker"

    def test_slots_are_lanes_and_devices(self) -> None:
        facts = LauncherFacts(
            toolchains=(),
            devices=tuple(
                DeviceFact(id=f"pci/0000:{n}", name="model", facts=(), targets=("cpp:native",)) for n in range(3)
            ),
            sandbox=(),
        )
        slots = slots_of(AgentConfig(build_lanes=2, run_slots=2), facts)
        assert [(slot.name, slot.kind, slot.device) for slot in slots] == [
            ("b0", SlotKind.BUILD, ""),
            ("b1", SlotKind.BUILD, ""),
            ("pci-0000:0", SlotKind.RUN, "pci/0000:0"),
            ("pci-0000:1", SlotKind.RUN, "pci/0000:1"),
        ]


@pytest.mark.parametrize("module", ["kfd_worker.cli", "kfd_worker.launcher.client", "kfd_worker.executors.local"])
def test_nothing_before_the_launcher_imports_grpc(module: str) -> None:
    code = f"import sys, {module}; sys.exit('grpc' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


class TestSimulator:
    def test_a_script_is_read_from_any_comment(self) -> None:
        script = script_of(b"/* sim: verdict=incorrect speedup=2.5 build_ms=5; run_ms=20 */ int x;")
        assert (script.verdict, script.speedup, script.build_ms, script.run_ms) == (
            VerdictCode.INCORRECT,
            2.5,
            5.0,
            20.0,
        )

    @pytest.mark.parametrize(
        "text", ["sim: speedup=nan", "sim: speedup=x verdict=great", "sim: build_ms=-5 foo=bar", "sim:", "sim: at=mars"]
    )
    def test_nonsense_is_ignored(self, text: str) -> None:
        script = script_of(text.encode())
        assert 0.5 <= script.speedup <= 3.0
        assert script.build_ms == 0.0

    def test_what_no_comment_says_is_drawn_from_the_source_and_stays_the_same(self) -> None:
        scripts = [script_of(f"kernel {n}".encode()) for n in range(400)]
        assert scripts == [script_of(f"kernel {n}".encode()) for n in range(400)]
        assert {script.verdict for script in scripts} >= {
            VerdictCode.OK,
            VerdictCode.COMPILE_ERROR,
            VerdictCode.INCORRECT,
        }
        assert len({script.speedup for script in scripts}) > 300

    def test_speedups_are_against_both_baselines(self) -> None:
        ours, initial = script_of(b"sim: verdict=ok speedup=3"), script_of(b"sim: speedup=2")
        report = simulate_run(digest_of(b"a"), ours, {"initial": initial})
        assert isinstance(report.detail, RunResult)
        assert {item.baseline: item.value for item in report.detail.speedups} == {"reference": 3.0, "initial": 1.5}

    def test_a_build_that_fails_has_a_message_and_no_artifact(self) -> None:
        source = b"sim: verdict=compile_error"
        report = simulate_build(source, script_of(source))
        assert isinstance(report.detail, BuildResult)
        assert report.detail.artifact is None
        assert report.detail.diagnostics


class _Broken:
    """An executor that breaks every law."""

    def __init__(self, fault: str) -> None:
        self.fault = fault
        self.stopped: list[str] = []

    async def facts(self) -> LauncherFacts:
        raise NotImplementedError

    async def run(self, ref: str, slot: str, spec: JobSpec, inputs: Any, on_stage: Any) -> JobDone:
        import asyncio

        on_stage(Stage.BUILD)
        if self.fault == "hang":
            await asyncio.Event().wait()
        if self.fault == "raise":
            raise ZeroDivisionError("oops")
        text = "x" * 10**6 if self.fault == "huge" else "not UTF-8: \udcff"
        stages = (("build", -1),) if self.fault == "negative" else ()
        outcome = Verdict(code=VerdictCode.OK, text=text)
        return JobDone(report=Report(outcome=outcome, log_tail=text * 100, stages_ns=stages))

    async def stop(self, ref: str, reason: str) -> None:
        self.stopped.append(ref)

    async def discard(self, ref: str) -> None:
        raise NotImplementedError

    async def close(self) -> None:
        raise NotImplementedError


class TestSound:
    async def do(self, fault: str) -> tuple[_Broken, Report]:
        broken = _Broken(fault)
        spec = build_job().spec
        short = JobSpec(work=spec.work, limits=type(spec.limits)(wall_ns=1))
        done = await SoundExecutor(broken, slack_seconds=0.05).run("a.b/1", "b0", short, {}, lambda stage: None)
        return broken, done.report

    async def test_a_job_that_never_ends_is_given_up_as_an_incident(self) -> None:
        broken, report = await self.do("hang")
        assert isinstance(report.outcome, Incident)
        assert report.outcome.code is IncidentCode.SANDBOX
        assert broken.stopped == ["a.b/1"]

    async def test_a_fault_of_ours_is_an_incident(self) -> None:
        _, report = await self.do("raise")
        assert isinstance(report.outcome, Incident)
        assert report.outcome.code is IncidentCode.INTERNAL

    async def test_bytes_that_are_no_text_do_not_stop_a_report(self) -> None:
        _, report = await self.do("surrogate")
        assert report.outcome == Verdict(code=VerdictCode.OK, text="not UTF-8: ?")

    async def test_a_report_that_no_wire_can_carry_is_an_incident(self) -> None:
        _, report = await self.do("negative")
        assert isinstance(report.outcome, Incident)

    async def test_a_report_is_cut_to_what_can_be_delivered(self) -> None:
        _, report = await self.do("huge")
        assert isinstance(report.outcome, Verdict)
        assert len(report.outcome.text) < 20_000
        assert len(report.log_tail) < 100_000
