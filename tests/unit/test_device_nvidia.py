"""NVIDIA devices as nvidia-smi tells them, and the canary."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kfd_worker.devices import canary, nvidia

ROW = (
    "GPU-5d1f, NVIDIA H200, 580.159.04, 143771, 9.0, 1980, 1980, 3201, 41, 120.55, Enabled, Enabled, Disabled, "
    "0x0000000000000000"
)


def test_a_row_becomes_a_device_with_its_architecture() -> None:
    (one,) = nvidia.devices_of(nvidia.parse_smi(ROW))
    assert (one.id, one.name) == ("GPU-5d1f", "NVIDIA H200")
    facts = dict(one.facts)
    assert facts["architecture"] == "sm_90"
    assert facts["memory_bytes"] == str(143771 << 20)
    assert facts["ecc"] == "enabled"


def test_a_state_says_why_clocks_are_low() -> None:
    (calm,) = nvidia.states_of(nvidia.parse_smi(ROW))
    assert (calm.sm_mhz, calm.temperature_c, calm.power_w, calm.persistence) == (1980, 41, 120.55, True)
    assert not calm.slowed
    (hot,) = nvidia.states_of(nvidia.parse_smi(ROW.replace("0x0000000000000000", "0x0000000000000064")))
    assert hot.reasons == ("power cap", "thermal slowdown (software)", "thermal slowdown (hardware)")
    assert hot.slowed
    assert ("gpu.slowed_by.end", ", ".join(hot.reasons)) in hot.facts("end")
    (idle,) = nvidia.states_of(nvidia.parse_smi(ROW.replace("0x0000000000000000", "0x0000000000000001")))
    assert idle.reasons == ("idle",)
    assert not idle.slowed


def test_what_a_device_does_not_tell_is_minus_one_and_unknown_reasons_slow() -> None:
    (one,) = nvidia.states_of(nvidia.parse_smi(ROW.replace("120.55", "[N/A]").replace(", 41,", ", [Not Supported],")))
    assert (one.power_w, one.temperature_c) == (-1, -1)
    assert nvidia.reasons_of(0x1000) == (("0x1000",), True)


def test_a_device_that_is_split_is_left_alone_and_noise_is_no_device() -> None:
    assert nvidia.devices_of(nvidia.parse_smi(ROW.replace("Disabled", "Enabled"))) == ()
    assert nvidia.parse_smi("Failed to initialize NVML: Driver/library version mismatch\n") == ()
    assert nvidia.parse_smi("GPU-1, short row") == ()


def test_a_device_has_a_file_of_its_own() -> None:
    text = "Model: \t\t NVIDIA H200\nIRQ:   \t\t 26\nGPU UUID: \t GPU-5d1f\nDevice Minor: \t 3\nGPU Excluded:\t No\n"
    assert nvidia.minor_of(text, "GPU-5d1f") == 3
    assert nvidia.minor_of(text, "GPU-0000") == -1
    assert nvidia.minor_of(text.replace("3\nGPU Ex", "x\nGPU Ex"), "GPU-5d1f") == -1
    assert nvidia.minor_of("", "") == -1


def test_no_driver_is_no_device(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert nvidia.probe() == ()
    assert nvidia.read_state("GPU-5d1f") is None


def test_a_driver_that_hangs_is_said_to(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\nexit 0\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)

    def hang(*_: object, **__: object) -> None:
        raise subprocess.TimeoutExpired("nvidia-smi", 20)

    monkeypatch.setattr(subprocess, "run", hang)
    with pytest.raises(TimeoutError, match="the driver hangs"):
        nvidia.probe()


def test_the_canarys_answer_is_the_kernels_arithmetic() -> None:
    value = 7
    for _ in range(1000):
        value = (value * 1664525 + 1013904223) % 2**32
    assert canary.expected(8)[7] == value


def test_a_canary_without_a_driver_is_unhealthy_and_says_why() -> None:
    sung = canary.sing(library="libnothing.so")
    assert not sung.healthy
    assert "libnothing.so" in sung.text


def test_a_canary_that_hangs_is_killed() -> None:
    sung = canary.sing(seconds=0.001)
    assert not sung.healthy
    assert "the device hangs" in sung.text
