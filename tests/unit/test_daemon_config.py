"""Laws of the daemon's configuration: every key known and documented, every mistake named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kfd.base.failure import BadInput
from kfd.core.search.prompt_archive import PromptPolicy, Region
from kfd.daemon.config import SEARCH, Config, load_config
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
        ("[campaign.search.operators]\npatches = 1.0", "campaign.search.operators.patches", "did you mean patch?"),
        ("[campaign.search]\npatch = 1.0", "campaign.search.patch", "did you mean campaign.search.operators.patch?"),
        ("[campaign.search]\nparent = {}", "campaign.search.parent", "did you mean parents?"),
        (
            "[campaign.search]\nmodels = { lage = 1 }\n[[llm.models]]\nname = 'large'\nbase_url = 'http://h'",
            "campaign.search.models names 'lage'",
            "did you mean large?",
        ),
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
        "[campaign.search.operators]\nrewrite = 0.0\npatch = 0.0",
        "[campaign.search.prompts]\nperiod = -1",
        "[campaign.search.prompts]\npinned = ['everything']",
        "[campaign.search.prompts]\nmodel = 'default'",
        "[campaign.search.prompts]\nmodel = 'nobody'",
        "[campaign.search]\noperators = 'many'",
        "[[llm.models]]\nname = 'a'\nbase_url = 'http://h'\nweight = 1e-300",
        "[[llm.models]]\nname = 'a'\nbase_url = 'http://h'\nweight = true",
        "[[llm.models]]\nname = 'a'\nbase_url = 'http://h'\ncontext_tokens = '8000'",
        "[[llm.models]]\nname = 'a'\nbase_url = 'http://h'\nstream = 'no'",
        "[llm]\nasks_again = true",
        "[llm]\nasks_again = '1'",
        "[campaign]\nin_flight = true",
        "[campaign.measure]\nmax_seconds = '5'",
        "[worker]\naccept_unsandboxed = 1",
        "[campaign]\nsearch = 1",
        "[campaign.measure]\ntarget_half_width = 0",
        "[campaign.measure]\nmax_rounds = 5",
        "[campaign.measure]\nmin_rounds = 50",
        "[llm]\nbackoff_s = 90",
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


def test_the_search_section_is_the_policy_of_campaigns_and_says_who_is_asked(tmp_path: Path) -> None:
    models = "".join(
        f"[[llm.models]]\nname = '{name}'\nbase_url = 'http://h'\nweight = {weight}\n"
        for name, weight in (("a", 2), ("b", 1), ("c", 0))
    )
    plain = load_config(written(tmp_path, models))
    assert plain.campaign.policy() == SEARCH
    assert plain.model_shares() == (("a", 2.0), ("b", 1.0))
    text = "[campaign.search]\nmodels = { c = 1 }\ninspirations = 1\n[campaign.search.hints]\nlimit = 3\n" + models
    chosen = load_config(written(tmp_path, text))
    assert (chosen.campaign.policy().inspirations, chosen.campaign.policy().hints.limit) == (1, 3)
    assert chosen.model_shares() == (("c", 1.0),)


def test_the_section_of_prompts_is_the_policy_of_campaigns(tmp_path: Path) -> None:
    text = "[campaign.search.prompts]\nperiod = 10\npinned = ['analysis', 'philosophy']\nmodel = 'a'\n"
    policy = load_config(
        written(tmp_path, f"{text}[[llm.models]]\nname = 'a'\nbase_url = 'http://h'\n")
    ).campaign.policy()
    assert policy.prompts == PromptPolicy(period=10, pinned=(Region.PHILOSOPHY, Region.ANALYSIS), model="a")


def test_a_model_for_prompts_that_is_misspelt_is_refused_with_the_nearest(tmp_path: Path) -> None:
    text = "[campaign.search.prompts]\nmodel = 'larg'\n[[llm.models]]\nname = 'large'\nbase_url = 'http://h'\n"
    with pytest.raises(BadInput, match=r"campaign\.search\.prompts\.model names 'larg'") as caught:
        load_config(written(tmp_path, text))
    assert caught.value.mend == "did you mean large?"
