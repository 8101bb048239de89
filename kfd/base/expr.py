"""Small integer expressions over named sizes: the shapes of a task (``rows``, ``cols * 2``, ``max(n // 4,
1)``).

Written by strangers and read by the loader and by the judge, so there is no ``eval``: a tokenizer, a
recursive descent over integers, names, ``+ - * // / % ( )``, ``min``, ``max`` and ``ceildiv``, and bounds on
length, depth and value. ``/`` is the exact quotient: it is an error when something remains; use ``//`` to
round down and ``ceildiv(a, b)`` to round up.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

__all__ = ["MAX_LENGTH", "MAX_VALUE", "ExprError", "evaluate", "names"]

MAX_LENGTH = 200
"""Characters of one expression."""

MAX_VALUE = 2**63 - 1
"""Largest magnitude of any intermediate value: what an int64 size can hold."""

_MAX_DEPTH = 20
_MAX_ARGUMENTS = 8
_TOKEN = re.compile(r"[ \t]*(?:([0-9]+)|([A-Za-z_][A-Za-z0-9_]*)|(//|[-+*/%(),]))")


class ExprError(ValueError):
    """The expression cannot be read or has no value; the text says why."""


@dataclass(frozen=True, slots=True)
class _Number:
    value: int


@dataclass(frozen=True, slots=True)
class _Name:
    name: str


@dataclass(frozen=True, slots=True)
class _Binary:
    operator: str
    left: _Node
    right: _Node


@dataclass(frozen=True, slots=True)
class _Negated:
    operand: _Node


@dataclass(frozen=True, slots=True)
class _Call:
    function: str
    arguments: tuple[_Node, ...]


def _ceildiv(values: Sequence[int]) -> int:
    above, below = values
    if below == 0:
        raise ExprError(f"division by zero in ceildiv({above}, 0)")
    return -(-above // below)


_FUNCTIONS: dict[str, Callable[[Sequence[int]], int]] = {"min": min, "max": max, "ceildiv": _ceildiv}

_Node: TypeAlias = _Number | _Name | _Binary | _Negated | _Call


def evaluate(text: str, sizes: Mapping[str, int]) -> int:
    """Value of an expression. Raises ExprError: malformed, unknown name, division by zero or out of range."""
    return _value(_parse(text), sizes)


def names(text: str) -> frozenset[str]:
    """Names that an expression needs. Raises ExprError when it is malformed."""
    found: set[str] = set()
    stack: list[_Node] = [_parse(text)]
    while stack:
        node = stack.pop()
        if isinstance(node, _Name):
            found.add(node.name)
        elif isinstance(node, _Binary):
            stack += [node.left, node.right]
        elif isinstance(node, _Negated):
            stack.append(node.operand)
        elif isinstance(node, _Call):
            stack += node.arguments
    return frozenset(found)


def _value(node: _Node, sizes: Mapping[str, int]) -> int:
    if isinstance(node, _Number):
        result = node.value
    elif isinstance(node, _Name):
        if node.name not in sizes:
            raise ExprError(f"unknown name {node.name!r}")
        result = sizes[node.name]
    elif isinstance(node, _Negated):
        result = -_value(node.operand, sizes)
    elif isinstance(node, _Call):
        result = _FUNCTIONS[node.function]([_value(argument, sizes) for argument in node.arguments])
    else:
        result = _combine(node.operator, _value(node.left, sizes), _value(node.right, sizes))
    if abs(result) > MAX_VALUE:
        raise ExprError("the value does not fit into 64 bits")
    return result


def _combine(operator: str, left: int, right: int) -> int:
    if operator == "+":
        return left + right
    if operator == "-":
        return left - right
    if operator == "*":
        return left * right
    if right == 0:
        raise ExprError(f"division by zero in {left} {operator} 0")
    if operator == "%":
        return left % right
    if operator == "/" and left % right:
        raise ExprError(f"{left} / {right} leaves a remainder; use // to round down")
    return left // right


@lru_cache(maxsize=1024)
def _parse(text: str) -> _Node:
    if len(text) > MAX_LENGTH:
        raise ExprError(f"longer than {MAX_LENGTH} characters")
    parser = _Parser(_tokens(text))
    node = parser.sum(0)
    if parser.peek():
        raise ExprError(f"unexpected {parser.peek()!r}")
    return node


def _tokens(text: str) -> list[str]:
    tokens: list[str] = []
    text = text.rstrip(" \t")
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ExprError(f"unexpected character {text[at:].lstrip()[:1]!r}")
        tokens.append(match.group(1) or match.group(2) or match.group(3))
        at = match.end()
    if not tokens:
        raise ExprError("empty expression")
    return tokens


class _Parser:
    """One token of look-ahead; depth is passed down so that nesting is bounded before the stack is."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._at = 0

    def peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self) -> str:
        token = self.peek()
        if not token:
            raise ExprError("ends too early")
        self._at += 1
        return token

    def _expect(self, token: str) -> None:
        if self.peek() != token:
            raise ExprError(f"expected {token!r}, found {self.peek() or 'the end'!r}")
        self._at += 1

    def sum(self, depth: int) -> _Node:
        if depth > _MAX_DEPTH:
            raise ExprError(f"nested more than {_MAX_DEPTH} deep")
        node = self._product(depth)
        while self.peek() in ("+", "-"):
            operator = self._take()
            node = _Binary(operator, node, self._product(depth))
        return node

    def _product(self, depth: int) -> _Node:
        node = self._factor(depth)
        while self.peek() in ("*", "/", "//", "%"):
            operator = self._take()
            node = _Binary(operator, node, self._factor(depth))
        return node

    def _factor(self, depth: int) -> _Node:
        negative = False
        while self.peek() in ("-", "+"):
            negative ^= self._take() == "-"
        node = self._atom(depth)
        return _Negated(node) if negative else node

    def _atom(self, depth: int) -> _Node:
        token = self._take()
        if token[0].isdigit():
            number = int(token)
            if number > MAX_VALUE:
                raise ExprError(f"{token} does not fit into 64 bits")
            return _Number(number)
        if token == "(":
            node = self.sum(depth + 1)
            self._expect(")")
            return node
        if token[0].isalpha() or token[0] == "_":
            return self._call(token, depth) if self.peek() == "(" else _Name(token)
        raise ExprError(f"unexpected {token!r}")

    def _call(self, function: str, depth: int) -> _Node:
        if function not in _FUNCTIONS:
            raise ExprError(f"unknown function {function!r}; there are min, max and ceildiv")
        self._expect("(")
        arguments = [self.sum(depth + 1)]
        while self.peek() == ",":
            self._take()
            arguments.append(self.sum(depth + 1))
        self._expect(")")
        if len(arguments) > _MAX_ARGUMENTS:
            raise ExprError(f"{function} takes at most {_MAX_ARGUMENTS} arguments")
        if function == "ceildiv" and len(arguments) != 2:
            raise ExprError(f"ceildiv takes 2 arguments, not {len(arguments)}")
        return _Call(function, tuple(arguments))
