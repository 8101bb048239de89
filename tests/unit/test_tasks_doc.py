"""docs/tasks.md says what the schema does, and its example is a task."""

from __future__ import annotations

import re
from pathlib import Path

from kfd.tasks import load, problems
from kfd.tasks.schema import Key, all_keys
from kfd.tasks.signature import C_TYPES
from kfd.tasks.tar import Entry, write
from kfd.tasks.targets import TOLERANCES, all_targets

DOC = (Path(__file__).parents[2] / "docs" / "tasks.md").read_text()


def row(path: str, key: Key) -> str:
    choices = ": " + ", ".join(f"`{choice}`" for choice in key.choices) if key.choices else ""
    default = "required" if key.required else key.default or "none"
    return f"| `{path}` | {key.kind}{choices} | {default} | {key.unit} | {key.doc} |"


def test_the_table_of_keys_is_the_schema() -> None:
    table = DOC[DOC.index("| key | type") : DOC.index("**Targets.**")]
    assert [line for line in table.splitlines() if line.startswith("| `")] == [row(*pair) for pair in all_keys()]


def test_the_table_of_tolerances_is_the_code() -> None:
    for name, bounds in TOLERANCES.items():
        assert f"| {name} | {bounds.tau:g} | {bounds.a:g} | {bounds.b:g} |" in DOC


def test_every_target_and_dtype_is_documented() -> None:
    for word in (*all_targets(), *C_TYPES, *(f"`{kind}`" for kind in set(C_TYPES.values()))):
        assert word in DOC


def test_the_example_is_a_task_without_problems() -> None:
    blocks = dict(re.findall(r"^`([\w.]+)`:\n\n```\w+\n(.*?)^```", DOC, re.S | re.M))
    archive = write(Entry(name, text.encode()) for name, text in blocks.items())
    assert problems(archive) == []
    spec = load(archive).spec
    assert spec.entry == "solve"
    assert not spec.kernel.is_empty
