"""Prompt evolution of one campaign: which mutations of prompt variants are asked for, and what their answers change.

After each outcome that the search is told of, ``wanted`` says which variants are to change now: a pure function of the
search and of rows, so that a replay asks it again. Candidates never wait for a mutation, and a campaign that ends drops
those that are open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from kfd.base.failure import Bug
from kfd.base.instant import Instant
from kfd.core.campaign.mutation import (
    Ended,
    Mutation,
    MutationId,
    MutationRequest,
    MutationState,
    Regions,
    accepted,
    first_variant,
    mutation_id,
    nth_of,
    regions_of,
)
from kfd.core.campaign.state import CampaignSpec
from kfd.core.commands import Command, SaveMutation, SaveMutationText, StartMutation, StopMutation
from kfd.core.dice import Dice
from kfd.core.events import MutationArrived, MutationEvent, MutationFaulted, MutationMissed, MutationRejected
from kfd.core.fleet.model import NEVER, Fact
from kfd.core.search.prompt_archive import MAX_REGION, Region, Variant, variant_id
from kfd.core.search.proposals import ANY_MODEL, SearchPolicy
from kfd.core.search.search import Search

__all__ = ["MAX_FAULTS", "MAX_MUTATIONS", "Evolution", "meta_model", "wanted"]

MAX_FAULTS = 3
"""Failures of the provider after which a mutation is dropped; each is a whole call with retries of its own."""

MAX_MUTATIONS = 10_000
"""Mutations of one campaign: all accepted ones are read when a daemon starts."""

MAX_REASON = 500


def wanted(search: Search, spec: CampaignSpec, asked: int, is_open: bool) -> tuple[Variant, ...]:
    """Variants to change after the outcome that was just told. ``asked``: mutations asked for so far; ``is_open``:
    whether one of them has no answer yet, for then this update is left out."""
    if is_open or asked >= MAX_MUTATIONS or search.evaluations >= spec.budget_candidates:
        return ()
    return search.prompt_due(search.evaluations)


class Evolution:
    """The mutations of one campaign."""

    def __init__(self, spec: CampaignSpec, stored: Iterable[Mutation]) -> None:
        self._spec = spec
        self._dice = Dice(spec.seed)
        first = first_variant(spec)
        self._texts: dict[str, tuple[Regions, int]] = {first.id: (regions_of(first.regions), 0)}
        self._first = first.id
        self._open: dict[int, Mutation] = {}
        self._asked = self._ended = 0
        self._asked_of: dict[str, int] = {}
        self._running: set[int] = set()
        self._retry_at: dict[int, Instant] = {}
        known = list(stored)
        for mutation in known:
            self._note(mutation)
        # In the order of ending: a text that was dropped and found again has the generation of the last one.
        for _, mutation in accepted(known):
            self._texts[mutation.variant] = (mutation.regions, mutation.generation)

    def _note(self, mutation: Mutation) -> None:
        """A mutation that was asked for, as its row has it."""
        self._asked = max(self._asked, mutation.nth)
        self._asked_of[mutation.parent] = self._asked_of.get(mutation.parent, 0) + 1
        if mutation.ended is None:
            self._open[mutation.nth] = mutation
        else:
            self._ended = max(self._ended, mutation.ended.nth)

    def regions(self, variant: str) -> Regions:
        """What a variant says, also one that the archive has dropped since."""
        return self._texts.get(variant, self._texts[self._first])[0]

    # ---- asking -----------------------------------------------------------------------------------------------------

    def told(self, search: Search) -> list[Command]:
        """The search was told of an outcome: rows of the mutations that are due now."""
        out: list[Command] = []
        for variant in wanted(search, self._spec, self._asked, bool(self._open)):
            mutation = Mutation(nth=self._asked + 1, parent=variant.id, asked_at=search.evaluations)
            self._note(mutation)
            out.append(self._saved(mutation))
        return out

    def start(self, search: Search, now: Instant, reserve: Callable[[str, str], bool]) -> list[Command]:
        """Ask what is open and not being asked: after a restart everything, else what is new or due again.

        ``reserve`` takes a key and a model and says whether the call is paid for; one that is not waits.
        """
        out: list[Command] = []
        for nth, mutation in self._open.items():
            if nth in self._running or self._retry_at.get(nth, now) > now:
                continue
            request = self._request(mutation, search)
            if reserve(request.mutation, request.model):
                self._running.add(nth)
                self._retry_at.pop(nth, None)
                out.append(StartMutation(request=request))
        return out

    def _request(self, mutation: Mutation, search: Search) -> MutationRequest:
        variant, credit, mean = search.prompt_credit(mutation.parent)
        regions, generation = self._texts[mutation.parent]
        # Of this variant's mutations none was asked for after an open one: an update waits for those of the last.
        return MutationRequest(
            campaign=self._spec,
            mutation=mutation_id(self._spec.id, mutation.nth),
            nth=mutation.nth,
            parent=mutation.parent,
            parent_nth=self._asked_of[mutation.parent] - 1,
            regions=regions,
            generation=generation,
            children=variant.children if variant is not None else 0,
            credit=credit,
            mean=mean,
            model=self.asked_model(mutation_id(self._spec.id, mutation.nth)),
            model_choice=self._dice.roll("meta", mutation.nth),
            input_tokens=mutation.input_tokens,
            output_tokens=mutation.output_tokens,
        )

    def asked_model(self, mutation: MutationId) -> str:
        """Whom a mutation is asked of, by its configured name; empty lets the generator choose."""
        return meta_model(self._spec.search, self._dice, nth_of(mutation))

    def hurry(self, now: Instant) -> None:
        """Everything that waits to be asked again is due now."""
        self._retry_at = dict.fromkeys(self._retry_at, now)

    def next_due(self, now: Instant) -> Instant:
        """When the next one is due that waits to be asked again. One that is overdue waits for something else than
        time (space on the disk, an end) and needs no clock."""
        return min((at for at in self._retry_at.values() if at > now), default=NEVER)

    # ---- answers ----------------------------------------------------------------------------------------------------

    def answered(self, event: MutationEvent, search: Search, next_ordinal: int, now: Instant) -> list[Command]:
        """A mutation that was started has an answer, or will have none."""
        nth = nth_of(event.mutation)
        mutation = self._open.get(nth)
        if mutation is None or nth not in self._running:
            return []
        self._running.discard(nth)
        if isinstance(event, MutationMissed):
            return self._end(mutation, MutationState.DROPPED, event.text, search, next_ordinal)
        mutation = replace(
            mutation,
            input_tokens=mutation.input_tokens + event.input_tokens,
            output_tokens=mutation.output_tokens + event.output_tokens,
        )
        if isinstance(event, MutationFaulted):
            return self._faulted(mutation, event, search, next_ordinal, now)
        mutation = replace(mutation, model=event.model)
        out: list[Command] = [SaveMutationText(campaign=self._spec.id, nth=nth, text=text) for text in event.texts]
        if isinstance(event, MutationRejected):
            return out + self._end(mutation, MutationState.REJECTED, event.reason, search, next_ordinal)
        return out + self._arrived(mutation, event, search, next_ordinal)

    def _faulted(
        self, mutation: Mutation, event: MutationFaulted, search: Search, next_ordinal: int, now: Instant
    ) -> list[Command]:
        """The provider failed: again later, a few times; a fault that only a person can mend ends it."""
        mutation = replace(mutation, faults=mutation.faults + 1)
        body = (("mutation", event.mutation), ("fault", event.kind), ("text", event.text))
        fact = Fact(kind="prompt.failed", campaign=self._spec.id, body=body)
        if event.retry_after is None or mutation.faults >= MAX_FAULTS:
            text = f"{event.kind}: {event.text}"
            return [fact, *self._end(mutation, MutationState.DROPPED, text, search, next_ordinal)]
        self._open[mutation.nth] = mutation
        self._retry_at[mutation.nth] = now + event.retry_after
        return [fact, self._saved(mutation)]

    def _arrived(self, mutation: Mutation, event: MutationArrived, search: Search, next_ordinal: int) -> list[Command]:
        """A new text: the search takes it in unless it changes what it must not, or is there already."""
        parent = mutation.parent
        before, generation = dict(self._texts[parent][0]), self._texts[parent][1] + 1
        texts = {region: text for region, text in event.regions if text}
        wrong = _wrong(texts, before, self._spec.search)
        if wrong:
            return self._end(mutation, MutationState.REJECTED, wrong, search, next_ordinal)
        variant = Variant(id=variant_id(texts), regions=texts, parent=parent, generation=generation)
        _, credit, _ = search.prompt_credit(parent)
        if not search.prompt_evolved(variant):
            held = search.prompt_credit(variant.id)[0]
            why = "it says what another variant says" if held is not None else "the archive has room for one variant"
            return self._end(mutation, MutationState.REJECTED, why, search, next_ordinal)
        mutation = replace(mutation, variant=variant.id, generation=generation, regions=regions_of(texts))
        mutation = self._ended_as(mutation, MutationState.ACCEPTED, "", search, next_ordinal)
        self._texts[variant.id] = (mutation.regions, generation)
        changed = [region.value for region in Region if texts.get(region, "") != before.get(region, "")]
        fact = Fact(
            kind="prompt.evolved",
            campaign=self._spec.id,
            body=(
                ("mutation", event.mutation),
                ("variant", variant.id),
                ("parent", parent),
                ("generation", generation),
                ("regions", " ".join(changed)),
                ("parent_credit", credit),
                ("model", mutation.model),
            ),
        )
        return [self._saved(mutation), fact]

    def stop(self, reason: str, search: Search, next_ordinal: int, release: Callable[[str], None]) -> list[Command]:
        """Nobody waits for what is open any more. ``release`` takes the key of a call that is not waited for."""
        out: list[Command] = []
        for nth, mutation in list(self._open.items()):
            if nth in self._running:
                release(mutation_id(self._spec.id, nth))
                out.append(StopMutation(mutation=mutation_id(self._spec.id, nth)))
            self._running.discard(nth)
            out.append(self._saved(self._ended_as(mutation, MutationState.DROPPED, reason, search, next_ordinal)))
        return out

    def _end(
        self, mutation: Mutation, state: MutationState, reason: str, search: Search, next_ordinal: int
    ) -> list[Command]:
        saved = self._saved(self._ended_as(mutation, state, reason, search, next_ordinal))
        fact = Fact(
            kind=f"prompt.{state.value}",
            campaign=self._spec.id,
            body=(
                ("mutation", mutation_id(self._spec.id, mutation.nth)),
                ("parent", mutation.parent),
                ("reason", reason[:MAX_REASON]),
            ),
        )
        return [saved, fact]

    def _ended_as(
        self, mutation: Mutation, state: MutationState, reason: str, search: Search, next_ordinal: int
    ) -> Mutation:
        ended = self._place(search, next_ordinal)
        self._ended += 1
        self._open.pop(mutation.nth, None)
        self._retry_at.pop(mutation.nth, None)
        return replace(mutation, state=state, reason=reason[:MAX_REASON], ended=ended)

    def _place(self, search: Search, next_ordinal: int) -> Ended:
        return Ended(at=search.evaluations, before=next_ordinal, nth=self._ended + 1)

    def _saved(self, mutation: Mutation) -> SaveMutation:
        return SaveMutation(campaign=self._spec.id, mutation=mutation)

    def check(self) -> None:
        """Raise Bug when the state contradicts itself."""
        if not self._running | set(self._retry_at) <= set(self._open):
            raise Bug(f"{self._spec.id} asks for a mutation that is not open")
        if len(self._open) > self._spec.search.prompts.mutations:
            raise Bug(f"{self._spec.id} has {len(self._open)} open mutations")
        if self._ended + len(self._open) != self._asked:
            raise Bug(f"{self._spec.id} has lost a mutation: {self._asked} asked, {self._ended} ended")


def meta_model(policy: SearchPolicy, dice: Dice, nth: int) -> str:
    """Whom to ask: the configured one, else one of the campaign's models by its share."""
    if policy.prompts.model:
        return policy.prompts.model
    names, shares = zip(*policy.models, strict=True)
    name = dice.pick(names, shares, "meta:model", nth)
    return "" if name == ANY_MODEL else str(name)


def _wrong(texts: dict[Region, str], parent: dict[Region, str], policy: SearchPolicy) -> str:
    """Why these texts cannot become a variant; empty when they can."""
    for region in Region:
        if len(texts.get(region, "")) > MAX_REGION:
            return f"{region.value} would be longer than {MAX_REGION} characters"
        if region in policy.prompts.pinned and texts.get(region, "") != parent.get(region, ""):
            return f"{region.value} is pinned by the user"
    return "" if variant_id(texts) != variant_id(parent) else "the edits change nothing"
