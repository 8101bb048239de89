"""Recordings, people, keys and configuration."""

from __future__ import annotations

import asyncio
import pickle
from pathlib import Path

import pytest
from pydantic import ValidationError

from kfd.base.failure import BadInput, CallerError, NotFound, WrongState
from kfd.base.ids import CampaignId, CandidateId
from kfd.llm.config import LlmConfig, ModelConfig
from kfd.llm.manual import MAX_TOLD_BYTES, ManualDesk
from kfd.llm.port import Answer, Ask, Miss
from kfd.llm.recorded import RecordedGenerator
from kfd.llm.secret import Secret, mask, read_key

PARENT = "0123456789abcdef" * 4


def ask(candidate: str = "c1-1", parent: str = PARENT, operator: str = "rewrite", nth: int = 0, model: str = "") -> Ask:
    return Ask(
        campaign=CampaignId("c1"),
        candidate=CandidateId(candidate),
        operator=operator,
        parent=parent,
        nth=nth,
        system="s",
        user="u",
        model=model,
        choice=0.0,
    )


async def test_a_recording_is_found_by_parent_operator_and_count_and_a_miss_is_an_event() -> None:
    files = {
        "recorded/0123456789ab/rewrite.0.md": b"first",
        "recorded/0123456789ab/patch.2.md": b"third",
        "recorded/nothing/rewrite.0.md": b"\xffseed",
    }
    generator = RecordedGenerator(lambda campaign: files if campaign == "c1" else {})
    assert await generator.answer(ask()) == Answer(text="first", finish_reason="stop", model="recorded")
    assert await generator.answer(ask(operator="patch", nth=2)) == Answer(
        text="third", finish_reason="stop", model="recorded"
    )
    seed = await generator.answer(ask(parent="nothing"))
    assert isinstance(seed, Answer)
    assert seed.text == "\ufffdseed"
    for question in (ask(nth=1), ask(operator="repair"), ask(parent="f" * 64)):
        missed = await generator.answer(question)
        assert isinstance(missed, Miss)
        assert f"{question.operator}.{question.nth}.md" in missed.text


async def test_what_is_told_answers_the_pending_question_and_nothing_else() -> None:
    desk = ManualDesk()
    first, second = (asyncio.create_task(desk.answer(ask(name))) for name in ("c1-1", "c1-2"))
    await asyncio.sleep(0)
    assert [pending.candidate for pending in desk.ask(CampaignId("c1"))] == ["c1-1", "c1-2"]
    assert desk.ask(CampaignId("c2")) == []
    desk.tell(CandidateId("c1-2"), "hello", "alice")
    with pytest.raises(WrongState):
        desk.tell(CandidateId("c1-2"), "again")
    assert [pending.candidate for pending in desk.ask(CampaignId("c1"))] == ["c1-1"]
    assert await second == Answer(text="hello", finish_reason="stop", model="alice")
    with pytest.raises(NotFound):
        desk.tell(CandidateId("c1-2"), "late")
    with pytest.raises(BadInput):
        desk.tell(CandidateId("c1-1"), "x" * (MAX_TOLD_BYTES + 1))
    for name in ("m" * 101, "a\nb", "\x1b[31m", "\ud800"):
        with pytest.raises(BadInput, match="model's name"):
            desk.tell(CandidateId("c1-1"), "hello", name)
    first.cancel()
    await asyncio.wait([first])
    assert first.cancelled()
    assert desk.ask(CampaignId("c1")) == []


async def test_one_candidate_is_asked_about_once_at_a_time_and_may_be_asked_again_after_cancelling() -> None:
    desk = ManualDesk()
    task = asyncio.create_task(desk.answer(ask()))
    await asyncio.sleep(0)
    with pytest.raises(WrongState):
        await desk.answer(ask())
    task.cancel()
    await asyncio.wait([task])
    again = asyncio.create_task(desk.answer(ask()))
    await asyncio.sleep(0)
    await desk.close()
    await asyncio.wait([again])
    assert again.cancelled()


def test_a_key_comes_from_a_private_file_or_the_environment_or_is_refused_with_what_to_type(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("sk-secret-123\n")
    file.chmod(0o644)
    with pytest.raises(CallerError, match="read by others") as caught:
        read_key("m", file, None, {})
    assert f"chmod 600 {file}" in caught.value.mend
    file.chmod(0o600)
    key = read_key("m", file, None, {})
    assert key is not None
    assert key.reveal() == "sk-secret-123"
    assert read_key("m", None, None, {"OPENAI_API_KEY": "x"}) is None
    with pytest.raises(CallerError, match="MY_KEY is not set"):
        read_key("m", None, "MY_KEY", {})
    with pytest.raises(CallerError, match="cannot be read"):
        read_key("m", tmp_path / "nothing", None, {})


def test_a_secret_shows_itself_nowhere() -> None:
    secret = Secret("hunter2hunter2")
    assert "hunter2" not in f"{secret} {secret!r} {[secret]}"
    with pytest.raises(TypeError):
        pickle.dumps(secret)
    text = mask("bad key hunter2hunter2, sk-abcdefgh1234, Bearer abcdefgh12345\x1b[31m", (secret,))
    for leak in ("hunter2", "sk-abcdefgh", "abcdefgh12345", "\x1b"):
        assert leak not in text


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": "m", "base_url": "ftp://x"}, "base_url"),
        ({"name": "m", "base_url": "http://x", "temprature": 1}, "temprature"),
        ({"name": "m", "base_url": "http://x", "key_file": "a", "key_env": "B"}, "not both"),
        ({"name": "m", "base_url": "http://x", "extra": {"stream": False}}, "extra may not hold stream"),
        ({"name": "m", "base_url": "http://x", "weight": -1}, "weight"),
    ],
)
def test_a_wrong_model_is_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ModelConfig.model_validate(fields)


def test_models_have_different_names_and_some_weight() -> None:
    one = ModelConfig(name="m", base_url="http://x")
    with pytest.raises(ValidationError, match="twice"):
        LlmConfig(models=(one, one))
    with pytest.raises(ValidationError, match="weight 0"):
        LlmConfig(models=(ModelConfig(name="m", base_url="http://x", weight=0),))
