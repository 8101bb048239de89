"""Prompt variants on the wire."""

from __future__ import annotations

from collections.abc import Sequence

from kfd.api.v1 import control_pb2
from kfd.base.failure import NotFound
from kfd.core.campaign.mutation import Regions, mutation_id
from kfd.core.campaign.state import CampaignSpec
from kfd.core.search.prompt_archive import Region
from kfd.core.views import PromptView
from kfd.rpc.port import ReadModels

__all__ = ["one", "page"]

MAX_TEXT = 1 << 18
"""Characters of a question or an answer that are shown; their bytes stay below what a message may hold."""


def page(spec: CampaignSpec, views: Sequence[PromptView], skip: int, limit: int) -> control_pb2.ListPromptsResponse:
    """A part of the list, without texts."""
    return control_pb2.ListPromptsResponse(
        prompts=[_variant(spec, view) for view in views[skip : skip + limit]], more=len(views) > skip + limit
    )


async def one(
    reader: ReadModels, spec: CampaignSpec, views: Sequence[PromptView], wanted: str
) -> control_pb2.ListPromptsResponse:
    """One variant or mutation with its texts. Raises NotFound."""
    view = _found(spec, views, wanted)
    answer = _variant(spec, view)
    if view.variant:
        parent = next((one.regions for one in views if one.variant and one.variant == answer.parent), None)
        answer.regions.extend(_regions(spec, view.regions, parent))
    if view.mutation is not None:
        answer.question = _printable(await reader.mutation_text(spec.id, view.mutation.nth, "prompt"))
        answer.answer = _printable(await reader.mutation_text(spec.id, view.mutation.nth, "answer"))
    return control_pb2.ListPromptsResponse(prompts=[answer])


def _found(spec: CampaignSpec, views: Sequence[PromptView], wanted: str) -> PromptView:
    for view in views:
        if view.mutation is not None and wanted in (mutation_id(spec.id, view.mutation.nth), f"p{view.mutation.nth}"):
            return view
    exact = [view for view in views if view.variant == wanted]
    near = exact or [view for view in views if view.variant.startswith(wanted)]
    if len({view.variant for view in near}) > 1:
        raise NotFound(f"{wanted} begins the ids of several prompt variants", mend="type more of the id")
    if not near:
        raise NotFound(f"{spec.id} has no prompt {wanted[:80]}", mend=f"kfd-client prompts {spec.id}")
    return near[0]


def _variant(spec: CampaignSpec, view: PromptView) -> control_pb2.PromptVariant:
    made = control_pb2.PromptVariant(
        variant=view.variant,
        state="first",
        children=view.children,
        gain=view.gain,
        credit=view.credit,
        held=view.held,
    )
    mutation = view.mutation
    if mutation is not None:
        made.mutation = mutation_id(spec.id, mutation.nth)
        made.parent = mutation.parent
        made.generation = mutation.generation
        made.state = mutation.state.value
        made.reason = mutation.reason.encode("utf-8", "replace").decode("utf-8")
        made.model = mutation.model
        made.input_tokens = mutation.input_tokens
        made.output_tokens = mutation.output_tokens
        made.asked_at = mutation.asked_at
    return made


def _regions(spec: CampaignSpec, regions: Regions, parent: Regions | None) -> list[control_pb2.PromptRegion]:
    """All regions; a variant without a parent differs from nothing."""
    texts = dict(regions)
    before = texts if parent is None else dict(parent)
    return [
        control_pb2.PromptRegion(
            name=region.value,
            text=texts.get(region, ""),
            parent_text=before.get(region, ""),
            pinned=region in spec.search.prompts.pinned,
        )
        for region in Region
    ]


def _printable(text: str | None) -> str:
    return "" if text is None else text[:MAX_TEXT].encode("utf-8", "replace").decode("utf-8")
