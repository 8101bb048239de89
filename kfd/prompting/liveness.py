"""Parts of a C++ source that cannot run: ``#if 0``, ``if (false)``, functions that nothing exported leads to."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping

from tree_sitter import Node

from kfd.prompting import lexing

__all__ = ["MAX_FUNCTIONS", "Ranges", "dead_ranges", "function_name"]

MAX_FUNCTIONS = 300
"""Functions that are told apart; in a source with more, all count as reached."""


class Ranges:
    """Byte ranges, joined where they overlap, asked by bisection."""

    def __init__(self, ranges: Iterable[tuple[int, int]]) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for start, end in sorted(ranges):
            if self._ends and start <= self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], end)
            else:
                self._starts.append(start)
                self._ends.append(end)

    def holds(self, byte: int) -> bool:
        """Whether a byte lies in one of them."""
        at = bisect_right(self._starts, byte) - 1
        return at >= 0 and byte < self._ends[at]

    def blank(self, source: bytes) -> bytes:
        """The source with these ranges blanked."""
        rest = bytearray(source)
        for start, end in zip(self._starts, self._ends, strict=True):
            rest[start:end] = b" " * (end - start)
        return bytes(rest)


def dead_ranges(source: bytes, captures: Mapping[str, list[Node]]) -> list[tuple[int, int]]:
    """Byte ranges that cannot run. ``captures``: nodes named preproc_if, if, function and linkage."""
    ranges: list[tuple[int, int]] = []
    for node in captures.get("preproc_if", ()):
        condition = node.child_by_field_name("condition")
        if condition is not None and _text(source, condition, 8) in (b"0", b"false"):
            other = node.child_by_field_name("alternative")
            ranges.append((condition.end_byte, node.end_byte if other is None else other.start_byte))
    for node in captures.get("if", ()):
        condition, body = node.child_by_field_name("condition"), node.child_by_field_name("consequence")
        if body is not None and _text(source, condition, 16).strip(b"() ") in (b"0", b"false"):
            ranges.append((body.start_byte, body.end_byte))
    functions = captures.get("function", [])
    if 1 < len(functions) <= MAX_FUNCTIONS:
        ranges += _unreached(source, captures, Ranges(ranges))
    return ranges


def _unreached(source: bytes, captures: Mapping[str, list[Node]], dead: Ranges) -> list[tuple[int, int]]:
    """Plain functions that no exported function, initialiser or macro leads to."""
    exported = Ranges((node.start_byte, node.end_byte) for node in captures.get("linkage", ()))
    named: dict[bytes, list[tuple[int, int]]] = {}
    any_exported = False
    for node in captures["function"]:
        name = function_name(source, node)
        if exported.holds(node.start_byte):
            any_exported = True
        elif name:
            named.setdefault(name, []).append((node.start_byte, node.end_byte))
    if not any_exported or not named:
        return []
    code = dead.blank(lexing.blanked(source))
    bodies = {name: b" ".join(code[start:end] for start, end in ranges) for name, ranges in named.items()}
    around = Ranges(piece for ranges in named.values() for piece in ranges).blank(code)
    reached: set[bytes] = set()
    todo = _words(around) & named.keys()
    while todo:
        name = todo.pop()
        reached.add(name)
        todo |= (_words(bodies[name]) & named.keys()) - reached
    return [piece for name, ranges in named.items() if name not in reached for piece in ranges]


def function_name(source: bytes, node: Node) -> bytes:
    """Name of a plain function; empty for members, operators and whatever else has no plain name."""
    inner = node.child_by_field_name("declarator")
    for _ in range(8):
        if inner is None or inner.type not in (
            "pointer_declarator",
            "reference_declarator",
            "function_declarator",
        ):
            break
        named = inner.named_children
        inner = inner.child_by_field_name("declarator") or (named[0] if named else None)
    return _text(source, inner, 200) if inner is not None and inner.type == "identifier" else b""


def _text(source: bytes, node: Node | None, limit: int) -> bytes:
    return b"" if node is None else source[node.start_byte : min(node.end_byte, node.start_byte + limit)]


def _words(code: bytes) -> set[bytes]:
    return set(re.findall(rb"[A-Za-z_]\w*", code))
