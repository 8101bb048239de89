"""What task.py says, read from its syntax tree: task code is never run here."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass

from kfd.tasks.report import Problems, nearest, shown
from kfd.tasks.spec import Case

__all__ = ["FILE", "Function", "TaskModule", "read_task"]

FILE = "task.py"
_MAX_BYTES = 1 << 20
_MAX_CASES = 64
_MAX_SIZE = 1 << 40
_CASE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_FUNCTIONS = ("make_inputs", "reference")


@dataclass(frozen=True, slots=True)
class Function:
    """A top-level function of task.py."""

    line: int
    source: str
    arguments: tuple[str, ...]
    """Arguments that may be given by name."""
    required: tuple[str, ...]
    positional: int
    """How many arguments may be given by place."""
    any_keyword: bool
    any_positional: bool
    is_async: bool


@dataclass(frozen=True, slots=True)
class TaskModule:
    """What task.py declares."""

    functions: Mapping[str, Function]
    cases: tuple[Case, ...]
    case_lines: Mapping[str, int]


def read_task(text: str, problems: Problems) -> TaskModule | None:
    """Read task.py. None when it cannot be parsed."""
    if len(text) > _MAX_BYTES:
        problems.add(f"longer than {_MAX_BYTES} characters", file=FILE, mend="Compute data in make_inputs instead.")
        return None
    text = text.removeprefix("\ufeff")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except SyntaxError as error:
        problems.add(
            f"syntax error: {error.msg}",
            file=FILE,
            line=error.lineno or 1,
            mend="Mend the Python at this line.",
        )
        return None
    except (ValueError, RecursionError, MemoryError) as error:
        why = str(error) or "nested too deeply"
        problems.add(f"cannot be parsed: {why}", file=FILE, line=1, mend="Write plainer Python without NUL bytes.")
        return None
    functions = {
        node.name: _function(node, text)
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    for name in _FUNCTIONS:
        _check_present(name, functions, tree, problems)
    cases, lines = _read_cases(tree, problems)
    return TaskModule(functions, cases, lines)


def _function(node: ast.FunctionDef | ast.AsyncFunctionDef, text: str) -> Function:
    spec = node.args
    placed = [*spec.posonlyargs, *spec.args]
    named = [*spec.args, *spec.kwonlyargs]
    needed = placed[: len(placed) - len(spec.defaults)]
    needed += [arg for arg, default in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if default is None]
    return Function(
        line=node.lineno,
        source=ast.get_source_segment(text, node) or "",
        arguments=tuple(arg.arg for arg in named),
        required=tuple(arg.arg for arg in needed),
        positional=len(placed),
        any_keyword=spec.kwarg is not None,
        any_positional=spec.vararg is not None,
        is_async=isinstance(node, ast.AsyncFunctionDef),
    )


def _check_present(name: str, functions: Mapping[str, Function], tree: ast.Module, problems: Problems) -> None:
    function = functions.get(name)
    example = "make_inputs(case, generator)" if name == "make_inputs" else "reference(x, ...)"
    if function is None:
        close = nearest(name, [other for other in functions if other not in _FUNCTIONS])
        hint = f"Did you mean to rename `{close}`? " if close else ""
        problems.add(f"no function {name}", file=FILE, line=1, mend=f"{hint}Define `def {example}:` at top level.")
    elif function.is_async:
        problems.add(f"{name} is async", file=FILE, line=function.line, mend="Make it a plain function.")
    elif name == "make_inputs" and (
        len(function.required) > 2
        or (function.positional < 2 and not function.any_positional)
        or any(required not in function.arguments[: function.positional] for required in function.required[2:])
    ):
        problems.add(
            f"make_inputs takes ({', '.join(function.required)})",
            file=FILE,
            line=function.line,
            mend="Define `def make_inputs(case, generator):`.",
        )


def _read_cases(tree: ast.Module, problems: Problems) -> tuple[tuple[Case, ...], dict[str, int]]:
    found = [(target, value) for target, value in _assignments(tree) if target == "CASES"]
    mend = 'Write `CASES = [{"name": "wide", "rows": 64, "cols": 8191}]` with plain values.'
    if not found:
        problems.add("no CASES", file=FILE, line=1, mend=mend)
        return (), {}
    value = found[-1][1]
    line = value.lineno
    if len(found) > 1:
        problems.add("CASES is assigned twice", file=FILE, line=line, mend="Keep one.")
    if not isinstance(value, ast.List | ast.Tuple):
        problems.add("CASES is not a literal list of dicts", file=FILE, line=line, mend=mend)
        return (), {}
    if not 1 <= len(value.elts) <= _MAX_CASES:
        problems.add(f"CASES has {len(value.elts)} cases", file=FILE, line=line, mend=f"Give 1 to {_MAX_CASES}.")
        return (), {}
    cases: list[Case] = []
    lines: dict[str, int] = {}
    for element in value.elts:
        case = _case(element, mend, problems)
        if case is None:
            continue
        if case.name in lines:
            problems.add(
                f"case name {case.name!r} is there twice",
                file=FILE,
                line=element.lineno,
                mend="Rename one of them.",
            )
            continue
        lines[case.name] = element.lineno
        cases.append(case)
    if cases and not any(case.timed for case in cases):
        problems.add("no case is timed", file=FILE, line=line, mend='Drop `"timed": False` from one case.')
    return tuple(cases), lines


def _assignments(tree: ast.Module) -> list[tuple[str, ast.expr]]:
    found: list[tuple[str, ast.expr]] = []
    for node in tree.body:
        if isinstance(node, ast.Assign):
            found += [(target.id, node.value) for target in node.targets if isinstance(target, ast.Name)]
        elif isinstance(node, ast.AnnAssign | ast.AugAssign) and isinstance(node.target, ast.Name) and node.value:
            found.append((node.target.id, node.value))
    return found


def _case(element: ast.expr, mend: str, problems: Problems) -> Case | None:
    line = element.lineno
    if not isinstance(element, ast.Dict):
        problems.add("an entry of CASES is not a literal dict", file=FILE, line=line, mend=mend)
        return None
    values: dict[str, object] = {}
    for key_node, value_node in zip(element.keys, element.values, strict=True):
        where = value_node.lineno
        key = key_node.value if isinstance(key_node, ast.Constant) else None
        if not isinstance(key, str):
            problems.add("a key of a case is not a literal text", file=FILE, line=where, mend=mend)
            return None
        if key in values:
            problems.add(f"key {shown(key)} is there twice in a case", file=FILE, line=where, mend="Keep one.")
            return None
        try:
            values[key] = ast.literal_eval(value_node)
        except (ValueError, TypeError, MemoryError, RecursionError):
            problems.add(
                f"{shown(key)} of a case is not a literal",
                file=FILE,
                line=where,
                mend="Write the number itself.",
            )
            return None
    return _checked_case(values, line, problems)


def _checked_case(values: dict[str, object], line: int, problems: Problems) -> Case | None:
    before = len(problems.found)
    name, timed = values.pop("name", None), values.pop("timed", True)
    if not isinstance(name, str) or not _CASE_NAME.fullmatch(name):
        problems.add(
            "a case has no name" if name is None else f"case name {shown(name)} is not a word",
            file=FILE,
            line=line,
            mend='Give `"name": "wide"`: up to 64 letters, digits, `-_.`.',
        )
    if not isinstance(timed, bool):
        problems.add(f"timed is {shown(timed)}", file=FILE, line=line, mend="It must be True or False.")
    for key, value in values.items():
        # bool is an int in Python, and never a size.
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _MAX_SIZE:
            problems.add(
                f"size {shown(key)} of case {shown(name)} is {shown(value)}",
                file=FILE,
                line=line,
                mend=f"Sizes are integers from 1 to {_MAX_SIZE}: empty tensors are not allowed.",
            )
        elif not key.isidentifier():
            problems.add(f"size {shown(key)} is not a name", file=FILE, line=line, mend="Use letters, digits and _.")
    if len(problems.found) > before:
        return None
    sizes = tuple((key, value) for key, value in values.items() if isinstance(value, int))
    return Case(name=str(name), sizes=sizes, timed=bool(timed))
