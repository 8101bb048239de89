"""The laws of the generator port, for every implementation that ships."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from kfd.base.ids import CampaignId, CandidateId
from kfd.llm.config import LlmConfig
from kfd.llm.manual import ManualDesk
from kfd.llm.openai_adapter import OpenAiGenerator
from kfd.llm.port import Answer, Ask, Generator, Miss, ProviderFault
from kfd.llm.recorded import RecordedGenerator
from kfd.testing.scripted_server import ScriptedServer, Step, answer

TEXT = "Here.\n```cpp\nint x;\n```\n"


def ask(number: int = 1, operator: str = "rewrite") -> Ask:
    return Ask(
        campaign=CampaignId("cone"),
        candidate=CandidateId(f"cone-{number}"),
        operator=operator,
        parent="a" * 64,
        nth=0,
        system="s",
        user="u",
        model="",
        choice=0.5,
    )


@asynccontextmanager
async def openai_answering() -> AsyncIterator[Generator]:
    async with ScriptedServer(answer(TEXT)) as server:
        config = LlmConfig.model_validate({"models": [{"name": "m", "base_url": server.url}]})
        generator = OpenAiGenerator(config, now=time.monotonic_ns, sleep=asyncio.sleep, dice=random.Random(1).random)
        yield generator
        await generator.close()


@asynccontextmanager
async def recorded_answering() -> AsyncIterator[Generator]:
    generator = RecordedGenerator(lambda _: {f"recorded/{'a' * 12}/rewrite.0.md": TEXT.encode()})
    yield generator
    await generator.close()


@asynccontextmanager
async def manual_answering() -> AsyncIterator[Generator]:
    desk = ManualDesk()

    async def person() -> None:
        while True:
            for pending in desk.ask(CampaignId("cone")):
                desk.tell(pending.candidate, TEXT)
            await asyncio.sleep(0)

    task = asyncio.create_task(person())
    yield desk
    task.cancel()
    await desk.close()


@asynccontextmanager
async def openai_silent() -> AsyncIterator[Generator]:
    async with ScriptedServer(Step(kind="stall_headers")) as server:
        config = LlmConfig.model_validate({"models": [{"name": "m", "base_url": server.url}]})
        generator = OpenAiGenerator(config, now=time.monotonic_ns, sleep=asyncio.sleep, dice=random.Random(1).random)
        yield generator
        await generator.close()


@asynccontextmanager
async def manual_silent() -> AsyncIterator[Generator]:
    desk = ManualDesk()
    yield desk
    await desk.close()


Making = Callable[[], AbstractAsyncContextManager[Generator]]
ANSWERING: list[Making] = [openai_answering, recorded_answering, manual_answering]
SILENT: list[Making] = [openai_silent, manual_silent]


@pytest.mark.parametrize("making", ANSWERING)
async def test_an_answer_comes_back_as_it_was_said(making: Making) -> None:
    async with making() as generator:
        got = await asyncio.wait_for(generator.answer(ask()), 10)
        assert isinstance(got, Answer)
        assert got.text == TEXT
        assert got.finish_reason == "stop"
        assert got.model


@pytest.mark.parametrize("making", ANSWERING)
async def test_many_asks_at_once_each_get_their_answer(making: Making) -> None:
    async with making() as generator:
        got = await asyncio.wait_for(asyncio.gather(*(generator.answer(ask(n)) for n in range(20))), 20)
        assert [isinstance(one, Answer) for one in got] == [True] * 20


@pytest.mark.parametrize("making", SILENT)
async def test_cancelling_an_ask_ends_it_and_leaves_nothing_running(making: Making) -> None:
    async with making() as generator:
        before = asyncio.all_tasks()
        asking = asyncio.create_task(generator.answer(ask()))
        await asyncio.sleep(0.1)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(asking, 5)
        for _ in range(50):
            if asyncio.all_tasks() <= before:
                break
            await asyncio.sleep(0.02)
        left = {task for task in asyncio.all_tasks() - before if "Scripted" not in repr(task.get_coro())}
        assert not left
        # The same candidate can be asked about again: nothing of the first ask is remembered.
        again = asyncio.create_task(generator.answer(ask()))
        await asyncio.sleep(0.05)
        assert not again.done()
        again.cancel()
        with pytest.raises(asyncio.CancelledError):
            await again


async def test_what_was_not_recorded_is_a_miss_and_not_an_error() -> None:
    async with recorded_answering() as generator:
        got = await generator.answer(ask(operator="patch"))
        assert isinstance(got, Miss)
        assert "patch.0.md" in got.text


async def test_a_provider_that_fails_for_good_is_a_fault_with_its_kind() -> None:
    async with ScriptedServer(Step(kind="status", status=401)) as server:
        config = LlmConfig.model_validate({"models": [{"name": "m", "base_url": server.url}]})
        generator = OpenAiGenerator(config, now=time.monotonic_ns, sleep=asyncio.sleep, dice=random.Random(1).random)
        with pytest.raises(ProviderFault) as caught:
            await generator.answer(ask())
        assert caught.value.kind == "credentials"
        assert caught.value.retry_after_ns is None
        assert server.count == 1
        await generator.close()
