"""A point of a sweep through the drafter: the store's text with the values in it, and no generator is asked."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from kfd.base.digest import Digest
from kfd.base.ids import CandidateId
from kfd.core.commands import DraftRequest
from kfd.core.events import DraftArrived, DraftEvent, DraftFaulted, DraftRejected
from kfd.core.views import CandidateView
from kfd.daemon.drafting import Drafter
from kfd.llm.port import Answer, Ask
from kfd.tasks import pack
from kfd.testing.sim_task import KERNEL, write_sim_task
from kfd.testing.simulation import sim_spec
from tests.unit.test_tuning_points import request_of

TEMPLATE = KERNEL.replace("// sim:", "// [TUNE] TILE in {8, 16}\n// sim:")


class Nobody:
    """A generator that must not be asked."""

    name = "recorded"

    async def answer(self, ask: Ask) -> Answer:
        raise AssertionError(f"{ask.candidate} was asked of a generator")

    async def close(self) -> None:
        """Nothing is held."""


class Stored:
    """A store with one template."""

    def __init__(self, text: str | None) -> None:
        self._text = text

    async def candidate(self, candidate: CandidateId) -> CandidateView:
        raise AssertionError(f"{candidate} need not be read")

    async def text(self, candidate: CandidateId, kind: str) -> str | None:
        return self._text


async def drafted_from(tmp_path: Path, text: str | None, request: DraftRequest) -> DraftEvent:
    archive = pack(write_sim_task(tmp_path / "task"))
    ended: asyncio.Queue[DraftEvent] = asyncio.Queue()

    async def archive_of(digest: Digest) -> bytes:
        return archive

    drafter = Drafter({"recorded": Nobody()}, Stored(text), archive_of, ended.put_nowait)
    drafter.start_draft(replace(request, campaign=sim_spec("p")))
    event = await asyncio.wait_for(ended.get(), 20)
    await drafter.close()
    return event


async def test_a_point_is_made_from_the_stored_template(tmp_path: Path) -> None:
    event = await drafted_from(tmp_path, TEMPLATE, request_of({"TILE": 16}))
    assert isinstance(event, DraftArrived)
    assert "[TUNE] TILE in {16, 8}\n#define TILE 16  // [TUNED]\n" in event.drafted.kernel_text
    assert [text.kind for text in event.texts] == ["source"]


async def test_a_point_that_the_template_does_not_offer_is_rejected(tmp_path: Path) -> None:
    assert isinstance(await drafted_from(tmp_path, TEMPLATE, request_of({"TILE": 64})), DraftRejected)


@pytest.mark.parametrize("text", [None])
async def test_a_missing_template_is_a_fault_of_ours_and_ends_as_an_event(tmp_path: Path, text: str | None) -> None:
    event = await drafted_from(tmp_path, text, request_of({"TILE": 16}))
    assert isinstance(event, DraftFaulted)
    assert event.kind == "internal"
