"""What one Triton kernel does, from the nodes of the syntax tree that it executes (``levels_triton`` finds them)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

__all__ = ["Kernel", "called", "nodes_below"]

_MAX_NODES = 20_000
_MAX_TERM = 300
"""Nodes of an expression beyond which it is not searched for products."""

_REDUCES = frozenset(("sum", "max", "min", "argmax", "argmin", "reduce", "xor_sum", "softmax", "reduce_or"))
_SCANS = frozenset(("associative_scan", "cumsum", "cumprod", "sort", "topk", "histogram"))
_TURNS = frozenset(("trans", "permute"))
_NONLINEAR = frozenset(
    (
        "exp",
        "exp2",
        "log",
        "log2",
        "erf",
        "tanh",
        "sigmoid",
        "sqrt",
        "rsqrt",
        "sqrt_rn",
        "maximum",
        "minimum",
        "clamp",
        "where",
    )
)
_EXP = frozenset(("exp", "exp2"))


def nodes_below(*roots: ast.AST) -> list[ast.AST]:
    """Nodes below in the order of the source; a bounded number."""
    found: list[ast.AST] = []
    stack = list(reversed(roots))
    while stack and len(found) < _MAX_NODES:
        node = stack.pop()
        found.append(node)
        stack += reversed(list(ast.iter_child_nodes(node)))
    return found


def called(node: ast.AST) -> str:
    """The last part of a called function's name; empty for anything else."""
    if not isinstance(node, ast.Call):
        return ""
    function = node.func
    return (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )


def _language(node: ast.AST) -> str:
    """The name of a called function of ``triton.language`` or of its libraries; empty for any other."""
    if not isinstance(node, ast.Call):
        return ""
    function = node.func
    if isinstance(function, ast.Attribute):
        owner = function.value.attr if isinstance(function.value, ast.Attribute) else ""
        owner = function.value.id if isinstance(function.value, ast.Name) else owner
        return function.attr if owner in ("tl", "language", "math", "libdevice", "extra", "tlx") else ""
    return ""


@dataclass(slots=True)
class Kernel:
    """What one kernel does; made from its nodes by ``read``."""

    nodes: list[ast.AST]
    memory: int = 0
    algorithm: int = 0
    parallelism: int = 0
    leaves_partials: bool = False
    """It stores one reduced value of each program."""
    ends_in_one: bool = False
    """It stores one reduced value in all."""
    _values: dict[str, ast.AST] = field(default_factory=dict)
    """The last value that a name was given."""
    _names: set[str] = field(default_factory=set)
    """Functions of the language that are called."""
    _strides: dict[str, int] = field(default_factory=dict)
    """What ``_stride`` has found for a name; a name that is being asked for is far."""
    _loaded: dict[str, bool] = field(default_factory=dict)
    _own: set[str] = field(default_factory=set)
    """Names whose value mentions themselves."""

    def read(self) -> Kernel:
        """Fill in the levels."""
        for node in self.nodes:
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                self._values.setdefault(node.targets[0].id, node.value)
        self._own = {name for name, value in self._values.items() if _mentions(value, name)}
        self._names = {name for node in self.nodes if (name := _language(node))}
        self.memory = self._memory()
        self.algorithm = self._algorithm()
        self.parallelism = self._parallelism()
        return self

    def _calls(self, *names: str) -> list[ast.Call]:
        return [node for node in self.nodes if isinstance(node, ast.Call) and _language(node) in names]

    def _loops(self) -> list[ast.For]:
        return [node for node in self.nodes if isinstance(node, ast.For)]

    # -- memory

    def _memory(self) -> int:
        """0 single or strided elements; 1 contiguous blocks; 2 tiles of a product or turned; 3 pipelined tiles."""
        tile = bool(self._names & {"dot", "dot_scaled"}) or bool(self._names & _TURNS)
        bulk = bool(self._names & {"make_tensor_descriptor", "async_copy"})
        if (tile or bulk) and (bulk or self._staged() or self._loads_ahead()):
            return 3
        if tile:
            return 2
        pointers = [call.args[0] for call in self._calls("load", "store") if call.args]
        contiguous = any(self._stride(pointer, 0) == 1 for pointer in pointers)
        return int(contiguous or "make_block_ptr" in self._names)

    def _staged(self) -> bool:
        """A loop or a configuration of the kernel asks for more than one stage."""
        return any(
            keyword.arg == "num_stages"
            and not (isinstance(keyword.value, ast.Constant) and keyword.value.value in (0, 1))
            for node in self.nodes
            if isinstance(node, ast.Call) and called(node) in ("range", "Config")
            for keyword in node.keywords
        )

    def _loads_ahead(self) -> bool:
        """In a loop a name takes over what another loaded in the same turn."""
        for loop in self._loops():
            inside = [node for node in nodes_below(*loop.body) if isinstance(node, ast.Assign)]
            loaded = {
                target.id
                for node in inside
                if _language(node.value) == "load"
                for target in node.targets
                if isinstance(target, ast.Name)
            }
            if any(isinstance(node.value, ast.Name) and node.value.id in loaded for node in inside):
                return True
        return False

    def _stride(self, node: ast.AST, depth: int) -> int:
        """Distance of neighbours in an index: 0 without a block, 1 contiguous, 2 farther or unknown."""
        if depth > 25:
            return 2
        if isinstance(node, ast.Call):
            if _language(node) == "arange":
                return 1
            if isinstance(node.func, ast.Attribute) and node.func.attr == "to":
                return self._stride(node.func.value, depth + 1)
            inner = [self._stride(argument, depth + 1) for argument in node.args[:8]]
            name = _language(node)
            return 2 if name == "load" and any(inner) else max(inner, default=0) if name != "program_id" else 0
        if isinstance(node, ast.Name):
            if node.id not in self._strides and node.id in self._values:
                self._strides[node.id] = 2
                self._strides[node.id] = self._stride(self._values[node.id], depth + 1)
            return self._strides.get(node.id, 0)
        if isinstance(node, ast.Subscript):
            return self._stride(node.value, depth + 1)
        if isinstance(node, ast.BinOp):
            left, right = self._stride(node.left, depth + 1), self._stride(node.right, depth + 1)
            if isinstance(node.op, (ast.Add, ast.Sub)):
                return 1 if 1 in (left, right) else max(left, right)
            if isinstance(node.op, ast.Mult):
                return 2 if left or right else 0
            return max(left, right)
        return 0

    # -- parallelism

    def _parallelism(self) -> int:
        """0 independent programs; 1 barriers; 2 reductions and scans of a block; 3 atomics."""
        self._look_for_passes()
        if any(name.startswith("atomic_") for name in self._names):
            return 3
        if self._names & (_REDUCES | _SCANS):
            return 2
        return int("debug_barrier" in self._names)

    def _look_for_passes(self) -> None:
        if not self._names & _REDUCES:
            return
        numbers = {name for name, value in self._values.items() if _language(value) == "program_id"}
        shares = self._walks_by_program(numbers)
        for call in self._calls("store"):
            if not call.args or self._stride(call.args[0], 0):
                continue
            parts = {each.id for each in ast.walk(call.args[0]) if isinstance(each, ast.Name)}
            own = any(_language(each) == "program_id" for each in ast.walk(call.args[0]))
            self.leaves_partials |= (bool(parts & numbers) or own) and shares
            self.ends_in_one |= isinstance(call.args[0], ast.Name) and call.args[0].id not in self._values

    def _walks_by_program(self, numbers: set[str]) -> bool:
        """A block's place is the program's number times the block's size: all programs share one row."""
        sizes = {
            argument.arg
            for node in self.nodes
            if isinstance(node, ast.FunctionDef)
            for argument in node.args.args
            if argument.annotation is not None
        }
        for node in self.nodes:
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
                sides = (node.left, node.right)
                number = any(
                    _language(side) == "program_id" or (isinstance(side, ast.Name) and side.id in numbers)
                    for side in sides
                )
                if number and any(isinstance(side, ast.Name) and side.id in sizes for side in sides):
                    return True
        return False

    # -- algorithm

    def _algorithm(self) -> int:
        """As ``levels_algorithm`` reads it from C."""
        if self._recurrence() or self._outer_state() or self._transformed_filter():
            return 3
        if self._online() or self._merged_statistics():
            return 2
        return int(self._kept_row() or self._squares_beside_sums() or self._fused())

    def _recurrence(self) -> bool:
        return any(call.args and isinstance(call.args[0], ast.Tuple) for call in self._calls("associative_scan"))

    def _merged_statistics(self) -> bool:
        return any(call.args and isinstance(call.args[0], ast.Tuple) for call in self._calls("reduce"))

    def _outer_state(self) -> bool:
        """What a product of tiles is added to is itself multiplied."""
        grown = {
            node.target.id
            for node in self.nodes
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and _language(node.value) == "dot"
        }
        return any(
            isinstance(each, ast.Name) and each.id in grown for call in self._calls("dot") for each in call.args[:2]
        )

    def _transformed_filter(self) -> bool:
        """``a + b + c`` beside ``a - b + c``."""
        texts = {
            ast.unparse(node) for node in self.nodes if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)
        }
        for text in [text for text in texts if len(text) < 100]:
            parts = re.fullmatch(r"(\w+) - (\w+) \+ (\w+)", text)
            if parts and f"{parts[1]} + {parts[2]} + {parts[3]}" in texts:
                return True
        return False

    def _online(self) -> bool:
        """``x = x * f + y`` or ``x *= f`` with an exponential ``f``."""
        powers = {
            name
            for name, value in self._values.items()
            if any(_language(each) in _EXP for each in nodes_below(value)[:_MAX_TERM])
        }
        for node in self.nodes:
            product: ast.AST | None = None
            if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Mult):
                product = node.value
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                name = node.targets[0].id
                product = next((each for each in _products(node.value) if _mentions(each, name)), None)
            if product is not None and any(
                _language(each) in _EXP or (isinstance(each, ast.Name) and each.id in powers)
                for each in nodes_below(product)
            ):
                return True
        return False

    def _kept_row(self) -> bool:
        """A row is loaded once, reduced, and stored from the same block, without a loop."""
        if self._loops() or not self._names & _REDUCES:
            return False
        stored = [call for call in self._calls("store") if len(call.args) > 1 and self._stride(call.args[0], 0)]
        return any(not _language(call.args[1]) and self._from_load(call.args[1], 0) for call in stored)

    def _from_load(self, node: ast.AST, depth: int) -> bool:
        if depth > 10:
            return False
        return any(_language(each) == "load" or self._is_loaded(each, depth) for each in nodes_below(node)[:200])

    def _is_loaded(self, node: ast.AST, depth: int) -> bool:
        if not isinstance(node, ast.Name) or node.id not in self._values:
            return False
        if node.id not in self._loaded:
            self._loaded[node.id] = False
            self._loaded[node.id] = self._from_load(self._values[node.id], depth + 1)
        return self._loaded[node.id]

    def _squares_beside_sums(self) -> bool:
        """``s += v`` and ``q += v * v`` in one loop."""
        for loop in self._loops():
            grown = [node.value for node in nodes_below(*loop.body) if isinstance(node, ast.AugAssign)]
            plain = {ast.unparse(value) for value in grown if isinstance(value, ast.Name)}
            for value in grown:
                if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
                    left, right = ast.unparse(value.left), ast.unparse(value.right)
                    if left == right and left in plain:
                        return True
        return False

    def _fused(self) -> bool:
        """Several inputs and a function beyond sum and product; behind a product of tiles, one input more."""
        inputs = {self._root(call.args[0], 0) for call in self._calls("load") if call.args} - {""}
        if not self._names & _NONLINEAR:
            return False
        if self._names & {"dot"}:
            return len(inputs) > 2 and not self._names & _REDUCES
        return len(inputs) > 1 and not self._names & (_REDUCES | _SCANS)

    def _root(self, node: ast.AST, depth: int) -> str:
        """The parameter that a pointer begins with."""
        while isinstance(node, (ast.BinOp, ast.Call)) and depth < 30:
            depth += 1
            node = node.left if isinstance(node, ast.BinOp) else node.args[0] if node.args else ast.Constant(value=0)
        if isinstance(node, ast.Name):
            value = self._values.get(node.id)
            return node.id if value is None or depth >= 30 or node.id in self._own else self._root(value, depth + 1)
        return ""


def _products(node: ast.AST) -> Iterator[ast.AST]:
    """Products among the terms of a sum."""
    for each in nodes_below(node)[:_MAX_TERM]:
        if isinstance(each, ast.BinOp) and isinstance(each.op, ast.Mult):
            yield each


def _mentions(node: ast.AST, name: str) -> bool:
    return any(isinstance(each, ast.Name) and each.id == name for each in ast.walk(node))
