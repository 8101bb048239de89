"""The C signature that a task's interface stands for: what prompts say, what loaders call."""

from __future__ import annotations

from kfd.tasks.launchplan import in_device_form
from kfd.tasks.spec import Parameter, Role, TaskSpec
from kfd.tasks.tunables import PlanError

__all__ = ["C_TYPES", "c_signature"]

C_TYPES: dict[str, str] = {
    "float32": "float",
    "float64": "double",
    "int32": "int32_t",
    "int64": "int64_t",
    "uint8": "uint8_t",
    "bool": "bool",
    "float16": "uint16_t",
    "bfloat16": "uint16_t",
}
"""C type of one element. Half-precision values come as their 16 bits."""


def c_signature(spec: TaskSpec) -> str:
    """``extern "C" int solve(const float *x, float *y, int64_t rows)``: arguments in the interface's
    order. In device form what a launch can pass on: ``kernel solve from (const float *x, ...)``."""
    arguments = ", ".join(_argument(parameter) for parameter in spec.parameters)
    if _device_form(spec):
        return f"kernel {spec.entry} from ({arguments})"
    return f'extern "C" int {spec.entry}({arguments})'


def _device_form(spec: TaskSpec) -> bool:
    try:
        return in_device_form(spec.toolchain, spec.kernel.text)
    except PlanError:
        # A plan that cannot be read is still a plan.
        return True


def _argument(parameter: Parameter) -> str:
    kind = C_TYPES[parameter.dtype]
    if parameter.role is Role.IN:
        return f"const {kind} *{parameter.name}"
    if parameter.role is Role.OUT:
        return f"{kind} *{parameter.name}"
    return f"{kind} {parameter.name}"
