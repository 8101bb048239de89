"""The openai generator against a real HTTP server that misbehaves as its script says."""

# ruff: noqa: E501 - tables

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kfd.base.failure import CallerError
from kfd.base.ids import CampaignId, CandidateId
from kfd.base.instant import SECOND
from kfd.core.search.terms import Bound
from kfd.llm.config import LlmConfig, ModelConfig
from kfd.llm.openai_adapter import OpenAiGenerator
from kfd.llm.port import Answer, Ask, FollowUp, ProviderFault, Usage
from kfd.llm.streams import MAX_TEXT
from kfd.prompting.tokens import conversation_tokens, most_tokens
from kfd.testing.scripted_server import Script, ScriptedServer, Step, answer, script_of, status

KEY = "sk-canary-0123456789"
TEXT = "```cpp\nint solve() { return 0; }\n```\n" * 3


def ask(model: str = "", choice: float = 0.0) -> Ask:
    return Ask(
        campaign=CampaignId("c1"),
        candidate=CandidateId("c1-1"),
        operator="rewrite",
        parent="nothing",
        nth=0,
        system="You are",
        user="Make it fast",
        model=model,
        choice=choice,
    )


class Clock:
    """A real clock whose sleeps cost nothing but are counted."""

    def __init__(self) -> None:
        self.skipped = 0
        self.slept: list[float] = []

    def now(self) -> int:
        return time.monotonic_ns() + self.skipped

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.skipped += round(seconds * SECOND)
        await asyncio.sleep(0)


def generator(url: str, clock: Clock, *, models: Sequence[ModelConfig] = (), **limits: Any) -> OpenAiGenerator:
    config = LlmConfig.model_validate(
        {"models": models or [ModelConfig(name="m", base_url=url, key_env="KEY")], "idle_s": 0.5, **limits}
    )
    return OpenAiGenerator(config, now=clock.now, sleep=clock.sleep, dice=lambda: 0.5, environment={"KEY": KEY})


async def asked(server: ScriptedServer, clock: Clock, **limits: Any) -> Answer | ProviderFault:
    made = generator(server.url, clock, **limits)
    try:
        result = await made.answer(ask())
    except ProviderFault as fault:
        return fault
    finally:
        await made.close()
    assert isinstance(result, Answer)
    return result


@pytest.mark.parametrize("stream", [True, False])
async def test_an_answer_comes_whole_with_its_usage_and_finish_reason(stream: bool) -> None:
    async with ScriptedServer([answer(TEXT), answer(TEXT, finish_reason="length", usage=False)]) as server:
        model = ModelConfig(name="mine", model="theirs", base_url=server.url, key_env="KEY", stream=stream)
        made = generator(server.url, Clock(), models=[model])
        first, second = await made.answer(ask()), await made.answer(ask())
        await made.close()
        assert isinstance(first, Answer)
        assert isinstance(second, Answer)
        request = server.requests[0]
    assert (first.text, first.finish_reason, first.model) == (TEXT, "stop", "mine")
    assert first.usage.output_tokens == len(TEXT) // 4
    assert first.usage.input_tokens is not None
    # Who does not count is counted from above: the prompt by its bound, a cut-off answer as the whole limit.
    assert (second.finish_reason, second.usage.output_tokens) == ("length", 32_768)
    assert second.usage.input_tokens == conversation_tokens(("You are", "Make it fast"))
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body["model"] == "theirs"
    assert request.body["messages"] == [
        {"role": "system", "content": "You are"},
        {"role": "user", "content": "Make it fast"},
    ]


async def test_what_is_not_set_is_not_sent_and_what_is_set_is_sent_under_its_name() -> None:
    async with ScriptedServer(answer(TEXT)) as server:
        models = [
            ModelConfig(name="a", base_url=server.url),
            ModelConfig(
                name="b", base_url=server.url, max_tokens_name="max_completion_tokens", reasoning_effort="high"
            ),
            ModelConfig(name="c", base_url=server.url, max_tokens_name="none", temperature=0, top_p=0.5, seed=0),
            ModelConfig(name="d", base_url=server.url, extra={"top_k": 4}),
        ]
        made = generator(server.url, Clock(), models=models)
        for name in "abcd":
            await made.answer(ask(name))
        await made.close()
        bodies = [request.body for request in server.requests]
    base = {"model", "messages", "stream", "stream_options"}
    assert set(bodies[0]) == base | {"max_tokens"}
    assert set(bodies[1]) == base | {"max_completion_tokens", "reasoning_effort"}
    assert set(bodies[2]) == base | {"temperature", "top_p", "seed"}
    assert bodies[3]["top_k"] == 4


async def test_a_429_is_waited_out_as_long_as_the_provider_asks_and_counted() -> None:
    clock = Clock()
    async with ScriptedServer([status(429, retry_after="7"), answer(TEXT)]) as server:
        result = await asked(server, clock)
        assert server.count == 2
    assert isinstance(result, Answer)
    assert clock.slept == [pytest.approx(7.35)]
    assert result.usage.attempts == 2
    assert result.usage.wait_ns >= 7 * SECOND


RETRIED = [
    status(500), status(503), status(529), status(408), Step(kind="stall_headers"), Step(kind="stall_stream", text=TEXT),
    Step(kind="reset"), Step(kind="reset_stream", text=TEXT), Step(kind="garbage"), Step(kind="bad_json", text=TEXT),
    Step(kind="stream_error", text=TEXT), answer(TEXT, finish_reason=None),
]  # fmt: skip


@pytest.mark.parametrize("step", RETRIED, ids=lambda step: f"{step.kind}{step.status}")
async def test_what_passes_is_tried_again(step: Step) -> None:
    clock = Clock()
    async with ScriptedServer([step, answer(TEXT)]) as server:
        result = await asked(server, clock)
        assert server.count == 2
    assert isinstance(result, Answer)
    assert (result.text, result.finish_reason) == (TEXT, "stop")
    assert clock.slept == [pytest.approx(0.75)]


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        (status(400), "bad_request"),
        (status(401, message=f"Incorrect API key provided: {KEY}"), "credentials"),
        (status(403), "credentials"),
        (status(404, code="model_not_found"), "bad_request"),
        (status(429, code="insufficient_quota"), "money"),
        (status(400, code="context_length_exceeded"), "too_long"),
    ],
    ids=lambda value: str(getattr(value, "code", value)),
)
async def test_what_a_person_must_mend_is_asked_once_and_says_so_without_the_key(step: Step, kind: str) -> None:
    clock = Clock()
    async with ScriptedServer(step) as server:
        result = await asked(server, clock)
        assert server.count == 1
    assert isinstance(result, ProviderFault)
    assert (result.kind, result.retry_after_ns, clock.slept) == (kind, None, [])
    assert KEY not in result.text
    assert KEY not in str(result)


async def test_attempts_are_bounded_and_the_fault_says_when_to_come_back() -> None:
    clock = Clock()
    async with ScriptedServer(status(500)) as server:
        result = await asked(server, clock, max_attempts=4)
        assert server.count == 4
    assert isinstance(result, ProviderFault)
    assert result.kind == "overload"
    assert result.retry_after_ns is not None
    assert result.usage.attempts == 4


async def test_a_retry_that_would_outlive_the_deadline_is_not_begun() -> None:
    clock = Clock()
    async with ScriptedServer(status(429, retry_after="100")) as server:
        result = await asked(server, clock, deadline_s=60)
        assert server.count == 1
    assert isinstance(result, ProviderFault)
    assert (result.kind, clock.slept) == ("rate_limit", [])
    assert result.retry_after_ns is not None
    assert result.retry_after_ns >= 100 * SECOND


@pytest.mark.parametrize("kind", ["drip", "stall_headers"])
async def test_one_deadline_holds_the_whole_call_even_when_something_always_comes(kind: str) -> None:
    clock = Clock()
    async with ScriptedServer(Step(kind=kind, text=TEXT, pieces=100, interval_s=0.05)) as server:
        start = time.monotonic()
        result = await asked(server, clock, deadline_s=0.8, idle_s=0.4 if kind == "drip" else 5)
        assert time.monotonic() - start < 3
    assert isinstance(result, ProviderFault)
    assert result.kind == "stall"


async def test_a_drip_that_ends_in_time_is_an_answer() -> None:
    async with ScriptedServer(Step(kind="drip", text=TEXT, pieces=8, interval_s=0.02)) as server:
        result = await asked(server, Clock())
    assert isinstance(result, Answer)
    assert result.text == TEXT


async def test_an_empty_answer_is_an_answer() -> None:
    async with ScriptedServer(Step(kind="empty")) as server:
        result = await asked(server, Clock())
    assert isinstance(result, Answer)
    assert (result.text, result.finish_reason) == ("", "stop")


async def test_an_endless_answer_is_cut_where_no_kernel_can_be() -> None:
    async with ScriptedServer(answer("x" * (3 << 20), pieces=50)) as server:
        result = await asked(server, Clock())
    assert isinstance(result, Answer)
    assert len(result.text) == MAX_TEXT


async def test_a_compressed_answer_is_refused() -> None:
    async with ScriptedServer(answer(TEXT, headers={"Content-Encoding": "gzip"})) as server:
        result = await asked(server, Clock(), max_attempts=1)
    assert isinstance(result, ProviderFault)


async def test_cancelling_leaves_nothing_running() -> None:
    async with ScriptedServer(Step(kind="stall_headers")) as server:
        made = generator(server.url, Clock(), idle_s=30)
        task = asyncio.create_task(made.answer(ask()))
        while not server.count:  # noqa: ASYNC110 - the server is another party; it has no event for us
            await asyncio.sleep(0.005)
        before = asyncio.all_tasks()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await made.close()
        assert asyncio.all_tasks() <= before


async def test_a_model_has_only_as_many_calls_in_flight_as_it_may() -> None:
    async with ScriptedServer(answer(TEXT, delay_s=0.02)) as server:
        model = ModelConfig(name="m", base_url=server.url, concurrency=3)
        made = generator(server.url, Clock(), models=[model])
        await asyncio.gather(*(made.answer(ask()) for _ in range(12)))
        await made.close()
        assert (server.count, server.most_in_flight) == (12, 3)


async def test_models_are_chosen_by_weight_with_the_campaigns_dice_or_by_name() -> None:
    async with ScriptedServer(answer(TEXT)) as server:
        weights = {"a": 1, "b": 3, "never": 0}
        models = [ModelConfig(name=name, base_url=server.url, weight=weight) for name, weight in weights.items()]
        made = generator(server.url, Clock(), models=models)
        for at in range(20):
            await made.answer(ask(choice=at / 20))
        await made.answer(ask("never"))
        with pytest.raises(ProviderFault, match="no model is called"):
            await made.answer(ask("other"))
        await made.close()
        names = [request.model for request in server.requests]
    assert [names.count(name) for name in weights] == [5, 15, 1]


def test_a_missing_key_is_found_before_anything_is_asked() -> None:
    model = ModelConfig(name="m", base_url="http://127.0.0.1:9/v1", key_env="KFD_TEST_NO_KEY")
    clock = Clock()
    with pytest.raises(CallerError, match="KFD_TEST_NO_KEY is not set"):
        OpenAiGenerator(LlmConfig(models=(model,)), now=clock.now, sleep=clock.sleep, dice=lambda: 0.5, environment={})


async def test_the_clients_own_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_BASE_URL", "OPENAI_ADMIN_KEY"):
        monkeypatch.setenv(name, "canary-value")
    async with ScriptedServer(answer(TEXT)) as server:
        made = generator(server.url, Clock(), models=[ModelConfig(name="m", base_url=server.url)])
        await made.answer(ask())
        await made.close()
        assert "canary-value" not in json.dumps(dict(server.requests[0].headers))


async def test_usage_is_that_of_all_attempts_together() -> None:
    async with ScriptedServer([answer(TEXT, finish_reason=None), answer(TEXT)]) as server:
        result = await asked(server, Clock())
    assert isinstance(result, Answer)
    assert result.usage == Usage(
        input_tokens=result.usage.input_tokens,
        output_tokens=2 * (len(TEXT) // 4),
        attempts=2,
        wait_ns=result.usage.wait_ns,
    )


PROMPT = conversation_tokens(("You are", "Make it fast"))


@pytest.mark.parametrize(
    ("step", "spent"),
    [
        (status(429, retry_after="1"), (0, 0)),
        (status(500), (0, 0)),
        (Step(kind="stall_headers"), (PROMPT, 0)),
        (Step(kind="reset"), (PROMPT, 0)),
        (Step(kind="reset_stream", text=TEXT, pieces=2), (PROMPT, most_tokens(TEXT[: -(-len(TEXT) // 2)]))),
        (Step(kind="stall_stream", text=TEXT, pieces=2), (PROMPT, most_tokens(TEXT[: -(-len(TEXT) // 2)]))),
    ],
    ids=lambda value: str(getattr(value, "kind", "")),
)
async def test_f18_what_failed_attempts_used_comes_with_the_fault(step: Step, spent: tuple[int, int]) -> None:
    async with ScriptedServer(step) as server:
        result = await asked(server, Clock(), max_attempts=2)
        assert server.count == 2
    assert isinstance(result, ProviderFault)
    assert (result.usage.input_tokens, result.usage.output_tokens) == (2 * spent[0], 2 * spent[1])


async def test_f18_a_call_that_its_deadline_ends_has_used_its_prompt_and_what_came() -> None:
    async with ScriptedServer(Step(kind="drip", text=TEXT, pieces=100, interval_s=0.05)) as server:
        result = await asked(server, Clock(), deadline_s=0.8)
    assert isinstance(result, ProviderFault)
    assert result.usage.input_tokens == PROMPT
    assert 0 < (result.usage.output_tokens or 0) < most_tokens(TEXT)


async def test_nothing_is_sent_where_no_connection_is_made_and_so_nothing_is_used() -> None:
    made = generator("http://127.0.0.1:9/v1", Clock(), max_attempts=2)
    with pytest.raises(ProviderFault) as caught:
        await made.answer(ask())
    await made.close()
    assert (caught.value.usage.input_tokens, caught.value.usage.output_tokens) == (0, 0)


@pytest.mark.parametrize(
    ("step", "most", "count"),
    [
        (Step(kind="reset_stream", text=TEXT, pieces=2), Bound(input_tokens=2 * PROMPT, output_tokens=1000), 1),
        (Step(kind="reset_stream", text=TEXT, pieces=2), Bound(input_tokens=2 * PROMPT, output_tokens=1100), 2),
        (Step(kind="reset", text=TEXT), Bound(input_tokens=2 * PROMPT - 1, output_tokens=1000), 1),
        (status(500), Bound(input_tokens=PROMPT, output_tokens=1000), 2),  # it was refused: nothing was used
    ],
    ids=["output", "enough", "input", "refused"],
)
async def test_an_attempt_that_could_use_more_than_is_reserved_is_not_begun(
    step: Step, most: Bound, count: int
) -> None:
    async with ScriptedServer([step, answer(TEXT)]) as server:
        model = ModelConfig(name="m", base_url=server.url, max_tokens=1000)
        made = generator(server.url, Clock(), models=[model])
        question = replace(ask(), most_tokens=most)
        if count == 2:
            assert isinstance(await made.answer(question), Answer)
        else:
            with pytest.raises(ProviderFault, match="could use more tokens than are reserved") as caught:
                await made.answer(question)
            assert caught.value.retry_after_ns is not None
            assert (caught.value.usage.input_tokens or 0) <= most.input_tokens
        await made.close()
        assert server.count == count


async def test_a_conversation_is_sent_in_its_order_with_the_limit_that_was_asked_for() -> None:
    async with ScriptedServer(answer(TEXT)) as server:
        made = generator(server.url, Clock())
        turns = (FollowUp(answer="a1", reply="r1"), FollowUp(answer="a2", reply="r2"))
        await made.answer(replace(ask(), follow_up=turns, max_output_tokens=77))
        await made.close()
        body = server.requests[0].body
    assert [(turn["role"], turn["content"]) for turn in body["messages"]] == [
        ("system", "You are"),
        ("user", "Make it fast"),
        ("assistant", "a1"),
        ("user", "r1"),
        ("assistant", "a2"),
        ("user", "r2"),
    ]
    assert body["max_tokens"] == 77


@pytest.mark.parametrize(("effort", "output"), [(None, most_tokens(TEXT)), ("high", 32_768)])
async def test_a_model_that_thinks_unseen_and_does_not_count_is_counted_as_its_limit(
    effort: str | None, output: int
) -> None:
    async with ScriptedServer(answer(TEXT, usage=False)) as server:
        made = generator(
            server.url, Clock(), models=[ModelConfig(name="m", base_url=server.url, reasoning_effort=effort)]
        )
        result = await made.answer(ask())
        await made.close()
    assert isinstance(result, Answer)
    assert (result.usage.input_tokens, result.usage.output_tokens) == (PROMPT, output)


async def test_forty_calls_through_every_kind_of_trouble_all_end() -> None:
    steps = [
        *RETRIED,
        status(429, retry_after="1"),
        Step(kind="drip", text=TEXT),
        answer(TEXT, usage=False),
        Step(kind="empty"),
    ]
    script = Script(steps=[step for step in steps for _ in range(2)], default=answer(TEXT))
    async with ScriptedServer(script) as server:
        made = generator(server.url, Clock(), max_attempts=30)
        results = await asyncio.gather(*(made.answer(ask()) for _ in range(40)))
        await made.close()
        assert server.count == 40 + 2 * (len(RETRIED) + 1)
    assert sum(isinstance(result, Answer) and result.text in (TEXT, "") for result in results) == 40


def test_the_server_runs_on_its_own_from_a_json_script(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"steps": [{"kind": "status", "status": 503}], "default": {"text": "hello"}}))
    command = [sys.executable, "-m", "kfd.testing.scripted_server", "--script", str(script), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().removeprefix("URL ").strip()
            body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()
            request = urllib.request.Request(f"{url}/chat/completions", body, {"Content-Type": "application/json"})
            with pytest.raises(urllib.error.HTTPError) as caught:
                urllib.request.urlopen(request, timeout=10)
            caught.value.close()
            with urllib.request.urlopen(request, timeout=10) as response:
                assert json.load(response)["choices"][0]["message"]["content"] == "hello"
        finally:
            process.kill()


@pytest.mark.parametrize("data", [{"stepps": []}, {"steps": [{"kind": "sing"}]}, {"steps": [{"txt": "a"}]}])
def test_a_wrong_script_is_refused(data: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"unknown|wrong"):
        script_of(data)
