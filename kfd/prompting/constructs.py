"""Constructs of a C++ source that can run, found in its syntax tree.

Nodes are compared by their byte ranges and read from a bounded stretch of the source; nothing asks a node
for its parent, which costs time in the size of the tree. So a hostile source is as cheap as an honest one of
its length.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache

import tree_sitter_cpp
from tree_sitter import Language, Node, Parser, Tree

from kfd.prompting import lexing
from kfd.prompting.liveness import MAX_FUNCTIONS, Ranges, dead_ranges, function_name

__all__ = ["Constructs", "constructs"]

_MAX_BYTES = 128 << 10
_MAX_NODES = 4000
_MAX_LOOPS = 300
_STRETCH = 1000
_MAX_WALK = 100_000
_CHUNK = 64 << 10
_STEPS = 500
_BYTES_PER_STEP = 40
"""The parser reports a step for about every hundred bytes of honest code."""

_KINDS = {
    "call_expression": "call",
    "for_statement": "for",
    "preproc_call": "pragma",
    "preproc_def": "macro",
    "preproc_function_def": "macro",
    "attribute_specifier": "attribute",
    "type_identifier": "type",
    "template_type": "type",
    "qualified_identifier": "qualified",
    "assignment_expression": "assign",
    "binary_expression": "binary",
    "declaration": "declaration",
    "function_definition": "function",
    "linkage_specification": "linkage",
    "if_statement": "if",
    "preproc_if": "preproc_if",
}
"""Kinds of nodes that are kept, and the name they are kept under."""


@dataclass(slots=True)
class Constructs:
    """What was found. Counts unless said otherwise."""

    calls: list[str] = field(default_factory=list)
    """Names of called functions, as written, without template arguments."""
    types: list[str] = field(default_factory=list)
    qualified: list[str] = field(default_factory=list)
    pragmas: list[tuple[str, ...]] = field(default_factory=list)
    """Words of each pragma."""
    vector_types: bool = False
    blocked_loops: int = 0
    nested_blocks: bool = False
    buffers: int = 0
    """Arrays inside functions that are not constant tables."""
    tables: int = 0
    rescaled: int = 0
    """Accumulators that are rescaled while they grow, as in an online softmax."""
    horner: int = 0
    """Steps of a polynomial with constant coefficients."""
    bit_casts: int = 0
    fused_loops: int = 0
    reciprocals: int = 0
    recursive: bool = False

    def names(self) -> Iterator[str]:
        """Calls, types and qualified names."""
        yield from self.calls
        yield from self.types
        yield from self.qualified


@cache
def _grammar() -> tuple[Language, Mapping[int, str]]:
    language = Language(tree_sitter_cpp.language())
    kinds: dict[int, str] = {}
    for number in range(language.node_kind_count):
        # One kind may have several numbers: aliases of the grammar.
        kind = language.node_kind_for_id(number)
        if kind in _KINDS and language.node_kind_is_named(number):
            kinds[number] = _KINDS[kind]
    return language, kinds


def constructs(text: str) -> Constructs:
    """Constructs in the parts of a source that can run; of a very long source, in its first 128 KiB.

    A source that the grammar cannot read at a reasonable price (deep ambiguity, as honest code never has)
    has none.
    """
    source = text.encode("utf-8", "replace")[:_MAX_BYTES]
    tree = _parsed(source)
    return Constructs() if tree is None else _Reader(source, _collected(tree)).read()


def _parsed(source: bytes) -> Tree | None:
    """The syntax tree; None beyond a bound on the parser's steps, which is not a clock, so that answers
    repeat."""
    language, _ = _grammar()
    parser = Parser(language)  # one for each call: a parser is not for several threads, and drafts are parsed in many
    steps = _STEPS + len(source) // _BYTES_PER_STEP

    def too_long(*_: object) -> bool:
        nonlocal steps
        steps -= 1
        return steps < 0

    try:
        return parser.parse(lambda offset, _: source[offset : offset + _CHUNK], progress_callback=too_long)
    except ValueError:
        parser.reset()
        return None


def _collected(tree: Tree) -> dict[str, list[Node]]:
    """Nodes of the kinds that matter, in the order of the source. A walk, because queries are not linear."""
    _, kinds = _grammar()
    found: dict[str, list[Node]] = {name: [] for name in kinds.values()}
    cursor = tree.walk()
    down, along, up = cursor.goto_first_child, cursor.goto_next_sibling, cursor.goto_parent
    for _ in range(_MAX_WALK):
        node = cursor.node
        if node is not None and (name := kinds.get(node.kind_id)):
            found[name].append(node)
        if down():
            continue
        while not along():
            if not up():
                return found
    return found


class _Reader:
    """One source and the nodes of interest in it."""

    def __init__(self, source: bytes, captures: Mapping[str, list[Node]]) -> None:
        self._source = source
        self._captures = captures
        self._found = Constructs()
        self._dead = Ranges(dead_ranges(source, captures))

    def read(self) -> Constructs:
        found = self._found
        calls = [(node, self._name(node)) for node in self._live("call")]
        found.calls = [name for _, name in calls]
        found.types = [self._plain(node) for node in self._live("type")]
        found.qualified = [self._plain(node) for node in self._live("qualified")]
        found.pragmas = [self._pragma(node) for node in self._live("pragma")]
        found.vector_types = any(
            re.search(rb"\b(?:__)?(?:ext_)?(?:vector_size|vector_type)(?:__)?\b", self._text(node))
            for node in self._live("attribute")
        )
        for node, name in calls:
            self._read_call(node, name)
        self._read_macros()
        self._read_arrays()
        self._read_loops(self._live("for")[:_MAX_LOOPS])
        for node in self._live("assign"):
            self._read_assignment(node)
        found.reciprocals = sum(map(self._is_reciprocal, self._live("binary")))
        found.recursive = any(self._calls_itself(node, calls) for node in self._live("function")[:MAX_FUNCTIONS])
        return found

    def _live(self, name: str) -> list[Node]:
        return [node for node in self._captures.get(name, ())[:_MAX_NODES] if not self._dead.holds(node.start_byte)]

    def _text(self, node: Node | None, limit: int = _STRETCH) -> bytes:
        if node is None:
            return b""
        return self._source[node.start_byte : min(node.end_byte, node.start_byte + limit)]

    def _plain(self, node: Node | None) -> str:
        text = self._text(node, 200).decode("utf-8", "replace")
        return text if _PLAIN_NAME.fullmatch(text) else _NOT_NAME.sub("", text)

    def _name(self, call: Node) -> str:
        return self._plain(call.child_by_field_name("function"))

    # ---- single constructs

    def _pragma(self, node: Node) -> tuple[str, ...]:
        directive = self._text(node.child_by_field_name("directive"), 20).replace(b" ", b"")
        if directive != b"#pragma":
            return ()
        return _pragma_words(self._text(node.child_by_field_name("argument")).decode("utf-8", "replace"))

    def _read_macros(self) -> None:
        macros = self._live("macro")
        if not macros:
            return
        used = Counter(re.findall(rb"[A-Za-z_]\w*", self._source))
        for node in macros:
            body = self._text(node.child_by_field_name("value")).decode("utf-8", "replace")
            if used[self._text(node.child_by_field_name("name"), 200)] < 2:
                continue
            self._found.pragmas += [_pragma_words(words) for words in _PRAGMA_OPERATOR.findall(body)]
            self._found.calls += re.findall(r"\b([A-Za-z_]\w*)\s*\(", lexing.code_only(body))

    def _read_call(self, node: Node, name: str) -> None:
        if name == "_Pragma":
            text = self._text(node).decode("utf-8", "replace")
            self._found.pragmas += [_pragma_words(words) for words in _PRAGMA_OPERATOR.findall(text)]
        elif name in ("memcpy", "std::memcpy", "__builtin_memcpy"):
            # From one variable's address to another's: reading bits; from memory it is a vector load.
            arguments = self._text(node.child_by_field_name("arguments"))
            self._found.bit_casts += re.match(rb"\(\s*&\s*\w+\s*,\s*&\s*\w+\s*,", arguments) is not None
        elif name == "reinterpret_cast":
            self._found.bit_casts += (
                re.match(rb"\w+\s*<[^>]*\bu?int(?:32|64)?(?:_t)?\s*[&*]", self._text(node)) is not None
            )

    def _read_arrays(self) -> None:
        inside = Ranges((node.start_byte, node.end_byte) for node in self._captures.get("function", ()))
        for node in self._live("declaration"):
            for declarator in node.children_by_field_name("declarator")[:8]:
                value = declarator.child_by_field_name("value")
                inner = declarator.child_by_field_name("declarator")
                array = inner if declarator.type == "init_declarator" else declarator
                if array is None or array.type != "array_declarator":
                    continue
                before = self._source[node.start_byte : declarator.start_byte][:200]
                if value is not None and value.named_child_count >= 8 and re.search(rb"\bconst", before):
                    self._found.tables += 1
                else:
                    self._found.buffers += inside.holds(node.start_byte)

    def _is_reciprocal(self, node: Node) -> bool:
        if self._source[node.start_byte : node.start_byte + 1] != b"1":
            return False
        left = self._text(node.child_by_field_name("left"), 20)
        operator = self._text(node.child_by_field_name("operator"), 2)
        return operator == b"/" and re.fullmatch(rb"1(?:\.0*)?[fFlL]?", left) is not None

    def _calls_itself(self, function: Node, calls: list[tuple[Node, str]]) -> bool:
        name = function_name(source=self._source, node=function).decode("utf-8", "replace")
        return bool(name) and any(
            called == name and function.start_byte < node.start_byte < function.end_byte for node, called in calls
        )

    # ---- loops

    def _read_loops(self, loops: list[Node]) -> None:
        """Loops come in the order of the source, so those inside one follow it directly."""
        loops = sorted(loops, key=lambda node: node.start_byte)
        tiles: list[tuple[int, bytes]] = []  # where each ends, and its variable
        for at, node in enumerate(loops):
            inner = [other for other in loops[at + 1 :] if other.start_byte < node.end_byte]
            if not inner:
                self._found.fused_loops += len(self._accumulations(node)) >= 2
                continue
            variable = self._stepping_variable(node)
            if variable and any(self._starts_at(other, variable) for other in inner):
                # Tiles in several directions are one level; a tile that begins where another's does is the next.
                self._found.nested_blocks |= any(
                    node.start_byte < end and self._starts_at(node, outer) for end, outer in tiles
                )
                tiles.append((node.end_byte, variable))
        self._found.blocked_loops = len(tiles)

    def _stepping_variable(self, loop: Node) -> bytes:
        """Variable of a loop that steps by more than one; else empty."""
        update = loop.child_by_field_name("update")
        if update is None or update.type != "assignment_expression" or b"+" not in self._text(update):
            return b""
        left, right = update.child_by_field_name("left"), update.child_by_field_name("right")
        if left is None or left.type != "identifier" or self._text(right, 8) == b"1":
            return b""
        return self._text(left, 200)

    def _starts_at(self, loop: Node, variable: bytes) -> bool:
        start = self._text(loop.child_by_field_name("initializer"))
        return re.search(rb"=[^;]*\b" + re.escape(variable) + rb"\b", start) is not None

    def _accumulations(self, loop: Node) -> set[str]:
        """Different ways in which an innermost loop accumulates; copies of one, as unrolling makes them,
        count once."""
        shapes: set[str] = set()
        for node in _below(loop.child_by_field_name("body")):
            if node.type != "assignment_expression":
                continue
            left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
            operator = self._text(node.child_by_field_name("operator"), 4)
            if left is None or right is None or left.type != "identifier":
                continue
            name = re.escape(self._text(left, 200))
            if operator in (b"+=", b"*=") or (
                operator == b"=" and re.search(rb"\b" + name + rb"\b", self._text(right))
            ):
                shapes.add(f"{operator!r} {self._shape(right, 0)}")
        return shapes

    def _shape(self, node: Node, depth: int) -> str:
        if depth > 6 or node.type in (
            "subscript_expression",
            "identifier",
            "number_literal",
            "pointer_expression",
        ):
            return "value"
        name = node.child_by_field_name("operator") or node.child_by_field_name("function")
        kinds = ",".join(self._shape(child, depth + 1) for child in node.named_children[:8])
        return f"{node.type}:{self._plain(name)}({kinds})"

    def _read_assignment(self, node: Node) -> None:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        operator = self._text(node.child_by_field_name("operator"), 4)
        if left is None or right is None:
            return
        if operator == b"*=":
            self._found.rescaled += right.type == "call_expression"
        elif operator == b"=" and right.type == "binary_expression":
            self._read_step(self._text(left, 200), right)

    def _read_step(self, target: bytes, right: Node) -> None:
        """``v = v * e + f``: a polynomial's step when ``f`` is a constant, a rescaled sum otherwise."""
        parts = [right.child_by_field_name("left"), right.child_by_field_name("right")]
        if self._text(right.child_by_field_name("operator"), 4) != b"+":
            return
        for product, addend in (parts, parts[::-1]):
            if product is None or addend is None or product.type != "binary_expression":
                continue
            factors = [self._text(factor, 200) for factor in product.named_children[:4]]
            if self._text(product.child_by_field_name("operator"), 4) == b"*" and target in factors:
                if addend.type == "number_literal":
                    self._found.horner += 1
                else:
                    self._found.rescaled += 1


_PLAIN_NAME = re.compile(r"[\w:]*+")
_NOT_NAME = re.compile(r"\s|<.*", re.S)
_PRAGMA_OPERATOR = re.compile(r'_Pragma\s*\(\s*"([^"\n]{0,500})"\s*\)')


def _pragma_words(text: str) -> tuple[str, ...]:
    """Words of a pragma outside parentheses, so that a variable called ``simd`` is none of them."""
    flat: list[str] = []
    depth = 0
    for piece in re.split(r"([()])", lexing.code_only(text[:_STRETCH])):
        depth += (piece == "(") - (piece == ")")
        flat.append(" " if depth > 0 or piece in "()" else piece)
    return tuple(re.findall(r"\w+", "".join(flat)))


def _below(node: Node | None) -> Iterator[Node]:
    stack = [node] if node is not None else []
    seen = 0
    while stack and seen < _MAX_NODES:
        current = stack.pop()
        seen += 1
        yield current
        if current.type not in ("subscript_expression", "call_expression", "binary_expression"):
            stack += current.named_children[:200]
