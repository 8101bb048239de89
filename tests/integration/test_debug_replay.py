"""``kfd debug replay``: what a store holds is proved decision by decision, and what was changed is noticed."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kfd.daemon.cli import main
from kfd.store.journal import Journal
from kfd.testing.simulation import Simulation, drafted
from tests.property.test_search_restart import EVERYTHING, answer, judge, spec_of

SPEC = spec_of(11, EVERYTHING)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A state folder with one whole campaign."""
    simulation = Simulation(answer, judge)
    simulation.submit(SPEC, drafted("initial"))
    simulation.run()

    async def write() -> None:
        journal = await Journal.open(tmp_path / "kfd.sqlite3")
        await journal.write(journal.prepare(simulation.commands, "2026-01-01T00:00:00.000+00:00"))
        await journal.close()

    asyncio.run(write())
    return tmp_path


def replayed(state: Path, campaign: str = SPEC.id) -> Result:
    return CliRunner().invoke(main, ["debug", "replay", campaign, "--state-dir", str(state)])


def changed(state: Path, statement: str) -> None:
    with sqlite3.connect(state / "kfd.sqlite3") as connection:
        assert connection.execute(statement).rowcount > 0


def test_a_stored_campaign_is_proved(state: Path) -> None:
    result = replayed(state)
    assert (result.exit_code, "decisions" in result.output, "as stored" in result.output) == (0, True, True)
    assert replayed(state, "@last").output == result.output


def test_a_decision_that_was_changed_is_named(state: Path) -> None:
    changed(state, "UPDATE candidate SET asked_model = 'other' WHERE ordinal = 30")
    result = replayed(state)
    assert result.exit_code == 1
    assert f"{SPEC.id}-30 differs in its model" in result.output


def test_an_outcome_that_was_changed_shows_in_what_follows(state: Path) -> None:
    changed(state, "UPDATE candidate SET kept = 1 - kept WHERE told < 20")
    assert replayed(state).exit_code == 1


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        ("UPDATE candidate SET variant = '', asked_at = 0 WHERE ordinal > 0", "older kfd"),
        ("UPDATE candidate SET parent_cell = 'here' WHERE ordinal = 30", "cannot be read"),
        ("UPDATE campaign SET spec = '{}'", "cannot be read"),
    ],
)
def test_what_cannot_be_replayed_says_so(state: Path, statement: str, text: str) -> None:
    changed(state, statement)
    result = replayed(state)
    assert result.exit_code == 2
    assert text in result.output


def test_a_file_of_another_schema_and_a_missing_one_are_refused(state: Path) -> None:
    with sqlite3.connect(state / "kfd.sqlite3") as connection:
        connection.execute("PRAGMA user_version = 2")
    assert "start the daemon once" in replayed(state).output
    assert replayed(state / "none").exit_code == 2
    assert replayed(state, "nobody").exit_code == 2
