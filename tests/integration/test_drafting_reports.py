"""Reports of users of other systems about prompts and logs, held against the drafter with a scripted model."""

from __future__ import annotations

import asyncio
import traceback
from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from kfd.base.digest import Digest
from kfd.base.ids import CampaignId, CandidateId, ordinal_of
from kfd.base.work import BuildResult, Diagnostic, Report, Verdict, VerdictCode
from kfd.core.campaign.state import CampaignSpec, Candidate
from kfd.core.commands import DraftRequest
from kfd.core.events import DraftEvent, DraftFaulted, DraftRejected
from kfd.core.search.operators import Operator
from kfd.core.views import CandidateView
from kfd.daemon import exemplars
from kfd.daemon.drafting import Drafter
from kfd.llm.config import ModelConfig
from kfd.llm.port import Answer, Ask, Miss, ProviderFault
from kfd.tasks import load, pack
from kfd.testing.scripted_server import ScriptedServer, answer
from kfd.testing.sim_task import write_sim_task
from kfd.testing.simulation import sim_spec
from tests.integration.test_llm_openai import Clock, ask, generator

NOTES = "Relieve the unicorn unit."


class Store:
    """Failed candidates, each with a message of its own."""

    def __init__(self, kernel: str) -> None:
        self.kernel = kernel

    async def candidate(self, candidate: CandidateId) -> CandidateView:
        number = ordinal_of(candidate)
        message = Diagnostic(file="kernel.cpp", line=6, column=1, severity="error", text=f"message of {number}.")
        return CandidateView(
            candidate=Candidate(
                id=candidate,
                ordinal=number,
                operator=Operator.REWRITE,
                parent=None,
                parent_source="nothing",
                inspirations=(),
                nth=0,
                generation=1,
                repair_depth=0,
                outcome="compile_error",
            ),
            campaign=CampaignId("c"),
            elite=False,
            report=Report(outcome=Verdict(code=VerdictCode.COMPILE_ERROR), detail=BuildResult(diagnostics=(message,))),
            attempts=1,
        )

    async def text(self, candidate: CandidateId, kind: str) -> str | None:
        return self.kernel.replace("x[i] + 1.0f", f"x[i] + {ordinal_of(candidate)}.0f + ")


class Scripted:
    """A model that answers prose, fails, or breaks, by the number of the asked candidate."""

    name = "scripted"

    def __init__(self) -> None:
        self.asks: list[Ask] = []

    async def answer(self, ask: Ask) -> Answer | Miss:
        self.asks.append(ask)
        match ordinal_of(ask.candidate) % 3:
            case 1:
                raise ProviderFault("overload", "529", retry_after_ns=1)
            case 2:
                raise RuntimeError("a bug of ours")
        return Answer(text="I would rather talk about it.", finish_reason="stop", model="scripted")

    async def close(self) -> None:
        """Nothing is held."""


async def drafts(folder: Path, parents: list[int], children: list[int]) -> tuple[list[Ask], list[DraftEvent]]:
    """Ask for repairs of these parents; what the model was asked and how it ended."""
    task = write_sim_task(folder / "task")
    kernel = (task / "kernel.cpp").read_text(encoding="utf-8")
    notes = f"// [USER_INSTRUCTIONS_START]\n// {NOTES}\n// [USER_INSTRUCTIONS_END]\n"
    (task / "kernel.cpp").write_text(notes + kernel, encoding="utf-8")
    archive = pack(task)
    model = Scripted()
    posted: asyncio.Queue[DraftEvent] = asyncio.Queue()
    ended: list[DraftEvent] = []

    async def archive_of(_: Digest) -> bytes:
        return archive

    drafter = Drafter({"scripted": model}, Store(load(archive).spec.kernel.text), archive_of, posted.put_nowait)
    campaign = replace(sim_spec("reports"), generator="scripted")
    for parent, child in zip(parents, children, strict=True):
        drafter.start_draft(request(campaign, parent, child))
        ended.append(await posted.get())
    await drafter.close()
    return model.asks, ended


def request(campaign: CampaignSpec, parent: int, child: int) -> DraftRequest:
    return DraftRequest(
        campaign=campaign,
        candidate=CandidateId(f"{campaign.id}-{child}"),
        ordinal=child,
        operator=Operator.REPAIR,
        parent=CandidateId(f"{campaign.id}-{parent}"),
        parent_source=f"s{parent}",
        nth=0,
        inspirations=(),
        best=None,
        algorithm=0,
        hints=(),
        values=(),
        model="",
        model_choice=0.5,
    )


class Silent(Scripted):
    """A model that never answers."""

    async def answer(self, ask: Ask) -> Answer | Miss:
        self.asks.append(ask)
        await asyncio.Event().wait()
        raise AssertionError("nobody sets the event")


async def test_a_draft_that_is_stopped_and_started_at_once_is_still_known(tmp_path: Path) -> None:
    archive = pack(write_sim_task(tmp_path / "task"))
    ended: list[DraftEvent] = []

    async def archive_of(_: Digest) -> bytes:
        return archive

    drafter = Drafter({"scripted": Silent()}, Store(load(archive).spec.kernel.text), archive_of, ended.append)
    one = request(replace(sim_spec("stopped"), generator="scripted"), 1, 2)
    drafter.start_draft(one)
    await asyncio.sleep(0)
    drafter.stop_draft(one.candidate)
    drafter.start_draft(one)
    for _ in range(20):
        await asyncio.sleep(0)
    assert drafter.running == 1  # else it could not be stopped, and would go on spending
    drafter.stop_draft(one.candidate)
    assert (drafter.running, ended) == (0, [])
    await drafter.close()


async def test_d21_every_parent_comes_with_its_own_messages_however_many_there_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exemplars, "CACHED", 8)
    parents = [*range(1, 121), 1]
    asks, ended = await drafts(tmp_path, parents, [3 * n for n in range(200, 200 + len(parents))])
    assert len(asks) == len(ended) == 121
    for parent, asked in zip(parents, asks, strict=True):
        assert f"message of {parent}." in asked.user
        assert asked.user.count("message of ") == 1
        assert f"x[i] + {parent}.0f" in asked.user


async def test_f01_prose_is_rejected_and_nothing_is_built(tmp_path: Path) -> None:
    _, (ended,) = await drafts(tmp_path, [1], [3])
    assert isinstance(ended, DraftRejected)
    assert ended.reason == "no_code"
    assert {text.kind for text in ended.texts} == {"prompt", "answer"}


async def test_f23_no_prompt_and_no_answer_is_logged_whatever_happens(tmp_path: Path) -> None:
    with capture_logs() as entries:
        asks, ended = await drafts(tmp_path, [1, 2, 3], [3, 4, 5])
    assert [type(event) for event in ended] == [DraftRejected, DraftFaulted, DraftFaulted]
    assert [entry["event"] for entry in entries] == ["draft.broken"]
    logged = repr(entries) + "".join(traceback.format_exception(entries[0]["exc_info"]))
    assert all(NOTES in asked.user for asked in asks)
    assert NOTES not in logged
    assert "rather talk" not in logged
    assert len(logged) < 20_000


async def test_f15_what_is_sent_follows_the_configuration_and_never_the_models_name() -> None:
    names = ("o3", "openai/o3", "azure/my-gpt5", "deepseek-reasoner", "plain")
    async with ScriptedServer(answer("text")) as server:
        for limit in ("max_tokens", "max_completion_tokens"):
            models = [
                ModelConfig(name=name, base_url=server.url, max_tokens_name=limit, temperature=0.5) for name in names
            ]
            made = generator(server.url, Clock(), models=models)
            for name in names:
                await made.answer(ask(name))
            await made.close()
        bodies = [{key: value for key, value in one.body.items() if key != "model"} for one in server.requests]
    assert all(body == bodies[0] for body in bodies[:5])
    assert all(body == bodies[5] for body in bodies[5:])
    assert (bodies[0]["max_tokens"], bodies[5]["max_completion_tokens"]) == (32_768, 32_768)
