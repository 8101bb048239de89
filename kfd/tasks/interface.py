"""The kernel's arguments, and whether task.py's cases and functions fit them."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping

from kfd.base.expr import ExprError, evaluate, names
from kfd.tasks import config, pytask
from kfd.tasks.config import Section, Value
from kfd.tasks.pytask import TaskModule
from kfd.tasks.report import Problems, nearest, shown
from kfd.tasks.spec import Case, Parameter, Role
from kfd.tasks.targets import DTYPE_BYTES

__all__ = ["check_task", "is_name", "memory_bytes", "parameters"]

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}", re.A)
_C_WORDS = frozenset(
    # Words of C++, of shape expressions and of cases.
    re.findall(
        r"\w+",
        """alignas alignof and asm auto bool break case catch char class compl concept const constexpr
        continue decltype default delete do double else enum explicit export extern false float for
        friend goto if inline int long mutable main namespace new noexcept not nullptr operator or
        private protected public register requires restrict return short signed sizeof static struct
        switch template this throw true try typedef typeid typename union unsigned using virtual
        void volatile wchar_t while xor min max ceildiv name timed""",
    )
)
_SCALARS = frozenset(("float32", "float64", "int32", "int64", "uint8", "bool"))


def is_name(text: str) -> bool:
    """Whether a word can be an argument or function name in C++ and in Python."""
    return bool(_IDENTIFIER.fullmatch(text)) and text not in _C_WORDS and not keyword.iskeyword(text)


def memory_bytes(section: Section) -> int:
    """The task's memory limit in bytes."""
    return int(section.section("limits").number("memory_mb", 2048)) << 20


def parameters(section: Section, found: Problems) -> tuple[Parameter, ...]:
    """Arguments of the entry function; what is wrong goes to ``found`` and is left out."""
    entry = section.get("entry")
    if entry is not None and not is_name(entry.text):
        found.add(
            f"entry is {shown(entry.text)}",
            file=config.FILE,
            line=entry.line,
            mend="Give a C function name such as `solve`.",
        )
    value = section.get("interface")
    if value is None:
        return ()
    made: list[Parameter] = []
    taken: set[str] = set()
    for item in value.sections:
        parameter = _parameter(item, taken, found)
        if parameter is not None:
            made.append(parameter)
    if made and not any(parameter.role is Role.OUT for parameter in made) and len(made) == len(value.sections):
        found.add("no argument is `out`", file=config.FILE, line=value.line, mend="Give one argument `role: out`.")
    return tuple(made)


def _parameter(item: Section, taken: set[str], found: Problems) -> Parameter | None:
    name, role, dtype, shape = (item.get(key) for key in ("name", "role", "dtype", "shape"))
    if name is None or role is None:
        return None
    wrong = _wrong_name(name, taken) or _wrong_fields(name, role.text, dtype, shape)
    if wrong:
        message, line, mend = wrong
        found.add(message, file=config.FILE, line=line or item.line, mend=mend)
        return None
    taken.add(name.text)
    dimensions = tuple(dimension.text for dimension in shape.items) if shape is not None else ()
    for dimension in shape.items if shape is not None else ():
        try:
            names(dimension.text)
        except ExprError as error:
            found.add(
                f"shape {shown(dimension.text)} of {name.text}: {error}",
                file=config.FILE,
                line=dimension.line,
                mend="Use integers, names, + - * / // % ( ), min, max and ceildiv.",
            )
            return None
    return Parameter(name=name.text, role=Role(role.text), dtype=dtype.text if dtype else "int64", shape=dimensions)


def _wrong_name(name: Value, taken: set[str]) -> tuple[str, int, str] | None:
    if not is_name(name.text):
        return f"argument name {shown(name.text)} cannot be used", name.line, "Use a free C and Python name."
    if name.text in taken:
        return f"argument {name.text} is there twice", name.line, "Rename one of them."
    return None


def _wrong_fields(name: Value, role: str, dtype: Value | None, shape: Value | None) -> tuple[str, int, str] | None:
    array = role in ("in", "out")
    if array and (dtype is None or shape is None):
        missing = "dtype" if dtype is None else "shape"
        example = "`dtype: float32`" if dtype is None else "`shape: [rows, cols]`"
        return f"argument {name.text} has no {missing}", name.line, f"Add {example}."
    if not array and shape is not None:
        return f"argument {name.text} is a {role} and has a shape", shape.line, "Take the shape away."
    if role == "size" and dtype is not None and dtype.text != "int64":
        return f"size {name.text} has dtype {dtype.text}", dtype.line, "Sizes are int64; drop the dtype."
    if role == "scalar" and (dtype is None or dtype.text not in _SCALARS):
        kinds = ", ".join(sorted(_SCALARS))
        return (
            f"scalar {name.text} has no usable dtype",
            dtype.line if dtype else name.line,
            f"Give one of {kinds}.",
        )
    return None


def check_task(arguments: tuple[Parameter, ...], module: TaskModule, section: Section, found: Problems) -> None:
    """Check cases and functions of task.py against the interface."""
    if not arguments:
        return
    needed: dict[str, str] = {}
    for parameter in arguments:
        if parameter.role is Role.SIZE:
            needed.setdefault(parameter.name, f"the size argument {parameter.name}")
        for dimension in parameter.shape:
            for name in names(dimension):
                needed.setdefault(name, f"the shape of {parameter.name}")
    for case in module.cases:
        line = module.case_lines[case.name]
        if _has_sizes(case, needed, line, found):
            _check_shapes(case, arguments, memory_bytes(section), line, found)
    _check_reference(arguments, module, found)


def _has_sizes(case: Case, needed: Mapping[str, str], line: int, found: Problems) -> bool:
    sizes = dict(case.sizes)
    missing = [name for name in needed if name not in sizes]
    for name in missing:
        close = nearest(name, [other for other in sizes if other not in needed])
        hint = f"Did you mean {name!r} where it says {close!r}? " if close else ""
        found.add(
            f"case {case.name!r} has no size {name!r}, which {needed[name]} needs",
            file=pytask.FILE,
            line=line,
            mend=f'{hint}Add `"{name}": ...` to the case.',
        )
    return not missing


def _check_shapes(case: Case, arguments: tuple[Parameter, ...], memory: int, line: int, found: Problems) -> None:
    sizes = dict(case.sizes)
    total = 0
    for parameter in arguments:
        count = 1
        for dimension in parameter.shape:
            try:
                extent = evaluate(dimension, sizes)
            except ExprError as error:
                found.add(
                    f"case {case.name!r}: shape {dimension!r} of {parameter.name}: {error}",
                    file=pytask.FILE,
                    line=line,
                    mend="Change the case's sizes or the shape in config.yaml.",
                )
                return
            if extent < 1:
                found.add(
                    f"case {case.name!r}: shape {dimension!r} of {parameter.name} is {extent}",
                    file=pytask.FILE,
                    line=line,
                    mend="Every dimension must be at least 1: empty tensors cannot be timed or compared.",
                )
                return
            count *= extent
        total += count * DTYPE_BYTES[parameter.dtype]
    if total > memory:
        found.add(
            f"case {case.name!r} has {total >> 20} MiB of arguments; memory_mb is {memory >> 20}",
            file=pytask.FILE,
            line=line,
            mend="Make the case smaller or raise limits.memory_mb in config.yaml.",
        )


def _check_reference(arguments: tuple[Parameter, ...], module: TaskModule, found: Problems) -> None:
    function = module.functions.get("reference")
    if function is None or function.is_async:
        return
    given = [parameter.name for parameter in arguments if parameter.role in (Role.IN, Role.SCALAR)]
    mend = f"Define `def reference({', '.join(given)}):`; sizes are read from the inputs' shapes."
    missing = [name for name in given if name not in function.arguments and not function.any_keyword]
    extra = [name for name in function.required if name not in given]
    if missing:
        what = f"reference does not take {', '.join(missing)}"
        found.add(what, file=pytask.FILE, line=function.line, mend=mend)
    elif extra:
        what = f"reference takes {', '.join(extra)}, which make_inputs does not give"
        found.add(what, file=pytask.FILE, line=function.line, mend=mend)
