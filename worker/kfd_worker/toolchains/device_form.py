"""What all device-form toolchains do alike: definitions, the order of the compile program, the package's header."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from kfd.base.codec import encode
from kfd.base.work import BuildSpec
from kfd.tasks.launchplan import ArgumentKind, LaunchPlan, PlanArgument
from kfd.tasks.targets import TOOLCHAINS
from kfd.tasks.tunables import PlanError
from kfd_worker.toolchains.port import Refused, Unusable

__all__ = ["header", "launches", "options_of", "split_output", "tunables_of"]

_MAX_FACTS = 64 << 10
_NUMBER = re.compile(r"-?[0-9]{1,10}", re.A)


def tunables_of(spec: BuildSpec, plan: LaunchPlan) -> dict[str, int]:
    """Every tunable's value in this build. Raises Refused for one that the source does not offer."""
    names = plan.space.names
    chosen = {}
    for name, value in spec.defines:
        if name in names:
            if not _NUMBER.fullmatch(value):
                raise Refused(f"the tunable {name} is set to {value[:40]!r}, which is no integer")
            chosen[name] = int(value)
    try:
        return plan.space.choose(chosen)
    except PlanError as error:
        raise Refused(str(error)) from error


def options_of(spec: BuildSpec, plan: LaunchPlan) -> list[str]:
    """The task's flags, then definitions, then tunables as macros. Raises Refused for what is not allowed."""
    allowed = TOOLCHAINS[spec.toolchain].flag
    tunables = tunables_of(spec, plan)
    given = [(name, value) for name, value in spec.defines if name not in tunables]
    made = [*spec.flags, *(f"-D{name}={value}" for name, value in (*given, *tunables.items()))]
    for option in made:
        if not allowed.fullmatch(option):
            raise Refused(f"the flag {option[:80]!r} is not allowed")
    return made


def launches(plan: LaunchPlan, entry: Callable[[str], str]) -> list[dict[str, Any]]:
    """What the compile program checks: kernels with what they are given; ``entry`` names a kernel in the payload."""
    return [
        {
            "kernel": entry(one.kernel),
            "shown": one.kernel,
            "line": one.line,
            "arguments": [_given(argument) for argument in one.arguments],
        }
        for one in plan.launches
    ]


def _given(argument: PlanArgument) -> list[str]:
    if argument.kind is ArgumentKind.LOCAL:
        return ["local", ""]
    return ["pointer" if argument.pointer else "value", argument.dtype]


def split_output(stdout: bytes) -> tuple[dict[str, str], bytes]:
    """(facts, payload) of the compile program's standard output. Raises Unusable."""
    line, _, payload = stdout.partition(b"\n")
    try:
        facts = json.loads(line[:_MAX_FACTS])
    except ValueError:
        facts = None
    if not isinstance(facts, dict) or not payload:
        raise Unusable("the compiler gave no program")
    return {str(key): str(value) for key, value in facts.items()}, payload


def header(
    spec: BuildSpec,
    plan: LaunchPlan,
    *,
    kind: str,
    runtime: str = "",
    device: str = "",
    entry: Callable[[str], str] = str,
    options: list[str] | None = None,
) -> Mapping[str, Any]:
    """A package's header, from the source text and what the launcher knows of the compiler."""
    abi = {"kind": kind, "toolchain": spec.toolchain, "target": spec.target, "runtime": runtime, "device": device}
    return {
        "abi": abi,
        "plan": encode(plan),
        "tunables": tunables_of(spec, plan),
        "entries": {one.kernel: entry(one.kernel) for one in plan.launches},
        "options": options or [],
    }
