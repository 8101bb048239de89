"""Drafts: from the engine's request to a question, an answer, and what the answer is worth.

Every started draft ends with exactly one event, whatever the generator, the parser or a bug does; a stopped one
ends with none. Texts are rendered, parsed and compressed in threads, so that the loop stays free.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import structlog

from kfd.base.digest import Digest
from kfd.base.failure import NotFound
from kfd.base.ids import CampaignId
from kfd.base.instant import SECOND
from kfd.core.campaign.state import CampaignSpec
from kfd.core.commands import DraftRequest, Packed
from kfd.core.events import INTERNAL, DraftArrived, DraftEvent, DraftFaulted, DraftMissed, DraftRejected
from kfd.core.search.operators import Operator
from kfd.core.search.terms import terms_of
from kfd.daemon import asking, tuning
from kfd.daemon.exemplars import Exemplars, Texts
from kfd.daemon.workable import room_of, workable
from kfd.llm.port import Answer, Ask, Generator, Miss, ProviderFault
from kfd.prompting import answers, render
from kfd.prompting.claims import claimed_algorithm
from kfd.prompting.reading import drafted
from kfd.prompting.render import Exemplar, PromptRequest, PromptTooLong
from kfd.store.rows import pack
from kfd.tasks import Task, load
from kfd.tasks.spec import KernelFile, TaskSpec

__all__ = ["FAULT_RETRY", "Drafter", "beside"]

T = TypeVar("T")

FAULT_RETRY = 30 * SECOND
"""When a draft is tried again after a fault of ours."""

AT_ONCE_CHARACTERS = 4096
CACHED_TASKS = 32


@dataclass(frozen=True, slots=True)
class _Prepared:
    system: str
    user: str
    kernel: KernelFile
    prompt: Packed


class Drafter:
    """Runs drafts. ``post`` takes the event that each ends with."""

    def __init__(
        self,
        generators: Mapping[str, Generator],
        texts: Texts,
        archive_of: Callable[[Digest], Awaitable[bytes]],
        post: Callable[[DraftEvent], None],
    ) -> None:
        self._generators = generators
        self._texts = texts
        self._archive_of = archive_of
        self._post = post
        self._running: dict[str, asyncio.Task[None]] = {}
        self._tasks: OrderedDict[Digest, Task] = OrderedDict()
        self._files: dict[CampaignId, Mapping[str, bytes]] = {}
        self._exemplars = Exemplars(texts)
        self._log = structlog.get_logger("kfd.drafts")

    def files_of(self, campaign: CampaignId) -> Mapping[str, bytes]:
        """Files of a campaign's task, for the recorded generator."""
        return self._files.get(campaign, {})

    @property
    def running(self) -> int:
        """Drafts in flight."""
        return len(self._running)

    def start_draft(self, request: DraftRequest) -> None:
        """Start one draft; a second start of the same candidate changes nothing."""
        if request.candidate in self._running:
            return
        task = asyncio.get_running_loop().create_task(self._draft(request), name=f"draft {request.candidate}")
        self._running[request.candidate] = task

    def stop_draft(self, candidate: str) -> None:
        """Stop one draft; it posts nothing any more."""
        task = self._running.pop(candidate, None)
        if task is not None:
            task.cancel()

    async def close(self) -> None:
        """Stop all drafts and release the generators."""
        tasks = list(self._running.values())
        self._running.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for generator in self._generators.values():
            await generator.close()

    # ---- one draft ------------------------------------------------------------------------------------

    async def _draft(self, request: DraftRequest) -> None:
        tally = asking.Tally()
        try:
            event = await self._outcome(request, tally)
        except ProviderFault as fault:
            event = _faulted(request, tally, fault)
        except Exception as error:  # noqa: BLE001 - the effect's boundary: every start ends as an event
            self._log.error("draft.broken", candidate=request.candidate, exc_info=error)
            broken = ProviderFault(INTERNAL, repr(error)[:500], retry_after_ns=FAULT_RETRY)
            event = _faulted(request, tally, broken)
        self._running.pop(request.candidate, None)
        self._post(event)

    async def _outcome(self, request: DraftRequest, tally: asking.Tally) -> DraftEvent:
        spec = request.campaign
        generator = self._generators.get(spec.generator)
        if generator is None:
            text = f"the daemon's configuration no longer has the generator {spec.generator}"
            raise ProviderFault("credentials", text, retry_after_ns=None)
        task = await self.task_of(spec)
        if request.operator in (Operator.TUNE, Operator.MIGRATE):
            return await self._unasked(request, task.spec)
        prepared = await self._prepare(request, task.spec)
        first = Ask(
            campaign=spec.id,
            candidate=request.candidate,
            operator=request.operator.value,
            parent=request.parent_source,
            nth=request.nth,
            system=prepared.system,
            user=prepared.user,
            model=request.model,
            choice=request.model_choice,
        )

        room = room_of(spec)

        async def judge(answer: Answer) -> answers.Drafted | answers.Rejected:
            size = len(answer.text) + len(prepared.kernel.text)
            said = (answer.text, answer.finish_reason, request.operator.value, prepared.kernel, task.spec.entry)
            parsed = await beside(size, answers.parse, *said)
            return await beside(size, workable, parsed, prepared.kernel, task.spec, room)

        heard = await asking.converse(generator, first, spec, tally, judge)
        if isinstance(heard, Miss):
            return DraftMissed(candidate=request.candidate, text=heard.text)
        return await beside(len(heard.text) + len(prepared.kernel.text), _ended, request, prepared, heard, tally)

    async def _unasked(self, request: DraftRequest, spec: TaskSpec) -> DraftEvent:
        """A sweep's point, the template's source with these values as its defaults, or another target's elite."""
        if request.parent is None:
            raise NotFound(f"{request.candidate} is made from no other candidate")
        text = await self._texts.text(request.parent, "source")
        if text is None:
            raise NotFound(f"the source of {request.parent} is missing")
        made = tuning.point if request.operator is Operator.TUNE else tuning.migrant
        return await beside(len(text), made, request, text, spec)

    async def _prepare(self, request: DraftRequest, spec: TaskSpec) -> _Prepared:
        parent = await self._exemplars.get(request.parent, spec) if request.parent is not None else None
        best = None
        if request.best is not None and request.best != request.parent:
            best = await self._exemplars.get(request.best, spec)
        others = [
            await self._exemplars.get(other, spec)
            for other in request.inspirations
            if other not in (request.parent, request.best)
        ]
        terms = terms_of(request.campaign.terms, request.model)
        prompt_request = PromptRequest(
            spec=spec,
            operator=request.operator.value,
            parent=parent,
            best=best,
            inspirations=tuple(others),
            hints=request.hints,
            device=(("target", request.campaign.target), *_machine(parent, best)),
            max_tokens=terms.max_input_tokens if terms is not None else None,
            regions=request.regions,
        )
        kernel = parent.kernel if parent is not None else spec.kernel
        shown = (parent, best, *others)
        size = sum(len(one.kernel.text) for one in shown if one is not None)
        return await beside(size, _render, prompt_request, kernel, request.model)

    async def task_of(self, spec: CampaignSpec) -> Task:
        """The task of a campaign, whose files the recorded generator can find from then on."""
        task = await self._task(spec.task)
        self._files[spec.id] = task.files
        return task

    async def _task(self, digest: Digest) -> Task:
        task = self._tasks.get(digest)
        if task is None:
            archive = await self._archive_of(digest)
            task = await asyncio.to_thread(load, archive)
            self._tasks[digest] = task
            if len(self._tasks) > CACHED_TASKS:
                self._tasks.popitem(last=False)
        self._tasks.move_to_end(digest)
        return task


async def beside(characters: int, work: Callable[..., T], *arguments: Any) -> T:
    """Text work: at once when it takes a millisecond or two, else in a thread so that the loop stays free. Two hops
    to a thread cost more than reading a small kernel (measured: 1.4 ms of CPU time a candidate)."""
    if characters <= AT_ONCE_CHARACTERS:
        return work(*arguments)
    return await asyncio.to_thread(work, *arguments)


def _machine(*shown: Exemplar | None) -> tuple[tuple[str, str], ...]:
    """Facts of the machine, from the first exemplar that was measured."""
    return next((one.device for one in shown if one is not None and one.device), ())


def _render(request: PromptRequest, kernel: KernelFile, model: str) -> _Prepared:
    try:
        prompt = render.prompt(request)
    except PromptTooLong as error:
        text = (
            f"the prompt is too long for {model or 'the smallest of the models'}: {error}; cancel the campaign and "
            "submit it with a model of a larger window (context_tokens) or a smaller max_tokens, or a shorter kernel"
        )
        raise ProviderFault("too_long", text, retry_after_ns=None) from error
    packed = pack("prompt", f"{prompt.system}\n\n{prompt.user}")
    return _Prepared(prompt.system, prompt.user, kernel, packed)


def _faulted(request: DraftRequest, tally: asking.Tally, fault: ProviderFault) -> DraftFaulted:
    return DraftFaulted(
        candidate=request.candidate,
        kind=fault.kind,
        text=fault.text,
        retry_after=fault.retry_after_ns,
        model=request.model,
        input_tokens=tally.input_tokens,
        output_tokens=tally.output_tokens,
    )


def _ended(request: DraftRequest, prepared: _Prepared, heard: asking.Heard, tally: asking.Tally) -> DraftEvent:
    """What a conversation is worth: a kernel, or the reason why there is none."""
    parsed = heard.parsed
    texts = (prepared.prompt, pack("answer", heard.text))
    if isinstance(parsed, answers.Rejected):
        return DraftRejected(
            candidate=request.candidate,
            reason=parsed.reason.value,
            detail=parsed.detail,
            model=heard.answer.model,
            input_tokens=tally.input_tokens,
            output_tokens=tally.output_tokens,
            texts=texts,
        )
    text = parsed.kernel.text
    space = tuning.declared(parsed.kernel) if request.operator is Operator.TEMPLATE else None
    return DraftArrived(
        candidate=request.candidate,
        drafted=drafted(
            parsed.kernel,
            request.campaign.toolchain,
            space=space,
            algorithm=claimed_algorithm(heard.answer.text),
        ),
        model=heard.answer.model,
        input_tokens=tally.input_tokens,
        output_tokens=tally.output_tokens,
        texts=(*texts, pack("source", text)),
    )
