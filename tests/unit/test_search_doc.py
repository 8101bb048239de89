"""``docs/search.md`` names only tests that exist and leaves no known report about the search out."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.hostile.corpus import load_programs

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "search.md").read_text(encoding="utf-8")
REPORTS = TEXT.split("## Every known report")[1].split("\n## ")[0]
TESTS = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", TEXT)))
SCORES = "D01 D02 D04 D05 D06 D08 D09 D11 D12 D13 D14 D16 D17 D18 D19 D21 D23"
MODELS = "F01 F02 F03 F04 F06 F07 F09 F11 F12 F14 F15 F17 F18 F19 F21 F22 F23 F24"
RESTARTS = "E01 E04 E06 E07 E08 E11 E14"
MISSING = "not built yet: "


def rows() -> dict[str, str]:
    """Entry to what holds it. Raises AssertionError for an entry that is there twice."""
    found: dict[str, str] = {}
    for line in REPORTS.split("\n"):
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        if re.match(r"\| [DEF]\d\d \|", line):
            assert len(cells) == 3, line
            assert cells[0] not in found, cells[0]
            found[cells[0]] = cells[2]
    return found


def test_the_entries_are_all_and_no_others() -> None:
    assert list(rows()) == f"{SCORES} {RESTARTS} {MODELS}".split()


@pytest.mark.parametrize(("file", "name"), TESTS)
def test_every_named_test_exists(file: str, name: str) -> None:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    assert name in {node.name for node in ast.walk(tree) if isinstance(node, kinds)}


def test_every_named_program_exists() -> None:
    named = set(re.findall(r"`hostile: ([^`]+)`", TEXT))
    assert named
    assert named <= {one.name for one in load_programs()}


@pytest.mark.parametrize("entry", f"{SCORES} {RESTARTS} {MODELS}".split())
def test_every_known_report_has_a_test_or_a_reason(entry: str) -> None:
    held = rows()[entry].partition(MISSING)[0]
    assert "`tests/" in held or "`hostile: " in held or held.startswith("no test"), held
    if "no test" in held:
        assert re.match(r"no test(?: of its own)?: \w.{20,}", held), held


def test_what_is_missing_is_named_and_counted() -> None:
    open_entries = [entry for entry, held in rows().items() if MISSING in held and not entry.startswith("E")]
    for entry in open_entries:
        assert len(rows()[entry].partition(MISSING)[2]) > 20, entry
    told = re.search(r"Of the (\d+) entries in D and F, (\d+) are held whole and (\d+) in part", REPORTS)
    assert told is not None
    total = len(f"{SCORES} {MODELS}".split())
    assert [int(number) for number in told.groups()] == [total, total - len(open_entries), len(open_entries)]


@pytest.mark.parametrize(
    "file",
    [
        "tests/unit/test_search_reports.py",
        "tests/unit/test_search_campaign.py",
        "tests/integration/test_drafting_reports.py",
    ],
)
def test_a_test_named_after_a_report_stands_in_its_row(file: str) -> None:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    named = [(match[1].upper(), name) for name in names if (match := re.match(r"test_([def]\d\d)_", name))]
    assert named
    for entry, name in named:
        assert f"`{file}::{name}`" in rows()[entry], name
