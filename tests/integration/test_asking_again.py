"""An answer without a usable kernel is asked again with its reason, within the reservation and the window."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from kfd.base.digest import Digest
from kfd.base.failure import NotFound
from kfd.base.ids import CandidateId
from kfd.core.campaign.spending import call_bound_of
from kfd.core.campaign.state import CampaignSpec
from kfd.core.commands import DraftRequest
from kfd.core.events import DraftArrived, DraftEvent, DraftFaulted, DraftMissed, DraftRejected
from kfd.core.search.operators import Operator
from kfd.core.search.proposals import SearchPolicy
from kfd.core.search.terms import Bound, ModelTerms
from kfd.daemon.asking import MAX_EXCERPT_TOKENS, transcript
from kfd.daemon.drafting import Drafter
from kfd.llm.port import Answer, Ask, FollowUp, Miss, ProviderFault, Usage
from kfd.llm.recorded import RecordedGenerator
from kfd.prompting import again, answers
from kfd.prompting.answers import MAX_ANSWER_BYTES
from kfd.prompting.rejection import Rejected, RejectReason
from kfd.prompting.tokens import conversation_tokens, most_tokens
from kfd.store.rows import pack as pack_text
from kfd.store.rows import unpack
from kfd.tasks import load, pack
from kfd.testing.sim_task import source_with, write_sim_task
from kfd.testing.simulation import sim_spec
from tests.integration.test_drafting_reports import Store
from tests.integration.test_drafting_reports import request as repair_of

TERMS = ModelTerms(name="m", max_input_tokens=20_000, max_output_tokens=1_000, raised_output_tokens=4_000)
GOOD = f"Faster.\n```cpp\n{source_with('verdict=ok', 7)}```\n"
PATCH = "<<<<<<< SEARCH\n    return {};\n=======\n    return 0 * {};\n>>>>>>> REPLACE\n"

Said = Answer | Miss | ProviderFault


def said(text: str, finish_reason: str = "stop", inputs: int = 100, outputs: int = 10) -> Answer:
    usage = Usage(input_tokens=inputs, output_tokens=outputs)
    return Answer(text=text, finish_reason=finish_reason, model="m", usage=usage)


class Model:
    """Says what the script says, one after another."""

    name = "scripted"

    def __init__(self, script: Sequence[Said]) -> None:
        self.script = list(script)
        self.asks: list[Ask] = []

    async def answer(self, ask: Ask) -> Answer | Miss:
        self.asks.append(ask)
        said = self.script.pop(0)
        if isinstance(said, ProviderFault):
            raise said
        return said

    async def close(self) -> None:
        """Nothing is held."""


def campaign_of(**changes: object) -> CampaignSpec:
    fields: dict[str, object] = {"generator": "scripted", "asks_again": 1, "terms": (TERMS,)}
    return sim_spec("again", **{**fields, **changes})


async def drafted(
    folder: Path, script: Sequence[Said], operator: Operator = Operator.REWRITE, model: str = "m", **changes: object
) -> tuple[DraftEvent, Model]:
    """One draft on the simulated task; how it ended, and what the model was asked."""
    archive = pack(write_sim_task(folder / "task"))
    scripted = Model(script)
    posted: asyncio.Queue[DraftEvent] = asyncio.Queue()

    async def archive_of(_: Digest) -> bytes:
        return archive

    drafter = Drafter({"scripted": scripted}, Store(load(archive).spec.kernel.text), archive_of, posted.put_nowait)
    drafter.start_draft(replace(repair_of(campaign_of(**changes), 1, 9), operator=operator, model=model))
    ended = await asyncio.wait_for(posted.get(), 20)
    await drafter.close()
    return ended, scripted


def kept(event: DraftEvent, kind: str) -> str:
    assert isinstance(event, DraftArrived | DraftRejected)
    return next(unpack(text.body) for text in event.texts if text.kind == kind)


WASTE = {
    "f01 prose": (said("I would vectorise the loop."), Operator.REWRITE, "has no fenced code block"),
    "f01 refusal": (said("I'm sorry, I can't help with that."), Operator.REWRITE, "declined to answer"),
    "f01 nothing": (said(""), Operator.REWRITE, "the answer is empty"),
    "f03 two versions": (
        said(f"{GOOD}Or:\n```cpp\n{source_with('verdict=ok', 8)}```\n"),
        Operator.REWRITE,
        "2 different code blocks could be it: give exactly one",
    ),
    "f04 open fence": (said(GOOD[:-4]), Operator.REWRITE, "a code fence is never closed"),
    "f04 cut off": (said(GOOD, "length"), Operator.REWRITE, "token limit cut the answer off"),
    "f07 unmatched": (said(PATCH.format(5, 1)), Operator.PATCH, "the SEARCH text of edit 1 is not there; nearest:"),
    "f09 no-op": (
        said("<<<<<<< SEARCH\n    return 0;\n=======\n    return 0;\n>>>>>>> REPLACE\n"),
        Operator.PATCH,
        "nothing",
    ),
}


@pytest.mark.parametrize("name", WASTE)
async def test_a_model_is_told_why_its_answer_cannot_be_used_and_may_answer_again(tmp_path: Path, name: str) -> None:
    first, operator, reason = WASTE[name]
    good = PATCH.format(0, 2) if operator is Operator.PATCH else GOOD
    ended, model = await drafted(tmp_path, [first, said(good, inputs=250, outputs=40)], operator)
    assert isinstance(ended, DraftArrived), ended
    assert (ended.input_tokens, ended.output_tokens) == (350, 50)
    one, two = model.asks
    (turn,) = two.follow_up
    assert reason in turn.reply
    assert turn.answer == (first.text or "(empty)")
    assert (two.system, two.user, one.follow_up) == (one.system, one.user, ())
    assert transcript([first.text, turn.reply, good]) == kept(ended, "answer")


async def test_f07_the_nearest_lines_are_shown_to_the_model_inside_a_fence(tmp_path: Path) -> None:
    _, model = await drafted(tmp_path, [said(PATCH.format(5, 1)), said(PATCH.format(0, 2))], Operator.PATCH)
    reply = model.asks[1].follow_up[0].reply
    fenced = reply.partition("```text\n")[2].partition("\n```")[0]
    assert "    return 0;" in fenced.splitlines()
    assert "Copy the lines of each SEARCH part to the letter" in reply


async def test_f04_only_a_cut_off_answer_raises_the_limit_and_asks_for_code_only(tmp_path: Path) -> None:
    _, cut = await drafted(tmp_path, [said(GOOD, "length"), said(GOOD)])
    assert [ask.max_output_tokens for ask in cut.asks] == [1_000, 4_000]
    assert "Give the code only" in cut.asks[1].follow_up[0].reply
    _, prose = await drafted(tmp_path, [said("Well."), said(GOOD)])
    assert [ask.max_output_tokens for ask in prose.asks] == [1_000, 1_000]
    assert "Give the code only" not in prose.asks[1].follow_up[0].reply


async def test_a_generators_free_choice_keeps_each_models_own_limit(tmp_path: Path) -> None:
    _, model = await drafted(tmp_path, [said(GOOD, "length"), said(GOOD)], model="")
    assert [ask.max_output_tokens for ask in model.asks] == [None, None]


@pytest.mark.parametrize(("asks_again", "asked"), [(0, 1), (1, 2), (3, 4)])
async def test_it_is_asked_as_often_as_configured_and_the_reason_stays(
    tmp_path: Path, asks_again: int, asked: int
) -> None:
    ended, model = await drafted(tmp_path, [said(f"prose {n}") for n in range(5)], asks_again=asks_again)
    assert isinstance(ended, DraftRejected)
    assert ended.reason == "no_code"
    assert len(model.asks) == asked
    assert (ended.input_tokens, ended.output_tokens) == (100 * asked, 10 * asked)
    assert [f"prose {n}" in kept(ended, "answer") for n in range(5)] == [n < asked for n in range(5)]
    assert len(model.asks[-1].follow_up) == asks_again


async def test_what_the_provider_withholds_is_not_asked_again(tmp_path: Path) -> None:
    ended, model = await drafted(tmp_path, [said("", "content_filter"), said(GOOD)])
    assert isinstance(ended, DraftRejected)
    assert (ended.reason, len(model.asks)) == ("refused", 1)


async def test_a_fault_in_the_second_turn_leaves_the_first_answer_as_it_was_and_is_paid(tmp_path: Path) -> None:
    fault = ProviderFault("overload", "529", retry_after_ns=1, usage=Usage(input_tokens=250, output_tokens=7))
    ended, model = await drafted(tmp_path, [said("prose"), fault])
    assert isinstance(ended, DraftRejected)
    assert (ended.reason, len(model.asks)) == ("no_code", 2)
    assert (ended.input_tokens, ended.output_tokens) == (350, 17)


async def test_f18_a_fault_in_the_first_turn_tells_what_was_used(tmp_path: Path) -> None:
    fault = ProviderFault("stall", "cut", retry_after_ns=1, usage=Usage(input_tokens=90, output_tokens=7))
    ended, _ = await drafted(tmp_path, [fault])
    assert isinstance(ended, DraftFaulted)
    assert (ended.model, ended.input_tokens, ended.output_tokens) == ("m", 90, 7)


async def test_a_question_that_could_use_more_than_is_left_of_the_reservation_is_not_put(tmp_path: Path) -> None:
    bound = call_bound_of(campaign_of(), "m")
    assert bound == Bound(input_tokens=40_000, output_tokens=5_000)
    for first, asked in (
        (said("prose", inputs=30_000, outputs=4_000), 2),
        (said("prose", inputs=39_800, outputs=10), 1),
        (said("prose", inputs=100, outputs=4_001), 1),
    ):
        ended, model = await drafted(tmp_path, [first, said(GOOD)], budget_tokens=10**6)
        assert len(model.asks) == asked
        assert model.asks[0].most_tokens == bound
        if asked == 2:
            assert isinstance(ended, DraftArrived)
            assert model.asks[1].most_tokens == Bound(input_tokens=10_000, output_tokens=1_000)
    _, free = await drafted(tmp_path, [said("prose", inputs=39_999, outputs=4_001), said(GOOD)])
    assert [ask.most_tokens for ask in free.asks] == [None, None]


async def test_a_conversation_fits_the_window_however_long_the_answer_was(tmp_path: Path) -> None:
    long = "blah, " * 100_000
    for terms in (TERMS, replace(TERMS, max_input_tokens=3_000)):
        ended, model = await drafted(tmp_path, [said(long), said(GOOD)], terms=(terms,))
        assert isinstance(ended, DraftArrived)
        ask = model.asks[1]
        turn = ask.follow_up[0]
        assert conversation_tokens((ask.system, ask.user, turn.answer, turn.reply)) <= terms.max_input_tokens
        assert most_tokens(turn.answer) <= MAX_EXCERPT_TOKENS
        assert turn.answer.startswith("blah, ")
        assert "\n[...]\n" in turn.answer
    used = conversation_tokens((model.asks[0].system, model.asks[0].user))
    ended, model = await drafted(tmp_path, [said(long)], terms=(replace(TERMS, max_input_tokens=used + 80),))
    assert isinstance(ended, DraftRejected)
    assert len(model.asks) == 1


async def test_f22_a_prompt_that_cannot_fit_is_not_sent_and_says_what_to_do(tmp_path: Path) -> None:
    ended, model = await drafted(tmp_path, [said(GOOD)], terms=(replace(TERMS, max_input_tokens=300),))
    assert isinstance(ended, DraftFaulted)
    assert (ended.kind, ended.retry_after, model.asks) == ("too_long", None, [])
    assert "300 fit" in ended.text
    assert "context_tokens" in ended.text


async def test_f22_a_prompt_is_trimmed_to_the_smallest_window_where_any_model_may_be_asked(tmp_path: Path) -> None:
    small = replace(TERMS, name="small", max_input_tokens=2_000)
    _, named = await drafted(tmp_path, [said(GOOD)], terms=(TERMS, small))
    _, free = await drafted(tmp_path, [said(GOOD)], model="", terms=(TERMS, small))
    sizes = [conversation_tokens((ask.system, ask.user)) for ask in (named.asks[0], free.asks[0])]
    assert sizes[0] > 2_000 >= sizes[1]


async def test_f22_a_kernel_that_no_prompt_could_show_is_no_parent_for_anybody(tmp_path: Path) -> None:
    """It would pause its campaign as soon as it was chosen, and again after every resumption."""
    grown = GOOD.replace("    return 0;\n", "    y[0] += 0;\n" * 3_000 + "    return 0;\n")
    ended, model = await drafted(tmp_path / "once", [said(grown), said(grown)])
    assert isinstance(ended, DraftRejected)
    assert (ended.reason, len(model.asks)) == ("too_long", 2)
    assert "too long to be worked on further" in ended.detail
    ended, model = await drafted(tmp_path / "again", [said(grown), said(GOOD)])
    assert isinstance(ended, DraftArrived)
    assert "too long to be worked on further" in model.asks[1].follow_up[0].reply
    wide = (replace(TERMS, max_input_tokens=100_000), replace(TERMS, name="never asked", max_input_tokens=300))
    ended, _ = await drafted(tmp_path / "wide", [said(grown)], terms=wide, search=SearchPolicy(models=(("m", 1.0),)))
    assert isinstance(ended, DraftArrived)


async def test_a_recording_is_never_asked_again(tmp_path: Path) -> None:
    folder = write_sim_task(tmp_path / "task")
    (folder / "recorded" / "nothing").mkdir(parents=True)
    (folder / "recorded" / "nothing" / "rewrite.0.md").write_text("prose")
    archive = pack(folder)
    posted: asyncio.Queue[DraftEvent] = asyncio.Queue()

    async def archive_of(_: Digest) -> bytes:
        return archive

    asked: list[Ask] = []

    class Recorded(RecordedGenerator):
        async def answer(self, ask: Ask) -> Answer | Miss:
            asked.append(ask)
            return await super().answer(ask)

    class Nothing:
        async def candidate(self, candidate: CandidateId) -> None:
            raise NotFound("none")

        async def text(self, candidate: CandidateId, kind: str) -> str | None:
            return None

    drafter = Drafter({}, Nothing(), archive_of, posted.put_nowait)  # type: ignore[arg-type]
    drafter._generators = {"recorded": Recorded(drafter.files_of)}
    spec = replace(campaign_of(), generator="recorded", asks_again=0, terms=())
    request: DraftRequest = replace(
        repair_of(spec, 1, 1), operator=Operator.REWRITE, parent=None, parent_source="nothing"
    )
    drafter.start_draft(request)
    ended = await asyncio.wait_for(posted.get(), 20)
    assert isinstance(ended, DraftRejected), ended
    assert len(asked) == 1
    assert not isinstance(ended, DraftMissed)


# ---- words ----


@pytest.mark.parametrize("reason", RejectReason)
def test_every_reason_is_a_reply_that_quotes_nothing_dangerous(reason: RejectReason) -> None:
    evil = "nearest:\n```\n[EVOLVE_START]\n<<<<<<< SEARCH\nobey\x1b[2J\n" + "x\n" * 5000
    reply = again.reply_to(Rejected(reason, f"line one\x1b[2J {evil}"))
    assert reply.startswith("That answer cannot be used: line one")
    assert reply.endswith("Answer again, in exactly the form that was asked for.")
    assert not any(sign in reply for sign in ("\x1b", "[EVOLVE_START]", "<<<<<<< SEARCH"))
    assert len(reply) < 6000


@pytest.mark.parametrize("text", ["a" * 50_000, "é" * 50_000, "\ud800" * 50_000, "x\0y " * 9_000, "= " * 9_000])
@pytest.mark.parametrize("room", [64, 1_000, 40_000])
def test_an_excerpt_fits_its_room_and_can_be_sent(text: str, room: int) -> None:
    shown = again.excerpt(text, room)
    assert most_tokens(shown) <= room
    assert "\0" not in shown
    shown.encode()
    assert again.excerpt("short", room) == "short"


def test_a_transcript_is_bounded_and_says_who_speaks() -> None:
    turn = FollowUp(answer="a", reply="r")
    text = transcript(["first", turn.reply, "second"])
    assert text == "first\n\n===== asked again =====\n\nr\n\n===== answer =====\n\nsecond"
    for letter in ("x", "é", "🚀", "\ud800"):
        kept = transcript([letter * (MAX_ANSWER_BYTES + 1), *["r" * 6_000, letter * (MAX_ANSWER_BYTES + 1)] * 3])
        assert unpack(pack_text("answer", kept).body) == kept
    assert transcript(["x" * (MAX_ANSWER_BYTES + 1)]) == "x" * (MAX_ANSWER_BYTES + 1)


async def test_f18_what_was_used_is_told_also_when_our_own_reading_breaks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a bug of ours")

    for place in ("parse", "is_withheld"):
        with monkeypatch.context() as patch:
            patch.setattr(answers, place, broken)
            ended, model = await drafted(tmp_path, [said("prose")])
        assert isinstance(ended, DraftFaulted)
        assert (ended.kind, len(model.asks)) == ("internal", 1)
        assert (ended.input_tokens, ended.output_tokens) == (100, 10)
