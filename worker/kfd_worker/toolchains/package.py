"""A device-form artifact: what it was built for, how it is launched, and the payload.

Bytes: a magic line, one line of canonical JSON (the header), the payload. The launcher writes the header from the
source text; a build box only ever gives the payload. Header keys::

    abi       {"kind", "toolchain", "target", "runtime", "device"}: texts. ``kind`` names the payload
              (``opencl-binary``, ``opencl-source``, ``spirv``, ``cubin``, ...), ``runtime`` driver and version where
              the payload depends on them, ``device`` the device's name where it depends on that; else empty
    plan      the launch plan (``kfd.base.codec`` form of ``LaunchPlan``)
    tunables  values of the tunables, by name
    entries   how the payload names the plan's kernels, by their name in the plan
    options   options that the run side gives its driver

A toolchain may add keys. Pure; what is read came over a network.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

__all__ = ["HOST_FORM", "INTERPRETED", "MAGIC", "ON_GPU", "TRITON", "PackageError", "compatible", "read", "write"]

MAGIC = b"kfd-package-1\n"

HOST_FORM = "host-so"
"""Payload kind of a library that is called by its C ABI: it has no launch plan."""

TRITON = "triton-cubin"
"""Payload kind whose kernels were compiled one by one for what the launch plan gives them."""

INTERPRETED = "triton-source"
"""Payload kind that an interpreter runs: it is checked and never timed."""

ON_GPU = ("cubin", TRITON)
"""Payload kinds that run on an NVIDIA device."""
_MAX_HEADER = 256 << 10
_MAX_PAYLOAD = 256 << 20
_ABI = ("kind", "toolchain", "target", "runtime", "device")
_KEYS: dict[str, type] = {"abi": dict, "plan": dict, "tunables": dict, "entries": dict, "options": list}


class PackageError(ValueError):
    """Bytes that are no package, or a header that says too little."""


def write(header: Mapping[str, Any], payload: bytes) -> bytes:
    """The package's bytes: equal headers and payloads give equal bytes. Raises PackageError."""
    _check(header)
    line = json.dumps(header, sort_keys=True, separators=(",", ":"), allow_nan=False).encode() + b"\n"
    if len(line) > _MAX_HEADER or not 0 < len(payload) <= _MAX_PAYLOAD:
        raise PackageError(f"a header of {len(line)} bytes and a payload of {len(payload)}")
    return MAGIC + line + payload


def read(data: bytes) -> tuple[dict[str, Any], bytes]:
    """(header, payload). Raises PackageError."""
    if not data.startswith(MAGIC):
        raise PackageError("not a package: the first line is another")
    end = data.find(b"\n", len(MAGIC), len(MAGIC) + _MAX_HEADER)
    if end < 0:
        raise PackageError("a package without a header")
    try:
        header = json.loads(data[len(MAGIC) : end])
    except (ValueError, RecursionError) as error:
        raise PackageError(f"a damaged header: {error}") from error
    _check(header)
    payload = data[end + 1 :]
    if not 0 < len(payload) <= _MAX_PAYLOAD:
        raise PackageError(f"a payload of {len(payload)} bytes")
    return header, payload


def _check(header: object) -> None:
    if not isinstance(header, Mapping):
        raise PackageError("the header is no object")
    for key, kind in _KEYS.items():
        if not isinstance(header.get(key), kind):
            raise PackageError(f"the header has no {key}")
    wrong = [name for name in _ABI if not isinstance(header["abi"].get(name), str)]
    if wrong:
        raise PackageError(f"the header's abi has no {wrong[0]}")
    if not all(isinstance(value, int) for value in header["tunables"].values()):
        raise PackageError("a tunable in the header is no integer")
    if not all(isinstance(value, str) for value in header["options"]):
        raise PackageError("an option in the header is no text")


def compatible(header: Mapping[str, Any], facts: Mapping[str, str]) -> str:
    """Why a payload cannot run here, empty when it can.

    ``facts`` are the run side's: ``kinds`` (payload kinds it takes, separated by blanks), ``runtime``, ``device``.
    """
    abi = header["abi"]
    if abi["kind"] not in facts.get("kinds", "").split():
        return f"this machine does not load {abi['kind']} payloads (it loads: {facts.get('kinds') or 'none'})"
    for key in ("runtime", "device"):
        if abi[key] and abi[key] != facts.get(key, ""):
            here = repr(facts[key]) if facts.get(key) else "none"
            return f"it was built for the {key} {abi[key]!r}; here is {here}"
    return ""
