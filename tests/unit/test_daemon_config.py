"""Laws of the daemon's configuration: every key known and documented, every mistake named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kfd.base.failure import BadInput
from kfd.daemon.config import Config, load_config
from kfd.daemon.configdoc import document

ROOT = Path(__file__).parents[2]


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "kfd.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_document_is_what_the_models_say() -> None:
    assert (ROOT / "docs" / "configuration.md").read_text("utf-8") == document()


def test_every_key_is_described() -> None:
    rows = [line for line in document().splitlines() if line.startswith("| `")]
    assert len(rows) > 20
    assert all(len(line.split("|")[4].strip()) > 8 for line in rows)


def test_no_file_gives_the_defaults() -> None:
    assert load_config(None) == Config()


@pytest.mark.parametrize(
    ("text", "key", "mend"),
    [
        ("[serve]\nlisten = 'x'", "serve", "did you mean server?"),
        ("[server]\nlisen = '127.0.0.1:1'", "server.lisen", "did you mean listen?"),
        ("[campaign.search]\npatches = 1.0", "campaign.search.patches", "did you mean patch?"),
        (
            "[[llm.models]]\nname = 'a'\nmodel = 'b'\nbase_ulr = 'http://127.0.0.1'",
            "base_ulr",
            "did you mean base_url?",
        ),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest_one(tmp_path: Path, text: str, key: str, mend: str) -> None:
    with pytest.raises(BadInput) as caught:
        load_config(written(tmp_path, text))
    assert key in str(caught.value)
    assert caught.value.mend == mend


@pytest.mark.parametrize(
    "text",
    [
        "[server]\nlisten = '0.0.0.0:7440'",
        "[server]\nlisten = '10.0.0.1:7440'",
        "[server]\nlisten = 'example.com:7440'",
        "[server]\nlisten = '7440'",
        "[server]\nlisten = '127.0.0.1:99999'",
        "[campaign]\nin_flight = 0",
        "[campaign]\nin_flight = 'many'",
        "[campaign.search]\nrewrite = 0.0\npatch = 0.0",
        "[campaign.measure]\ntarget_half_width = 0",
        "not toml at all",
    ],
)
def test_what_cannot_be_is_refused_with_file_and_mend(tmp_path: Path, text: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(BadInput) as caught:
        load_config(path)
    assert caught.value.file == str(path)
    assert caught.value.mend


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=re.escape("none.toml")):
        load_config(tmp_path / "none.toml")
