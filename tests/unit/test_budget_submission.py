"""Budgets before a campaign begins: what is kept of the configuration, and what is refused with what to do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError

from kfd.api.v1 import control_pb2
from kfd.base.failure import CallerError
from kfd.base.instant import MINUTE
from kfd.base.money import money_text
from kfd.core.campaign.learning import price_of
from kfd.core.campaign.spending import call_bound_of
from kfd.core.campaign.state import CampaignRecord, CampaignSpec, CampaignState
from kfd.core.search.budgets import Amount
from kfd.core.search.terms import Bound, terms_of
from kfd.core.views import CampaignView
from kfd.llm.config import ModelConfig
from kfd.llm.terms import terms_from
from kfd.prompting.tokens import MAX_PROMPT_TOKENS
from kfd.rpc.submission import Defaults, spec_of
from kfd.rpc.translate import campaign_to_pb
from kfd.tasks import load, pack
from kfd.tasks.spec import TaskSpec
from kfd.testing.sim_task import write_sim_task
from kfd.testing.simulation import sim_spec
from tests.unit.test_search_submission import DEFAULTS


def model(name: str, **keys: object) -> ModelConfig:
    return ModelConfig.model_validate({"name": name, "base_url": "http://h", **keys})


PRICED = model("large", input_price=3, output_price=15, context_tokens=100_000, max_tokens=8_000)
CHEAP = model("small", input_price=0.1499999, output_price=0, max_tokens=1_000, max_tokens_ceiling=4_000)
UNPRICED = model("named", max_tokens=2_000)


def defaults_of(*models: ModelConfig, asks_again: int = 1) -> Defaults:
    return replace(
        DEFAULTS,
        models=tuple(one.name for one in models),
        shares=tuple((one.name, 1.0) for one in models),
        terms=tuple(terms_from(one) for one in models),
        asks_again=asks_again,
    )


@pytest.fixture
def task(tmp_path: Path) -> TaskSpec:
    return replace(load(pack(write_sim_task(tmp_path / "task"))).spec, has_recordings=True)


def submitted(task: TaskSpec, defaults: Defaults, **options: object) -> CampaignSpec:
    asked = control_pb2.CampaignOptions(**{"generator": "openai", **options})  # type: ignore[arg-type]
    return spec_of(task, asked, defaults, key="k", token=bytes(range(48)), submitted_at="t")


def test_a_campaign_keeps_the_terms_of_the_models_that_it_may_ask_and_its_budgets(task: TaskSpec) -> None:
    defaults = defaults_of(PRICED, CHEAP, UNPRICED, asks_again=2)
    spec = submitted(task, defaults, models=["small"], budget_micro_money=5_000_000, budget_tokens=2_000_000)
    (kept,) = spec.terms
    assert (kept.name, kept.price, spec.asks_again) == ("small", (149_999 + 1, 0), 2)  # rounded up
    assert (spec.budget_micro_money, spec.budget_tokens, spec.budget_device_ns) == (5_000_000, 2_000_000, None)
    assert [one.name for one in submitted(task, defaults).terms] == ["large", "small", "named"]
    recorded = submitted(task, defaults, generator="recorded")
    assert (recorded.terms, recorded.asks_again) == ((), 0)


def test_a_window_bounds_prompts_and_an_unknown_one_leaves_our_own_bound() -> None:
    assert terms_from(PRICED).max_input_tokens == 92_000
    assert terms_from(CHEAP).max_input_tokens == MAX_PROMPT_TOKENS
    assert terms_from(model("m", context_tokens=10_000_000)).max_input_tokens == MAX_PROMPT_TOKENS


def test_a_draft_is_bounded_with_all_that_it_may_ask_and_any_model_by_the_worst() -> None:
    spec = sim_spec(terms=(terms_from(PRICED), terms_from(CHEAP)), asks_again=1)
    most = MAX_PROMPT_TOKENS
    assert call_bound_of(spec, "large") == Bound(input_tokens=2 * 92_000, output_tokens=2 * 8_000)
    assert call_bound_of(spec, "small") == Bound(input_tokens=2 * most, output_tokens=1_000 + 4_000)
    assert call_bound_of(spec, "") == Bound(input_tokens=2 * 92_000, output_tokens=2 * 8_000)
    any_model = terms_of(spec.terms, "")
    assert any_model is not None
    assert any_model.price == (3_000_000, 15_000_000)
    assert call_bound_of(sim_spec(), "") == Bound(input_tokens=0, output_tokens=0)


@pytest.mark.parametrize(
    ("options", "text", "mend"),
    [
        ({"budget_micro_money": 5_000_000}, "the model named has no price", "input_price and output_price of named"),
        ({"budget_micro_money": 0}, "--budget-money is above 0", "another --budget-money"),
        ({"budget_micro_money": 10**16}, "at most 1000000000.00", "another --budget-money"),
        ({"budget_tokens": 0}, "--budget-tokens is above 0", "another"),
        ({"budget_tokens": 10**14}, "at most 10000000000000", "another"),
        ({"budget_device_ns": 0}, "--budget-device is above 0", "another"),
        ({"budget_device_ns": 1 << 62}, "--budget-device is above 0 and at most", "another"),
        ({"budget_device_ns": 7 * MINUTE}, "8 runs of up to 1 m 00 s", "--budget-device 8 m 00 s or more"),
        (
            {"budget_tokens": 150_000, "models": ["large"]},
            "up to 200000 tokens, and 150000 are given",
            "context_tokens",
        ),
        (
            {"budget_micro_money": 700_000, "models": ["large"]},
            "one candidate of large may cost up to 0.792, and 0.70 are given",
            "asks_again",
        ),
        ({"budget_tokens": 10**6, "models": ["endless"]}, "answers of endless have no limit", "max_tokens_name"),
        ({"budget_tokens": 10**6, "generator": "recorded"}, "recorded cost no money and no tokens", "leave out"),
        ({"budget_tokens": 10**6, "validate_only": True}, "a validation asks nothing", "leave out --budget-tokens"),
    ],
)
def test_a_budget_that_cannot_hold_is_refused_with_what_to_do(
    task: TaskSpec, options: dict[str, object], text: str, mend: str
) -> None:
    defaults = defaults_of(PRICED, CHEAP, UNPRICED, model("endless", max_tokens_name="none"))
    with pytest.raises(CallerError) as refused:
        submitted(task, defaults, **options)
    assert text in str(refused.value)
    assert mend in refused.value.mend


def test_a_budget_of_tokens_or_devices_needs_no_price(task: TaskSpec) -> None:
    defaults = defaults_of(UNPRICED)
    assert submitted(task, defaults, budget_tokens=10**6).budget_tokens == 10**6
    assert submitted(task, defaults, generator="recorded", budget_device_ns=8 * MINUTE).budget_device_ns == 8 * MINUTE


def test_a_budget_whose_models_are_not_known_is_refused(task: TaskSpec) -> None:
    with pytest.raises(CallerError, match="terms of large are not known"):
        submitted(task, DEFAULTS, models=["large"], budget_tokens=10**6)
    with pytest.raises(CallerError, match="terms of the models are not known"):
        submitted(task, replace(DEFAULTS, models=(), shares=()), budget_tokens=10**6)


def test_the_bandit_counts_real_prices_where_they_are_known() -> None:
    spec = sim_spec(terms=(terms_from(PRICED), terms_from(UNPRICED)))
    assert price_of(spec, "large", 1_000_000, 1_000_000) == pytest.approx(18.0)
    assert price_of(spec, "named", 1_000_000, 1_000_000) == pytest.approx(5.0)
    assert price_of(sim_spec(), "manual", 1_000_000, 0) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"input_price": -1, "output_price": 1}, "input_price"),
        ({"input_price": float("nan"), "output_price": 1}, "input_price"),
        ({"output_price": 1}, "give input_price and output_price, or neither"),
        ({"context_tokens": 4_096, "max_tokens": 4_096}, "leaves no room for a prompt"),
        ({"context_tokens": 8_192, "max_tokens": 4_096, "max_tokens_ceiling": 8_192}, "leaves no room"),
        ({"max_tokens": 4_096, "max_tokens_ceiling": 2_048}, "max_tokens_ceiling is not below max_tokens"),
        ({"extra": {"n": 4}}, "extra may not hold n"),
    ],
)
def test_terms_that_cannot_be_are_refused(keys: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        model("m", **keys)


def test_money_is_shown_exactly_and_where_no_price_is_known_not_at_all() -> None:
    assert [money_text(value) for value in (0, 1, 250_000, 5_000_000, 1_234_567)] == [
        "0.00", "0.000001", "0.25", "5.00", "1.234567",
    ]  # fmt: skip
    spec = sim_spec(terms=(terms_from(PRICED), terms_from(UNPRICED)), budget_micro_money=5_000_000)
    view = CampaignView(
        spec=spec,
        record=CampaignRecord(id=spec.id, state=CampaignState.RUNNING),
        outcomes=(),
        cells=0,
        best=None,
        has_initial=False,
        admission=None,
        input_tokens=0,
        output_tokens=0,
        spent=Amount(micro_money=7, tokens=8, device_ns=9),
        last_seq=0,
    )
    money, tokens, device = campaign_to_pb(view, reserved=Amount(micro_money=1, tokens=2, device_ns=3)).budgets
    assert (money.name, money.spent, money.reserved, money.limit) == ("money", 7, 1, 5_000_000)
    assert money.note == "without named, of unknown price"
    assert (tokens.spent, tokens.reserved, tokens.HasField("limit")) == (8, 2, False)
    assert (device.spent, device.reserved, device.HasField("limit")) == (9, 3, False)
    free = replace(view, spec=replace(spec, terms=(terms_from(UNPRICED),), budget_micro_money=None))
    assert [one.name for one in campaign_to_pb(free).budgets] == ["tokens", "device"]
