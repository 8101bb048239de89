"""NVIDIA devices by UUID: what they are and how they are, asked in processes that can be killed.

The agent never makes a CUDA context and never loads NVML: a device that hangs must not hang the agent. With
``nvidia-ml-py`` a process of this module asks NVML, otherwise ``nvidia-smi`` is read. The state is recorded at both
ends of a measurement; nothing is ever set.
"""

from __future__ import annotations

import contextlib
import csv
import glob
import importlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kfd_worker.devices.port import Device

__all__ = [
    "DeviceState",
    "ask_nvml",
    "device_nodes",
    "devices_of",
    "main",
    "minor_of",
    "parse_smi",
    "probe",
    "read_state",
    "reasons_of",
    "states_of",
]

_ASK_S = 20
_MAX_DEVICES = 64
_REASONS = {
    0x1: "idle",
    0x2: "application clocks",
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "thermal slowdown (software)",
    0x40: "thermal slowdown (hardware)",
    0x80: "power brake",
    0x100: "display clocks",
}
_HARMLESS = 0x1 | 0x2
_FIELDS: Mapping[str, str] = {
    "uuid": "uuid",
    "name": "name",
    "driver": "driver_version",
    "memory_mib": "memory.total",
    "capability": "compute_cap",
    "sm_mhz": "clocks.sm",
    "max_sm_mhz": "clocks.max.sm",
    "memory_mhz": "clocks.mem",
    "temperature_c": "temperature.gpu",
    "power_w": "power.draw",
    "persistence": "persistence_mode",
    "ecc": "ecc.mode.current",
    "mig": "mig.mode.current",
    "reasons": "clocks_event_reasons.active",
}
_OLD_REASONS = "clocks_throttle_reasons.active"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceState:
    """How a device is right now; -1 where it does not tell."""

    uuid: str
    sm_mhz: float
    max_sm_mhz: float
    memory_mhz: float
    temperature_c: float
    power_w: float
    persistence: bool
    reasons: tuple[str, ...]
    """Why clocks are lower than they could be."""
    slowed: bool
    """Whether one of the reasons is more than idleness or a chosen clock: times are not to be trusted."""

    def facts(self, when: str) -> tuple[tuple[str, str], ...]:
        """For a result's environment, ``when`` being ``begin`` or ``end``."""
        values = {
            "sm_mhz": f"{self.sm_mhz:.0f}",
            "memory_mhz": f"{self.memory_mhz:.0f}",
            "temperature_c": f"{self.temperature_c:.0f}",
            "power_w": f"{self.power_w:.0f}",
            "persistence": "on" if self.persistence else "off",
            "slowed_by": ", ".join(self.reasons) or "nothing",
        }
        return tuple((f"gpu.{name}.{when}", value) for name, value in values.items())


def reasons_of(mask: int) -> tuple[tuple[str, ...], bool]:
    """Names in a mask of reasons, and whether one of them slows a measurement."""
    known = tuple(name for bit, name in _REASONS.items() if mask & bit)
    strange = mask & ~sum(_REASONS)
    return (*known, f"0x{strange:x}") if strange else known, bool(mask & ~_HARMLESS)


def _number(value: object) -> float:
    try:
        return float(str(value).split()[0])
    except (ValueError, IndexError):
        return -1.0


def _mask(value: object) -> int:
    try:
        return int(str(value).strip(), 16)
    except ValueError:
        return 0


def parse_smi(text: str) -> tuple[dict[str, str], ...]:
    """Rows of ``nvidia-smi --query-gpu=... --format=csv,noheader,nounits`` in the order of our fields.

    Malformed ones are left out.
    """
    rows = []
    for row in csv.reader(text.splitlines()[:_MAX_DEVICES], skipinitialspace=True):
        if len(row) == len(_FIELDS) and row[0].startswith("GPU-"):
            rows.append({name: value.strip()[:200] for name, value in zip(_FIELDS, row, strict=True)})
    return tuple(rows)


def devices_of(rows: tuple[dict[str, str], ...]) -> tuple[Device, ...]:
    """Devices, one for each row; one that is split into instances (MIG) is left to its operator."""
    found = []
    for row in rows:
        if row.get("mig", "").lower() == "enabled":
            continue
        capability = row["capability"].replace(".", "")
        facts = (
            ("architecture", f"sm_{capability}"),
            ("driver", row["driver"]),
            ("memory_bytes", str(max(0, int(_number(row["memory_mib"]))) << 20)),
            ("max_sm_mhz", f"{_number(row['max_sm_mhz']):.0f}"),
            ("ecc", row["ecc"].lower()),
            ("persistence", row["persistence"].lower()),
        )
        found.append(Device(id=row["uuid"], name=row["name"], facts=facts))
    return tuple(found)


def states_of(rows: tuple[dict[str, str], ...]) -> tuple[DeviceState, ...]:
    """States, one for each row."""
    found = []
    for row in rows:
        reasons, slowed = reasons_of(_mask(row["reasons"]))
        numbers = ("sm_mhz", "max_sm_mhz", "memory_mhz", "temperature_c", "power_w")
        made: dict[str, Any] = {name: _number(row[name]) for name in numbers}
        persistence = row["persistence"].lower() == "enabled"
        found.append(DeviceState(uuid=row["uuid"], persistence=persistence, reasons=reasons, slowed=slowed, **made))
    return tuple(found)


def minor_of(information: str, uuid: str) -> int:
    """Number of a device's file from the text of ``/proc/driver/nvidia/gpus/*/information``; -1 for another device."""
    told = dict(line.partition(":")[::2] for line in information.splitlines())
    if told.get("GPU UUID", "").strip() != uuid:
        return -1
    number = told.get("Device Minor", "").strip()
    return int(number) if number.isdigit() and len(number) < 5 else -1


# ---- asking ------------------------------------------------------------------------------------------------------


def probe() -> tuple[Device, ...]:
    """All devices; none where there is no driver. Raises TimeoutError when the driver does not answer."""
    return devices_of(_rows())


def read_state(uuid: str) -> DeviceState | None:
    """How a device is; None when it is gone. Raises TimeoutError when the driver does not answer."""
    return next((one for one in states_of(_rows()) if one.uuid == uuid), None)


def device_nodes(uuid: str) -> tuple[str, ...]:
    """Device files that a run box needs: the device's own and the driver's; every card's where none is told."""
    minors = []
    for path in sorted(glob.glob("/proc/driver/nvidia/gpus/*/information"))[:_MAX_DEVICES]:
        with contextlib.suppress(OSError):
            minors.append(minor_of(Path(path).read_text(errors="replace"), uuid))
    known = [f"/dev/nvidia{minor}" for minor in minors if minor >= 0]
    cards = known or sorted(glob.glob("/dev/nvidia[0-9]*"))
    shared = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools")
    return tuple(path for path in (*cards, *shared) if os.path.exists(path))


def _rows() -> tuple[dict[str, str], ...]:
    if importlib.util.find_spec("pynvml") is not None:
        text = _ask([sys.executable, "-m", "kfd_worker.devices.nvidia"])
        try:
            rows = json.loads(text or "[]")
            return tuple({name: str(one[name]) for name in _FIELDS} for one in rows[:_MAX_DEVICES])
        except (ValueError, KeyError, TypeError):
            # NVML of another version than the package knows: the driver's own program is asked instead.
            pass
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return ()
    for reasons in (_FIELDS["reasons"], _OLD_REASONS):
        fields = ",".join({**_FIELDS, "reasons": reasons}.values())
        rows = parse_smi(_ask([tool, f"--query-gpu={fields}", "--format=csv,noheader,nounits"]))
        if rows:
            return rows
    return ()


def _ask(command: list[str]) -> str:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "LANG": "C"}
    try:
        done = subprocess.run(
            command, capture_output=True, stdin=subprocess.DEVNULL, timeout=_ASK_S, check=False, env=env
        )
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(
            f"{os.path.basename(command[0])} did not answer within {_ASK_S} s; the driver hangs"
        ) from error
    return done.stdout[: 1 << 20].decode("utf-8", "replace") if done.returncode == 0 else ""


def ask_nvml() -> list[dict[str, str]]:
    """Rows as ``parse_smi`` gives them, from NVML; only ever in a process of its own."""
    nvml: Any = importlib.import_module("pynvml")
    nvml.nvmlInit()
    rows = []
    for index in range(nvml.nvmlDeviceGetCount()):
        device = nvml.nvmlDeviceGetHandleByIndex(index)

        def value(name: str, *arguments: Any, handle: Any = device) -> Any:
            try:
                return getattr(nvml, name)(handle, *arguments)
            except (nvml.NVMLError, AttributeError):
                return ""

        capability = value("nvmlDeviceGetCudaComputeCapability")
        power, ecc, mig = (
            value(name) for name in ("nvmlDeviceGetPowerUsage", "nvmlDeviceGetEccMode", "nvmlDeviceGetMigMode")
        )
        switched: dict[Any, str] = {0: "Disabled", 1: "Enabled"}
        mask = value("nvmlDeviceGetCurrentClocksEventReasons")
        rows.append(
            {
                "uuid": _text(value("nvmlDeviceGetUUID")),
                "name": _text(value("nvmlDeviceGetName")),
                "driver": _text(nvml.nvmlSystemGetDriverVersion()),
                "memory_mib": str(nvml.nvmlDeviceGetMemoryInfo(device).total >> 20),
                "capability": ".".join(map(str, capability)),
                "sm_mhz": str(value("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_SM)),
                "max_sm_mhz": str(value("nvmlDeviceGetMaxClockInfo", nvml.NVML_CLOCK_SM)),
                "memory_mhz": str(value("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_MEM)),
                "temperature_c": str(value("nvmlDeviceGetTemperature", nvml.NVML_TEMPERATURE_GPU)),
                "power_w": str(power / 1000 if power else ""),
                "persistence": switched.get(value("nvmlDeviceGetPersistenceMode"), ""),
                "ecc": switched.get(ecc[0] if ecc else "", ""),
                "mig": switched.get(mig[0] if mig else "", ""),
                "reasons": hex(mask) if isinstance(mask, int) else "",
            }
        )
    return rows


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def main() -> int:
    """Print the rows as JSON; 1 when NVML cannot be asked."""
    try:
        print(json.dumps(ask_nvml()))
    except Exception as error:  # noqa: BLE001 - foreign code in a process of its own; whoever asked tries another way
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
