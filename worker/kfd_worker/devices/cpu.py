"""The host's own processor as a device."""

from __future__ import annotations

import contextlib
import os
import platform
import re
from pathlib import Path

from kfd_worker.devices.port import Device

__all__ = ["cpu_device", "cpu_flags", "host_runtime", "parse_model"]

# What compilers turn into instructions; the rest of the list is about virtual machines, power and faults.
_COMPILED = re.compile(
    r"(sse|ssse|avx|amx|fma|f16c|bmi|adx|aes|vaes|sha|pclmul|vpclmul|gfni|movbe|popcnt|abm|lzcnt|rdrand|rdseed|xsave|"
    r"fsgsbase|clflushopt|clwb|clzero|wbnoinvd|mwaitx|rdpid|movdir|serialize|waitpkg|sve|asimd|fp|atomics|crc32|"
    r"dotprod|i8mm|bf16)[a-z0-9_]*"
)

# Vector extensions worth telling people and prompts about, in the order of growth.
_WORTH = (
    "sse4_2",
    "avx",
    "f16c",
    "fma",
    "avx2",
    "avx512f",
    "avx512bw",
    "avx512_vnni",
    "avx512_bf16",
    "amx_tile",
    "asimd",
    "sve",
)


def parse_model(cpuinfo: str) -> tuple[str, tuple[str, ...]]:
    """Model name and the vector extensions worth telling, from the text of /proc/cpuinfo."""
    model = ""
    flags: set[str] = set()
    for line in cpuinfo.splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name" and not model:
            model = value.strip()
        if key.strip() in ("flags", "Features") and not flags:
            flags = set(value.split())
    return model, tuple(name for name in _WORTH if name in flags)


def cpu_flags() -> frozenset[str]:
    """Instructions of this processor that a compiler told to use them all may use, by the kernel's names."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() in ("flags", "Features"):
                return frozenset(flag for flag in value.split() if _COMPILED.fullmatch(flag))
    return frozenset()


def host_runtime() -> str:
    """Processor family and C library that a library of this machine needs."""
    return f"{platform.machine()} {'-'.join(platform.libc_ver())}"


def cpu_device(cores: tuple[int, ...] = ()) -> Device:
    """The CPU, with the cores that jobs may use (empty: all that this process may)."""
    text = ""
    with contextlib.suppress(OSError):
        text = Path("/proc/cpuinfo").read_text(errors="replace")
    model, vectors = parse_model(text)
    usable = sorted(cores or os.sched_getaffinity(0))
    caches = []
    with contextlib.suppress(OSError):
        for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
            kind, level = (index / "type").read_text().strip(), (index / "level").read_text().strip()
            if kind != "Instruction":
                caches.append(f"L{level} {(index / 'size').read_text().strip()}")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Device(
        id="cpu",
        name=model or platform.processor() or platform.machine(),
        facts=(
            ("cores", str(len(usable))),
            ("vectors", " ".join(vectors)),
            ("caches", ", ".join(caches)),
            ("memory_bytes", str(memory)),
            ("architecture", platform.machine()),
        ),
    )
