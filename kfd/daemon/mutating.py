"""Mutations of prompts: from the engine's request to a question to the meta-prompter, and what its answer is worth.

Every started mutation ends with exactly one event, whatever the generator, the parser or a bug does; a stopped one
ends with none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

import structlog

from kfd.base.ids import CampaignId, CandidateId
from kfd.base.work import BuildResult, RunResult
from kfd.core.campaign.mutation import MutationRequest, regions_of
from kfd.core.campaign.state import CampaignSpec
from kfd.core.commands import DraftRequest
from kfd.core.events import INTERNAL, MutationArrived, MutationEvent, MutationFaulted, MutationMissed, MutationRejected
from kfd.core.search.operators import gain_of
from kfd.core.search.prompt_archive import EditError, Variant
from kfd.core.search.terms import terms_of
from kfd.core.views import ChildView
from kfd.daemon import asking
from kfd.daemon.drafting import FAULT_RETRY, Drafter
from kfd.daemon.exemplars import evidence, speeds_of
from kfd.daemon.tuning import kernel_of
from kfd.llm.port import Answer, Ask, Generator, Miss, ProviderFault
from kfd.prompting import meta
from kfd.prompting.bottleneck import bottleneck, fact_lines
from kfd.prompting.meta import Child, MetaRequest
from kfd.prompting.render import Prompt, PromptTooLong, in_device_form_of
from kfd.store.rows import pack
from kfd.tasks import Task
from kfd.tasks.spec import TaskSpec

__all__ = ["Children", "Mutator", "Started"]

OPERATOR = "prompt"
"""What the question is called: recordings of its answers are ``recorded/VARIANT/prompt.N.md``."""

MAX_REASON = 500


class Children(Protocol):
    """What is read from the store."""

    async def children(self, campaign: CampaignId, variant: str, limit: int) -> list[ChildView]:
        """The last children of a prompt variant, newest first."""
        ...

    async def child_counts(self, campaign: CampaignId, variant: str) -> tuple[tuple[str, int], ...]:
        """(verdict code or discard reason, number) of all of them."""
        ...


class Mutator:
    """Runs mutations. ``task_of`` gives a campaign's task; ``post`` takes the event that each mutation ends with."""

    def __init__(
        self,
        generators: Mapping[str, Generator],
        store: Children,
        task_of: Callable[[CampaignSpec], Awaitable[Task]],
        post: Callable[[MutationEvent], None],
    ) -> None:
        self._generators = generators
        self._store = store
        self._task_of = task_of
        self._post = post
        self._running: dict[str, asyncio.Task[None]] = {}
        self._log = structlog.get_logger("kfd.mutations")

    def start_mutation(self, request: MutationRequest) -> None:
        """Start one; a second start of the same mutation changes nothing."""
        if request.mutation in self._running:
            return
        task = asyncio.get_running_loop().create_task(self._mutate(request), name=f"mutation {request.mutation}")
        self._running[request.mutation] = task

    def stop_mutation(self, mutation: str) -> None:
        """Stop one; it posts nothing any more."""
        task = self._running.pop(mutation, None)
        if task is not None:
            task.cancel()

    async def close(self) -> None:
        """Stop all of them."""
        tasks = list(self._running.values())
        self._running.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _mutate(self, request: MutationRequest) -> None:
        tally = asking.Tally()
        try:
            event = await self._outcome(request, tally)
        except ProviderFault as fault:
            tally.add(fault.usage)
            event = _faulted(request, tally, fault)
        except Exception as error:  # noqa: BLE001 - the effect's boundary: every start ends as an event
            self._log.error("mutation.broken", mutation=request.mutation, exc_info=error)
            broken = ProviderFault(INTERNAL, repr(error)[:MAX_REASON], retry_after_ns=FAULT_RETRY)
            event = _faulted(request, tally, broken)
        self._running.pop(request.mutation, None)
        self._post(event)

    async def _outcome(self, request: MutationRequest, tally: asking.Tally) -> MutationEvent:
        spec = request.campaign
        if spec.generator == "manual":
            # A person who answers for kernels is not asked to write prompts too: nobody could tell them apart.
            return MutationMissed(
                mutation=request.mutation, text="no model is there to change prompts (manual answers)"
            )
        generator = self._generators.get(spec.generator)
        if generator is None:
            text = f"the daemon's configuration no longer has the generator {spec.generator}"
            raise ProviderFault("credentials", text, retry_after_ns=None)
        task = (await self._task_of(spec)).spec
        counts = await self._store.child_counts(spec.id, request.parent)
        children = await self._store.children(spec.id, request.parent, meta.MAX_CHILDREN)
        try:
            prompt = await asyncio.to_thread(_question, request, task, counts, children)
        except PromptTooLong as error:
            return MutationMissed(mutation=request.mutation, text=f"no room for the question: {error}")
        terms = terms_of(spec.terms, request.model)
        reply = await generator.answer(
            Ask(
                campaign=spec.id,
                candidate=CandidateId(request.mutation),
                operator=OPERATOR,
                parent=request.parent,
                nth=request.parent_nth,
                system=prompt.system,
                user=prompt.user,
                model=request.model,
                choice=request.model_choice,
                # As it was reserved, whatever the configuration says by now.
                max_output_tokens=terms.max_output_tokens if terms is not None and request.model else None,
                most_tokens=asking.bound_of(spec, request.model, 0),
            )
        )
        if isinstance(reply, Miss):
            return MutationMissed(mutation=request.mutation, text=reply.text)
        tally.add(reply.usage)
        return await asyncio.to_thread(_judged, request, prompt, reply)


def _faulted(request: MutationRequest, tally: asking.Tally, fault: ProviderFault) -> MutationFaulted:
    return MutationFaulted(
        mutation=request.mutation,
        kind=fault.kind,
        text=fault.text,
        retry_after=fault.retry_after_ns,
        input_tokens=tally.input_tokens,
        output_tokens=tally.output_tokens,
    )


class Started:
    """What the reactor starts: drafts and mutations."""

    def __init__(self, drafter: Drafter, mutator: Mutator) -> None:
        self._drafter = drafter
        self._mutator = mutator

    def start_draft(self, request: DraftRequest) -> None:
        """Ask a generator."""
        self._drafter.start_draft(request)

    def stop_draft(self, candidate: str) -> None:
        """Stop asking."""
        self._drafter.stop_draft(candidate)

    def start_mutation(self, request: MutationRequest) -> None:
        """Ask a meta-prompter."""
        self._mutator.start_mutation(request)

    def stop_mutation(self, mutation: str) -> None:
        """Stop asking it."""
        self._mutator.stop_mutation(mutation)


def _question(
    request: MutationRequest, task: TaskSpec, counts: tuple[tuple[str, int], ...], children: list[ChildView]
) -> Prompt:
    spec = request.campaign
    prompts = spec.search.prompts
    terms = terms_of(spec.terms, request.model)
    return meta.prompt(
        MetaRequest(
            name=task.name,
            description=task.description,
            toolchain=spec.toolchain,
            target=spec.target,
            device_form=in_device_form_of(task),
            baseline=spec.baseline,
            target_speedup=spec.target_speedup,
            regions=request.regions,
            pinned=prompts.pinned,
            edits=prompts.mutations,
            children=request.children,
            credit=request.credit,
            mean=request.mean,
            counts=counts,
            last=tuple(_child(view, task) for view in children),
            max_tokens=terms.max_input_tokens if terms is not None else None,
        )
    )


def _child(view: ChildView, task: TaskSpec) -> Child:
    """A child as the meta-prompter is told of it: what was stored, and nothing made of it but lines."""
    candidate = view.candidate
    diagnostics, _ = evidence(view.build)
    _, cases = evidence(view.run, failed_only=True)
    build = view.build.detail if view.build is not None else None
    measured = view.run.detail if view.run is not None else None
    built = build.facts if isinstance(build, BuildResult) else ()
    limit = bottleneck(built, measured if isinstance(measured, RunResult) else None)
    diff = ""
    if view.source is not None and view.parent_source is not None:
        diff = meta.diff_of(_block(view.parent_source, task), _block(view.source, task))
    fitness = candidate.told.fitness if candidate.told is not None else 0.0
    kept = candidate.told is not None and candidate.told.kept
    return Child(
        candidate=candidate.id,
        operator=candidate.operator.value,
        outcome=candidate.outcome,
        fitness=fitness,
        parent_fitness=candidate.asked.parent_fitness,
        gain=gain_of(candidate.operator, fitness - candidate.asked.parent_fitness, kept=kept),
        text=candidate.text,
        speeds=speeds_of(candidate.speedups),
        cases=cases,
        diagnostics=diagnostics,
        facts=(*fact_lines(built), *([f"what limits it: {limit}"] if limit else [])),
        diff=diff,
    )


def _block(text: str, task: TaskSpec) -> str:
    """What can change of a kernel's file."""
    return "\n".join(kernel_of(text, task.kernel).contents())


def _judged(request: MutationRequest, prompt: Prompt, answer: Answer) -> MutationEvent:
    """What an answer is worth: a new text of the variant, or the reason why there is none."""
    policy = request.campaign.search.prompts
    parent = Variant(id=request.parent, regions=dict(request.regions), generation=request.generation)
    texts = (pack("prompt", f"{prompt.system}\n\n{prompt.user}"), pack("answer", answer.text))
    usage = answer.usage
    try:
        made = meta.changed(answer.text, answer.finish_reason, parent, policy.pinned, policy.mutations)
    except EditError as error:
        return MutationRejected(
            mutation=request.mutation,
            reason=str(error)[:MAX_REASON],
            model=answer.model,
            input_tokens=usage.input_tokens or 0,
            output_tokens=usage.output_tokens or 0,
            texts=texts,
        )
    return MutationArrived(
        mutation=request.mutation,
        regions=regions_of(made.regions),
        model=answer.model,
        input_tokens=usage.input_tokens or 0,
        output_tokens=usage.output_tokens or 0,
        texts=texts,
    )
