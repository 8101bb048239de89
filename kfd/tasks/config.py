"""Reading config.yaml: YAML nodes with their lines, checked against the schema.

Values are read from nodes and not from a loaded document, because only nodes know their line, and because no
alias, tag or implicit type may surprise anybody (``no`` is not a boolean when a name is due; ``1e-5`` is a
number).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import yaml

from kfd.tasks.report import Problems, nearest, shown
from kfd.tasks.schema import CONFIG, FOREIGN, Key, Kind

__all__ = ["FILE", "Section", "Value", "read_config"]

FILE = "config.yaml"
_MAX_BYTES = 64 << 10
_MAX_DEPTH = 12
_TEXT_TAG = "tag:yaml.org,2002:str"
_NULL_TAG = "tag:yaml.org,2002:null"
_NUMBER_TAGS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")


@dataclass(frozen=True, slots=True)
class Value:
    """A checked value and its 1-based line."""

    data: str | int | float | list[Value] | list[Section] | Section
    line: int

    @property
    def text(self) -> str:
        """The value as text."""
        return str(self.data)

    @property
    def number(self) -> float:
        """The value as a number; 0 when the schema gave none."""
        return float(self.data) if isinstance(self.data, int | float) else 0.0

    @property
    def items(self) -> list[Value]:
        """The texts of a list."""
        return [item for item in self.data if isinstance(item, Value)] if isinstance(self.data, list) else []

    @property
    def sections(self) -> list[Section]:
        """The sections of a list."""
        return [item for item in self.data if isinstance(item, Section)] if isinstance(self.data, list) else []


@dataclass(frozen=True, slots=True)
class Section:
    """Checked values by key; what is absent or wrong is not there."""

    values: dict[str, Value]
    line: int

    def get(self, name: str) -> Value | None:
        """The value of a key."""
        return self.values.get(name)

    def text(self, name: str, default: str) -> str:
        """The text of a key."""
        value = self.values.get(name)
        return default if value is None else value.text

    def number(self, name: str, default: float) -> float:
        """The number of a key."""
        value = self.values.get(name)
        return default if value is None else value.number

    def section(self, name: str) -> Section:
        """A section inside; empty when absent."""
        value = self.values.get(name)
        return value.data if value is not None and isinstance(value.data, Section) else Section({}, self.line)

    def line_of(self, name: str) -> int:
        """Line of a key's value, else the section's."""
        value = self.values.get(name)
        return self.line if value is None else value.line


_Node: TypeAlias = yaml.Node


def read_config(text: str, problems: Problems) -> Section | None:
    """Read and check config.yaml. None when it is not YAML of the right kind; else what could be read."""
    if len(text) > _MAX_BYTES:
        problems.add(f"longer than {_MAX_BYTES} characters", file=FILE, mend="Move long texts into the kernel file.")
        return None
    try:
        _refuse_tricks(text, problems)
        node = None if problems.found else yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        what = getattr(error, "problem", None) or "the file is not YAML"
        problems.add(
            f"not valid YAML: {what}",
            file=FILE,
            line=mark.line + 1 if mark else 1,
            mend="Check indentation, quotes and brackets at this line.",
        )
        return None
    if problems.found:
        return None
    if not isinstance(node, yaml.MappingNode):
        problems.add("not a mapping of keys to values", file=FILE, line=1, mend="Begin with `name: my-task`.")
        return None
    return _section(node, CONFIG, "", problems)


def _refuse_tricks(text: str, problems: Problems) -> None:
    """Anchors, aliases, tags and deep nesting: nothing that a task needs, and a way to make megabytes of
    nothing."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        line = event.start_mark.line + 1 if event.start_mark else 0
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            problems.add("anchors and aliases are not allowed", file=FILE, line=line, mend="Write the value out.")
            return
        if getattr(event, "tag", None):
            problems.add("tags (`!...`) are not allowed", file=FILE, line=line, mend="Take the tag away.")
            return
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _MAX_DEPTH:
            problems.add(f"nested more than {_MAX_DEPTH} deep", file=FILE, line=line, mend="Flatten it.")
            return


def _line(node: _Node) -> int:
    return int(node.start_mark.line) + 1


def _section(node: yaml.MappingNode, keys: tuple[Key, ...], path: str, problems: Problems) -> Section:
    known = {key.name: key for key in keys}
    values: dict[str, Value] = {}
    seen: set[str] = set()
    for key_node, value_node in node.value:
        name = key_node.value if isinstance(key_node, yaml.ScalarNode) else ""
        if name not in known:
            _unknown(name, known, path, _line(key_node), problems)
        elif name in seen:
            problems.add(f"key {path}{name!s} is there twice", file=FILE, line=_line(key_node), mend="Keep one.")
        else:
            seen.add(name)
            value = _value(value_node, known[name], f"{path}{name}", problems)
            if value is not None:
                values[name] = value
    for key in keys:
        if key.required and key.name not in seen:
            problems.add(
                f"missing key {path}{key.name}",
                file=FILE,
                line=_line(node),
                mend=f"Add `{key.name}`: {_plain(key.doc)}.",
            )
    return Section(values, _line(node))


def _plain(doc: str) -> str:
    return doc[:1].lower() + doc[1:] if doc[:2].isalpha() and not doc[:2].isupper() else doc


def _unknown(name: str, known: dict[str, Key], path: str, line: int, problems: Problems) -> None:
    foreign = FOREIGN.get(name, "")
    close = nearest(name, known)
    if close:
        mend = f"Did you mean `{close}`?"
    elif foreign:
        mend = f"kfd calls this {foreign}."
    else:
        mend = f"Known keys here: {', '.join(known)}."
    problems.add(f"unknown key {path}{shown(name)[1:-1]}", file=FILE, line=line, mend=mend)


def _value(node: _Node, key: Key, path: str, problems: Problems) -> Value | None:
    if isinstance(node, yaml.ScalarNode) and node.tag == _NULL_TAG:
        problems.add(f"{path} has no value", file=FILE, line=_line(node), mend=f"Give a {key.kind} or drop the key.")
        return None
    if key.kind is Kind.SECTION:
        return _one_section(node, key, path, problems)
    if key.kind in (Kind.SECTIONS, Kind.TEXTS, Kind.DIMENSIONS):
        return _list(node, key, path, problems)
    return _scalar(node, key, path, problems)


def _one_section(node: _Node, key: Key, path: str, problems: Problems) -> Value | None:
    if not isinstance(node, yaml.MappingNode):
        example = key.children[0].name
        _wrong(node, path, f"a section such as `{key.name}: {{{example}: ...}}`", problems)
        return None
    return Value(_section(node, key.children, f"{path}.", problems), _line(node))


def _list(node: _Node, key: Key, path: str, problems: Problems) -> Value | None:
    if not isinstance(node, yaml.SequenceNode):
        _wrong(node, path, f"a {key.kind} such as `[...]`", problems)
        return None
    if not max(key.low, 0) <= len(node.value) <= key.high:
        problems.add(
            f"{path} has {len(node.value)} entries",
            file=FILE,
            line=_line(node),
            mend=f"Give {max(int(key.low), 0)} to {int(key.high)}.",
        )
        return None
    if key.kind is Kind.SECTIONS:
        return Value(list(_sections(node, key, path, problems)), _line(node))
    items: list[Value] = []
    for index, item in enumerate(node.value):
        kinds = (*_NUMBER_TAGS, _TEXT_TAG) if key.kind is Kind.DIMENSIONS else (_TEXT_TAG,)
        if not isinstance(item, yaml.ScalarNode) or item.tag not in kinds:
            _wrong(item, f"{path}[{index}]", "a text; put quotes around it", problems)
            return None
        items.append(Value(item.value.strip(), _line(item)))
    return Value(items, _line(node))


def _sections(node: yaml.SequenceNode, key: Key, path: str, problems: Problems) -> Iterator[Section]:
    for index, item in enumerate(node.value):
        if isinstance(item, yaml.MappingNode):
            yield _section(item, key.children, f"{path}[{index}].", problems)
        else:
            _wrong(item, f"{path}[{index}]", "a section such as `{name: x, role: in, ...}`", problems)


def _scalar(node: _Node, key: Key, path: str, problems: Problems) -> Value | None:
    if not isinstance(node, yaml.ScalarNode):
        _wrong(node, path, f"one {key.kind}", problems)
        return None
    if key.kind is Kind.TEXT:
        return _text(node, key, path, problems)
    number = _number(node.value, key.kind) if not node.style else None
    if number is None:
        _wrong(node, path, "an integer" if key.kind is Kind.INTEGER else "a number", problems)
        return None
    if not key.low <= number <= key.high:
        problems.add(
            f"{path} is {node.value}, outside {key.low:g} to {key.high:g} {key.unit}".rstrip(),
            file=FILE,
            line=_line(node),
            mend=f"Choose a value from {key.low:g} to {key.high:g}.",
        )
        return None
    return Value(number, _line(node))


def _text(node: yaml.ScalarNode, key: Key, path: str, problems: Problems) -> Value | None:
    text = node.value.strip()
    if node.tag != _TEXT_TAG:
        _wrong(node, path, "a text; put quotes around it", problems)
        return None
    if key.choices and text not in key.choices:
        close = nearest(_SYNONYMS.get(text.lower(), text), key.choices)
        options = ", ".join(key.choices)
        problems.add(
            f"{path} is {shown(text)}, which is not known",
            file=FILE,
            line=_line(node),
            mend=(f"Did you mean `{close}`? " if close else "") + f"There are: {options}.",
        )
        return None
    if not max(key.low, 0) <= len(text) <= key.high:
        what = "empty" if not text else f"{len(text)} characters long"
        top = int(min(key.high, 10_000))
        problems.add(f"{path} is {what}", file=FILE, line=_line(node), mend=f"Give 1 to {top} characters.")
        return None
    return Value(text, _line(node))


_SYNONYMS = {
    "float": "float32",
    "double": "float64",
    "fp32": "float32",
    "f32": "float32",
    "fp64": "float64",
    "f64": "float64",
    "half": "float16",
    "fp16": "float16",
    "bf16": "bfloat16",
    "int": "int32",
    "long": "int64",
    "byte": "uint8",
    "input": "in",
    "output": "out",
    "inout": "out",
    "eager": "reference",
    "torch": "reference",
}


def _number(text: str, kind: Kind) -> int | float | None:
    text = text.strip().replace("_", "")
    if len(text) > 40:
        return None
    try:
        if kind is Kind.INTEGER:
            return int(text, 10)
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _wrong(node: _Node, path: str, wanted: str, problems: Problems) -> None:
    if isinstance(node, yaml.ScalarNode):
        found = shown(node.value)
    else:
        found = "a section" if isinstance(node, yaml.MappingNode) else "a list"
    problems.add(f"{path} is {found}", file=FILE, line=_line(node), mend=f"It must be {wanted}.")
