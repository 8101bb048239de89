"""The C declaration that a task's entry function must have."""

from __future__ import annotations

from kfd.tasks.spec import Parameter, Role, TaskSpec

__all__ = ["c_type", "signature"]

_C_TYPES = {
    "float32": "float",
    "float64": "double",
    "int32": "int32_t",
    "int64": "int64_t",
    "uint8": "uint8_t",
    "bool": "bool",
    # Half types travel as their bits: what C++ calls them depends on the compiler.
    "float16": "uint16_t",
    "bfloat16": "uint16_t",
}


def c_type(parameter: Parameter) -> str:
    """C type of one argument, as in ``const float *``."""
    if parameter.role is Role.SIZE:
        return "int64_t "
    kind = _C_TYPES[parameter.dtype]
    if parameter.role is Role.SCALAR:
        return f"{kind} "
    return f"const {kind} *" if parameter.role is Role.IN else f"{kind} *"


def signature(spec: TaskSpec) -> str:
    """The declaration in one line: ``extern "C" int solve(const float *x, float *y, int64_t n)``."""
    arguments = ", ".join(f"{c_type(parameter)}{parameter.name}" for parameter in spec.parameters)
    return f'extern "C" int {spec.entry}({arguments})'
