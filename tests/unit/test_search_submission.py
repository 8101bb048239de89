"""What a submitted campaign's search is: the configured one, the models asked for, only what can be answered."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kfd.api.v1 import control_pb2
from kfd.base.codec import decode, encode
from kfd.base.failure import CallerError
from kfd.base.ids import candidate_id
from kfd.base.work import CHECKED_ONLY, MeasurementPlan, RunResult, Verdict, VerdictCode
from kfd.core.campaign.judging import judged
from kfd.core.campaign.state import Asked, CampaignSpec, Candidate
from kfd.core.search.operators import Operator, OperatorPolicy
from kfd.core.search.prompt_archive import PromptPolicy
from kfd.core.search.proposals import ANY_MODEL, SearchPolicy
from kfd.daemon.config import SEARCH
from kfd.prompting.regions import first_regions
from kfd.prompting.render import OPERATORS, PromptRequest, prompt
from kfd.rpc.submission import Defaults, spec_of
from kfd.tasks import load, pack
from kfd.tasks.spec import TaskSpec
from kfd.testing.sim_task import write_sim_task
from tests.unit.test_prompting_render import SPEC as RENDERED
from tests.unit.test_prompting_render import exemplar

DEFAULTS = Defaults(
    generators=("openai", "recorded", "manual"),
    models=("large", "small", "named"),
    shares=(("large", 3.0), ("small", 1.0)),
    in_flight=2,
    plan=MeasurementPlan(),
    search=SEARCH,
)


@pytest.fixture
def task(tmp_path: Path) -> TaskSpec:
    return replace(load(pack(write_sim_task(tmp_path / "task"))).spec, has_recordings=True)


def search_of(task: TaskSpec, search: SearchPolicy = SEARCH, **options: object) -> SearchPolicy:
    asked = control_pb2.CampaignOptions(**options)  # type: ignore[arg-type]
    defaults = replace(DEFAULTS, search=search)
    return spec_of(task, asked, defaults, key="k", token=bytes(range(48)), submitted_at="t").search


def test_models_are_those_asked_for_else_the_configured_ones(task: TaskSpec) -> None:
    assert search_of(task, generator="openai").models == (("large", 3.0), ("small", 1.0))
    assert search_of(task, generator="openai", models=["named"]).models == (("named", 1.0),)
    assert search_of(task, generator="openai", models=["large", "named", "large"]).models == (
        ("large", 1.0),
        ("named", 1.0),
    )
    assert search_of(task, generator="manual").models == ((ANY_MODEL, 1.0),)
    with pytest.raises(CallerError, match="lage"):
        search_of(task, generator="openai", models=["lage"])


def test_a_recorded_campaign_asks_only_what_can_be_recorded(task: TaskSpec) -> None:
    everything = replace(SEARCH, operators=OperatorPolicy(crossover=2.0, template_every=5, simplify_every=5))
    recorded = search_of(task, everything, generator="recorded").operators
    assert (recorded.crossover, recorded.template_every, recorded.simplify_every) == (0.0, 0, 0)
    assert (recorded.rewrite, recorded.patch) == (everything.operators.rewrite, everything.operators.patch)
    assert search_of(task, everything, generator="openai").operators == everything.operators
    for depth, expected in ((0, 1), (3, 3)):
        deep = replace(SEARCH, operators=OperatorPolicy(repair_depth=depth))
        assert search_of(task, deep, generator="recorded").operators.repair_depth == expected
    only = replace(SEARCH, operators=OperatorPolicy(rewrite=0.0, patch=0.0, crossover=1.0))
    assert search_of(task, only, generator="recorded").operators.rewrite == 1.0


def test_a_campaign_keeps_the_advice_of_its_own_kernels_form() -> None:
    folder = Path(__file__).parents[2] / "tasks"
    for name, toolchain, device_form in (("softmax_rows", "cpp", False), ("softmax_cuda", "cuda", True)):
        spec = spec_of(
            load(pack(folder / name)).spec,
            control_pb2.CampaignOptions(generator="openai"),
            DEFAULTS,
            key="k",
            token=bytes(range(48)),
            submitted_at="t",
        )
        assert dict(spec.regions) == first_regions(toolchain, device_form=device_form)
        assert decode(CampaignSpec, encode(spec)) == spec


def test_a_model_for_prompts_is_asked_only_where_models_are(task: TaskSpec) -> None:
    policy = replace(SEARCH, prompts=PromptPolicy(period=10, model="large"))
    assert search_of(task, policy, generator="openai").prompts == policy.prompts
    for other in ("recorded", "manual"):
        assert search_of(task, policy, generator=other).prompts == PromptPolicy(period=10)


@pytest.mark.parametrize("operator", ["crossover", "template", "simplify"])
def test_every_operator_of_the_search_has_a_prompt(operator: str) -> None:
    assert operator in OPERATORS
    text = prompt(PromptRequest(spec=RENDERED, operator=operator, parent=exemplar())).user
    said = {"crossover": "Make one kernel of several", "template": "[TUNE]", "simplify": "Make it shorter"}
    assert said[operator] in text
    assert "the complete new contents of the EVOLVE block" in text
    with pytest.raises(ValueError, match="needs a parent"):
        prompt(PromptRequest(spec=RENDERED, operator=operator))


def test_the_hints_of_a_candidate_are_the_words_of_its_prompt() -> None:
    asked = Asked(hints=((0, 1), (1, 1), (2, -1)), parent_cell=(1, 0, 2))
    assert len(set(asked.words)) == 3
    text = prompt(PromptRequest(spec=RENDERED, operator="rewrite", parent=exemplar(), hints=asked.words)).user
    part = text.partition("## Hints from the search")[2].partition("## ")[0]
    assert [line.removeprefix("- ") for line in part.splitlines() if line.startswith("- ")] == list(asked.words)
    with pytest.raises(ValueError, match="leaves the grid"):
        _ = Asked(hints=((0, 1),), parent_cell=(3, 0, 0)).words


def test_a_target_that_never_times_is_for_validation_only(task: TaskSpec) -> None:
    checked = replace(task, targets=(CHECKED_ONLY,))
    with pytest.raises(CallerError, match="never times them") as refused:
        search_of(checked, generator="recorded")
    assert "kfd-client validate" in refused.value.mend
    asked = control_pb2.CampaignOptions(validate_only=True)
    spec = spec_of(checked, asked, DEFAULTS, key="k", token=bytes(range(48)), submitted_at="t")
    assert spec.validate_only
    candidate = Candidate(
        id=candidate_id(spec.id, 0),
        ordinal=0,
        operator=Operator.INITIAL,
        parent=None,
        parent_source="",
        inspirations=(),
        nth=0,
        generation=0,
        repair_depth=0,
    )
    right, speed = judged(spec, candidate, Verdict(code=VerdictCode.OK), RunResult())
    assert (right.outcome, right.fitness, speed) == ("ok", None, None)
