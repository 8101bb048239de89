"""Memory, algorithm and parallelism of Triton kernels (levels of the paper, section 1), from Python's syntax tree.

Nothing is run. A kernel is a function under ``jit`` that the launch plan or the host starts, or that none of the others
calls; helpers count when a kernel reaches them, host code never does. Blocks of contiguous offsets are memory level 1,
the operands of ``tl.dot`` and turned tiles level 2, pipelined or bulk-copied tiles level 3.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from kfd.prompting import pylexing
from kfd.prompting.levels_triton_kernel import Kernel, called, nodes_below

__all__ = ["levels"]

_MAX_TEXT = 128 << 10
_MAX_DEPTH = 60


def levels(text: str, launched: frozenset[str] = frozenset()) -> tuple[int, int, int]:
    """Levels 0 to 3 of memory, algorithm and parallelism; a text that is no Python, or deeply nested, has 0 of each.

    ``launched`` names the kernels that a launch plan starts, if there is one.
    """
    try:
        return _levels(_parsed(text), launched)
    except RecursionError:  # an expression deeper than the parser's own bound: no honest kernel has one
        return 0, 0, 0


def _levels(tree: ast.Module | None, launched: frozenset[str]) -> tuple[int, int, int]:
    if tree is None:
        return 0, 0, 0
    kernels = [Kernel(nodes).read() for nodes in _live(tree, launched)]
    if not kernels:
        return 0, 0, 0
    passes = (
        len(kernels) > 1 and any(one.leaves_partials for one in kernels) and any(one.ends_in_one for one in kernels)
    )
    return (
        max(kernel.memory for kernel in kernels),
        max(kernel.algorithm for kernel in kernels),
        3 if passes else max(kernel.parallelism for kernel in kernels),
    )


def _parsed(text: str) -> ast.Module | None:
    if len(text) > _MAX_TEXT:
        return None
    depth = 0
    for mark in re.findall(r"[()\[\]{}]", pylexing.code_only(text)):
        depth += 1 if mark in "([{" else -1
        if depth > _MAX_DEPTH:
            return None
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


# ---- what runs


def _live(tree: ast.Module, launched: frozenset[str]) -> Iterator[list[ast.AST]]:
    """The nodes of each kernel with those of the helpers that it reaches."""
    jitted = {
        node.name: node
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and any("jit" in _dotted(each) for each in node.decorator_list)
    }
    constants = _constants(tree)
    for node in jitted.values():
        _prune(node, constants)
    mentions = {
        name: {each.id for each in nodes_below(*node.body) if isinstance(each, ast.Name)} & (jitted.keys() - {name})
        for name, node in jitted.items()
    }
    started = launched & jitted.keys() or _started(tree) & jitted.keys()
    if not started:
        inner = set().union(*mentions.values()) if mentions else set()
        started = jitted.keys() - inner or set(jitted)
    for name in jitted:
        if name not in started:
            continue
        reached, todo = [name], list(mentions[name])
        while todo:
            other = todo.pop()
            if other not in reached:
                reached.append(other)
                todo += mentions[other]
        yield nodes_below(*(jitted[each] for each in reached))


def _dotted(node: ast.AST) -> str:
    function = node.func if isinstance(node, ast.Call) else node
    return (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )


def _started(tree: ast.Module) -> set[str]:
    """Functions that host code starts as ``kernel[grid](...)``."""
    return {
        node.func.value.id
        for node in nodes_below(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript) and isinstance(node.func.value, ast.Name)
    }


def _constants(tree: ast.Module) -> dict[str, bool]:
    """Truth of the module's constants."""
    found: dict[str, bool] = {}
    for node in tree.body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            value: ast.AST = node.value
            if called(value) == "constexpr" and isinstance(value, ast.Call) and value.args:
                value = value.args[0]
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if isinstance(value, ast.Constant):
                found |= {target.id: bool(value.value) for target in targets if isinstance(target, ast.Name)}
    return found


def _truth(test: ast.AST, constants: dict[str, bool]) -> bool | None:
    if isinstance(test, ast.Constant):
        return bool(test.value)
    if isinstance(test, ast.Name):
        return constants.get(test.id)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = _truth(test.operand, constants)
        return None if inner is None else not inner
    return None


def _prune(function: ast.FunctionDef, constants: dict[str, bool]) -> None:
    """Take out of a function the branches that constants switch off. Names that the function sets itself are none."""
    own = {argument.arg for argument in (*function.args.args, *function.args.kwonlyargs)}
    known = {name: truth for name, truth in constants.items() if name not in own}
    for node in nodes_below(function):
        if isinstance(node, ast.If) and (truth := _truth(node.test, known)) is not None:
            if truth:
                node.orelse = []
            else:
                node.body = []
