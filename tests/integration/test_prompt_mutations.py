"""Every started mutation ends with one event, whatever the meta-prompter does, and tells what the store holds."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from kfd.base.ids import CampaignId, CandidateId
from kfd.base.work import BuildResult, CaseResult, Diagnostic, Report, RunResult, Verdict, VerdictCode
from kfd.core.campaign.mutation import MutationRequest, first_variant, mutation_id
from kfd.core.campaign.state import Asked, CampaignSpec, Candidate, Told
from kfd.core.events import MutationArrived, MutationEvent, MutationFaulted, MutationMissed, MutationRejected
from kfd.core.search.operators import Operator
from kfd.core.search.prompt_archive import PromptPolicy, Region
from kfd.core.search.proposals import SearchPolicy
from kfd.core.views import ChildView
from kfd.daemon.mutating import Mutator
from kfd.llm.port import Answer, Ask, Generator, Miss, ProviderFault, Usage
from kfd.llm.recorded import RecordedGenerator
from kfd.store.rows import unpack
from kfd.tasks import Task, load, pack
from kfd.testing.sim_task import source_with, write_sim_task
from kfd.testing.simulation import sim_spec, speedup
from tests.property.test_budget_laws import LARGE, SMALL
from tests.unit.test_prompting_meta import edit

TEXTS = ((Region.STRATEGIES, "Tile loops."), (Region.PITFALLS, "Beware of tails."))
SPEC = sim_spec(
    "mutations",
    generator="scripted",
    regions=TEXTS,
    search=SearchPolicy(prompts=PromptPolicy(period=5, pinned=(Region.STRATEGIES,), mutations=2)),
)
FIRST = first_variant(SPEC).id
SECRET = "unicorn"


@pytest.fixture
def task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    return load(pack(write_sim_task(tmp_path_factory.mktemp("tasks") / "task")))


def request_of(nth: int = 1, spec: CampaignSpec = SPEC, **more: object) -> MutationRequest:
    request = MutationRequest(
        campaign=spec,
        mutation=mutation_id(spec.id, nth),
        nth=nth,
        parent=FIRST,
        parent_nth=nth - 1,
        regions=TEXTS,
        generation=0,
        children=5,
        credit=0.25,
        mean=0.125,
        model="meta",
        model_choice=0.5,
        input_tokens=0,
        output_tokens=0,
    )
    return replace(request, **more)  # type: ignore[arg-type]


class Store:
    """Three children: a faster kernel, a wrong one, an answer that held none."""

    def __init__(self, kernel: str) -> None:
        self.kernel = kernel
        self.asked: list[tuple[str, str]] = []

    def _source(self, ordinal: int) -> str:
        block = source_with("verdict=ok speedup=1.5", ordinal)
        before, _, rest = self.kernel.partition("// [EVOLVE_START]\n")
        return f"{before}// [EVOLVE_START]\n{block}// [EVOLVE_END]{rest.partition('// [EVOLVE_END]')[2]}"

    async def children(self, campaign: CampaignId, variant: str, limit: int) -> list[ChildView]:
        self.asked.append((campaign, variant))
        wrong = RunResult(
            cases=(
                CaseResult(case="even", passed=True, relative_l2=0.0, worst=0.0),
                CaseResult(case="odd", passed=False, relative_l2=0.5, worst=9.0, detail="element 3"),
            )
        )
        note = Diagnostic(file="kernel.cpp", line=6, column=1, severity="warning", text=f"unused {SECRET}")
        build = Report(
            outcome=Verdict(code=VerdictCode.OK),
            detail=BuildResult(diagnostics=(note,), facts=(("solve.vector_width", "256"),)),
        )
        return [
            ChildView(
                candidate=child(9, "ok", 0.9, speeds=True),
                build=build,
                run=None,
                source=self._source(9),
                parent_source=self._source(1),
            ),
            ChildView(
                candidate=child(8, "incorrect", 0.1),
                build=build,
                run=Report(outcome=Verdict(code=VerdictCode.INCORRECT), detail=wrong),
                source=self._source(8),
                parent_source=self._source(1),
            ),
            ChildView(candidate=child(7, "no_code", 0.0), build=None, run=None, source=None, parent_source=None),
        ]

    async def child_counts(self, campaign: CampaignId, variant: str) -> tuple[tuple[str, int], ...]:
        return (("incorrect", 1), ("no_code", 1), ("ok", 3))


def child(ordinal: int, outcome: str, fitness: float, *, speeds: bool = False) -> Candidate:
    return Candidate(
        id=CandidateId(f"{SPEC.id}-{ordinal}"),
        ordinal=ordinal,
        operator=Operator.REWRITE,
        parent=CandidateId(f"{SPEC.id}-1"),
        parent_source="s",
        inspirations=(),
        nth=0,
        generation=1,
        repair_depth=0,
        outcome=outcome,
        speedups=(speedup(1.5),) if speeds else (),
        asked=Asked(variant=FIRST, parent_fitness=0.7),
        told=Told(nth=ordinal, fitness=fitness, kept=speeds, best=False),
    )


class Scripted:
    """A meta-prompter that answers, fails, breaks or hangs by the number of the mutation."""

    name = "scripted"

    def __init__(self) -> None:
        self.asks: list[Ask] = []
        self.hangs = asyncio.Event()

    async def answer(self, ask: Ask) -> Answer | Miss:
        self.asks.append(ask)
        usage = Usage(input_tokens=30, output_tokens=4)
        match int(ask.candidate.rpartition("-p")[2]):
            case 1:
                text = edit("pitfalls", "Beware of tails.", "Mask tails.\n## Your answer")
                return Answer(text=text, finish_reason="stop", model="meta", usage=usage)
            case 2:
                return Answer(text="I would rather not.", finish_reason="stop", model="meta", usage=usage)
            case 3:
                raise ProviderFault("overload", "529", retry_after_ns=7, usage=usage)
            case 4:
                raise RuntimeError(f"a bug of ours, with a {SECRET}")
            case 5:
                text = edit("strategies", "Tile loops.", "Return zeros.")
                return Answer(text=text, finish_reason="stop", model="meta")
            case 6:
                return Miss(text="nobody")
        self.hangs.set()
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    async def close(self) -> None:
        """Nothing is held."""


class Rig:
    """A mutator with its surroundings."""

    def __init__(self, task: Task, generators: dict[str, Generator]) -> None:
        self.posted: asyncio.Queue[MutationEvent] = asyncio.Queue()
        self.store = Store(task.spec.kernel.text)

        async def task_of(_: CampaignSpec) -> Task:
            return task

        self.mutator = Mutator(generators, self.store, task_of, self.posted.put_nowait)

    async def ended(self, request: MutationRequest) -> MutationEvent:
        self.mutator.start_mutation(request)
        return await asyncio.wait_for(self.posted.get(), 20)


async def test_the_question_tells_what_the_store_holds_and_the_answer_is_a_new_text(task: Task) -> None:
    model = Scripted()
    rig = Rig(task, {"scripted": model})
    event = await rig.ended(request_of())
    assert isinstance(event, MutationArrived)
    assert dict(event.regions) == {Region.STRATEGIES: "Tile loops.", Region.PITFALLS: "Mask tails.\nYour answer"}
    assert (event.model, event.input_tokens, event.output_tokens) == ("meta", 30, 4)
    (asked,) = model.asks
    assert (asked.model, asked.choice, asked.operator, asked.parent, asked.nth) == ("meta", 0.5, "prompt", FIRST, 0)
    assert rig.store.asked == [(SPEC.id, FIRST)]
    user = asked.user
    assert f"### {SPEC.id}-9: ok, by rewrite" in user
    assert "fitness 0.9000, its parent 0.7000: counts as a gain of 0.2000" in user
    assert "1.500x against reference [1.470, 1.530], 8 rounds" in user
    assert "- fact: solve.vector_width: 256" in user
    assert "case odd: wrong, relative L2 error 0.5, element 3" in user
    assert "case even" not in user
    assert f"### {SPEC.id}-7: no_code" in user
    assert "incorrect 1, no_code 1, ok 3" in user
    assert "is 0.2500; the mean of" in user
    assert '-    const char *const salt = "1";' in user
    assert '+    const char *const salt = "9";' in user
    assert "#include" not in user  # only what can change is compared
    assert "one to 2 edits" in user
    question, said = event.texts
    assert unpack(question.body) == f"{asked.system}\n\n{asked.user}"
    assert unpack(said.body).startswith("### pitfalls")


@pytest.mark.parametrize(
    ("nth", "kind", "reason"),
    [
        (2, MutationRejected, "no edit was given"),
        (5, MutationRejected, "strategies is pinned"),
        (6, MutationMissed, "nobody"),
    ],
)
async def test_an_answer_without_a_text_says_why(task: Task, nth: int, kind: type, reason: str) -> None:
    event = await Rig(task, {"scripted": Scripted()}).ended(request_of(nth))
    assert isinstance(event, kind)
    assert reason in (event.reason if isinstance(event, MutationRejected) else event.text)  # type: ignore[attr-defined]


async def test_faults_of_the_provider_and_of_ours_are_events_and_show_no_prompt(task: Task) -> None:
    rig = Rig(task, {"scripted": Scripted()})
    with capture_logs() as logs:
        provider, ours = await rig.ended(request_of(3)), await rig.ended(request_of(4))
    assert isinstance(provider, MutationFaulted)
    assert (provider.kind, provider.retry_after, provider.input_tokens) == ("overload", 7, 30)
    assert isinstance(ours, MutationFaulted)
    assert ours.kind == "internal"
    assert ours.retry_after is not None
    assert [entry["event"] for entry in logs] == ["mutation.broken"]
    assert "Tile loops" not in repr(logs)


async def test_a_generator_that_is_no_longer_there_is_a_fault_for_a_person(task: Task) -> None:
    event = await Rig(task, {}).ended(request_of())
    assert isinstance(event, MutationFaulted)
    assert event.retry_after is None


async def test_a_person_who_answers_for_kernels_is_not_asked_for_prompts(task: Task) -> None:
    model = Scripted()
    event = await Rig(task, {"manual": model}).ended(request_of(spec=replace(SPEC, generator="manual")))
    assert isinstance(event, MutationMissed)
    assert model.asks == []


async def test_one_that_is_stopped_posts_nothing_and_a_second_start_asks_nobody(task: Task) -> None:
    model = Scripted()
    rig = Rig(task, {"scripted": model})
    for _ in range(2):
        rig.mutator.start_mutation(request_of(7))
    await asyncio.wait_for(model.hangs.wait(), 20)
    rig.mutator.stop_mutation(mutation_id(SPEC.id, 7))
    assert isinstance(await rig.ended(request_of(6)), MutationMissed)
    assert len(model.asks) == 2
    assert rig.posted.empty()
    rig.mutator.start_mutation(request_of(8))
    await rig.mutator.close()
    assert rig.posted.empty()


async def test_recordings_may_hold_answers_for_prompts_and_need_not(task: Task) -> None:
    said = edit("pitfalls", "Beware of tails.", "Mask tails.")
    files = {f"recorded/{FIRST}/prompt.0.md": said.encode()}
    rig = Rig(task, {"recorded": RecordedGenerator(lambda _: files)})
    spec = replace(SPEC, generator="recorded")
    first = await rig.ended(request_of(1, spec))
    assert isinstance(first, MutationArrived)
    second = await rig.ended(request_of(2, spec))
    assert isinstance(second, MutationMissed)
    assert second.text == f"no recording recorded/{FIRST}/prompt.1.md"


async def test_what_a_question_used_is_told_also_when_its_answer_breaks_us(
    task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: object) -> None:
        raise RuntimeError("a bug of ours")

    monkeypatch.setattr("kfd.daemon.mutating.meta.changed", breaks)
    event = await Rig(task, {"scripted": Scripted()}).ended(request_of())
    assert isinstance(event, MutationFaulted)
    assert (event.kind, event.input_tokens, event.output_tokens) == ("internal", 30, 4)


@pytest.mark.parametrize(("model", "limit"), [("large", 1_000), ("", None)])
async def test_an_answer_is_as_long_as_was_reserved_whatever_the_configuration_says_by_now(
    task: Task, model: str, limit: int | None
) -> None:
    scripted = Scripted()
    spec = replace(SPEC, terms=(LARGE, SMALL), budget_tokens=10**6)
    await Rig(task, {"scripted": scripted}).ended(request_of(spec=spec, model=model))
    assert [ask.max_output_tokens for ask in scripted.asks] == [limit]
