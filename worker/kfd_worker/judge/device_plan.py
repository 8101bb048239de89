"""From a package's header and a case to what the child of a device toolchain is ordered to do. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kfd.base.codec import decode
from kfd.tasks.launchbind import bind
from kfd.tasks.launchplan import ArgumentKind, LaunchPlan
from kfd_worker.toolchains import triton_entries
from kfd_worker.toolchains.package import HOST_FORM, INTERPRETED, TRITON

__all__ = ["NoVariant", "load_order", "map_order", "plan_order"]


class NoVariant(Exception):
    """The package holds no kernel for these sizes: nothing about the candidate where nobody declared them."""


def plan_order(header: Mapping[str, Any], sizes: Mapping[str, int], memory_bytes: int) -> dict[str, Any]:
    """The ``plan`` of a ``map`` order: scratch bytes and launches in numbers, by the payload's names.

    ``sizes`` are the case's numbers, ``memory_bytes`` bounds the scratch buffers. Raises PlanError (the candidate's
    doing) for a plan that has no value or leaves its bounds, NoVariant, and ValueError for a header that is no
    launcher's.
    """
    plan = decode(LaunchPlan, header["plan"])
    bound = bind(plan, sizes, header["tunables"], memory_bytes)
    entries = header["entries"]
    if header["abi"]["kind"] == TRITON:
        try:
            return triton_entries.resolve(bound, entries)
        except KeyError as error:
            raise NoVariant(f"no kernel was compiled for {error}") from error
    order = bound.order()
    for launch in order["launches"]:
        launch["kernel"] = entries.get(launch["kernel"], launch["kernel"])
    return order


def map_order(header: Mapping[str, Any], sizes: Mapping[str, int], memory_bytes: int) -> dict[str, Any]:
    """What a ``map`` order says beside the buffers: the ``plan``, nothing in host form. Raises as ``plan_order``."""
    if header["abi"]["kind"] == HOST_FORM:
        return {}
    return {"plan": plan_order(header, sizes, memory_bytes)}


def load_order(header: Mapping[str, Any], path: str) -> dict[str, Any]:
    """The ``load`` order for a payload that lies at ``path`` in the box."""
    if header["abi"]["kind"] == HOST_FORM:
        return {"do": "load", "path": path, "entry": header["entries"]["entry"]}
    if header["abi"]["kind"] == INTERPRETED:
        return {"do": "load", "path": path, "kind": INTERPRETED, "options": [], "types": _pointer_types(header)}
    more = triton_entries.load_order(header["entries"]) if header["abi"]["kind"] == TRITON else {}
    return {"do": "load", "path": path, "kind": header["abi"]["kind"], "options": list(header["options"]), **more}


def _pointer_types(header: Mapping[str, Any]) -> dict[str, Any]:
    """What the plan's pointers lead to: dtypes by the number of the argument, and of every scratch buffer."""
    plan = decode(LaunchPlan, header["plan"])
    given = [one for launch in plan.launches for one in launch.arguments if one.kind is ArgumentKind.PARAMETER]
    return {
        "arg": {str(one.index): one.dtype for one in given if one.pointer},
        "scratch": [buffer.dtype for buffer in plan.scratch],
    }
