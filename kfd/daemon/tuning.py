"""What is read from a kernel's text for the campaign: its digests, its cell, its tunables, and its points with them."""

from __future__ import annotations

from kfd.core.commands import DraftRequest
from kfd.core.events import DraftArrived, DraftEvent, DraftRejected
from kfd.core.search.tuning import Declared
from kfd.prompting.reading import drafted
from kfd.store.rows import pack
from kfd.tasks import templated
from kfd.tasks.baking import baked
from kfd.tasks.launchplan import in_device_form
from kfd.tasks.spec import KernelFile, TaskSpec
from kfd.tasks.tunables import PlanError, parse

__all__ = ["NOT_TUNABLE", "declared", "kernel_of", "migrant", "point"]

NOT_TUNABLE = "not_tunable"
"""Why a point is discarded whose values cannot be put into its template."""


def declared(kernel: KernelFile) -> Declared | None:
    """The tunables inside a kernel's EVOLVE blocks, else its listed instantiations of ``forward_templated``.

    None when there are none, or none that can be read.
    """
    text = "\n".join(kernel.contents())
    try:
        space = parse(text)
    except PlanError:
        return None
    if not space.tunables:
        listed = templated.parse(text)
        if listed is None:
            return None
        return Declared(tunables=tuple(zip(listed.names, listed.values, strict=True)), listed=listed.points)
    return Declared(
        tunables=tuple((one.name, one.values) for one in space.tunables),
        conditions=tuple((one.left, one.comparison, one.right) for one in space.conditions),
    )


def point(request: DraftRequest, text: str, spec: TaskSpec) -> DraftEvent:
    """A template's source with a point's values as its defaults, as if it had been answered."""
    values, toolchain = dict(request.values), request.campaign.toolchain
    try:
        kernel = kernel_of(text, spec.kernel)
        contents = "\0".join(kernel.contents())
        if parse(contents).tunables:
            made = baked(contents, values, macros=_needs_macros(toolchain, text)).split("\0")
        else:
            made = templated.baked(contents, values).split("\0")
        child = kernel.with_contents(tuple(made))
    except ValueError as error:
        return DraftRejected(
            candidate=request.candidate,
            reason=NOT_TUNABLE,
            detail=str(error)[:500],
            model="",
            input_tokens=0,
            output_tokens=0,
            texts=(),
        )
    return DraftArrived(
        candidate=request.candidate,
        drafted=drafted(child, toolchain, algorithm=request.algorithm),
        model="",
        input_tokens=0,
        output_tokens=0,
        texts=(pack("source", child.text),),
    )


def migrant(request: DraftRequest, text: str, spec: TaskSpec) -> DraftEvent:
    """Another target's elite, as if it had been answered; what lies outside the blocks is the same task's."""
    child = kernel_of(text, spec.kernel)
    return DraftArrived(
        candidate=request.candidate,
        drafted=drafted(child, request.campaign.toolchain, algorithm=request.algorithm),
        model="",
        input_tokens=0,
        output_tokens=0,
        texts=(pack("source", child.text),),
    )


def _needs_macros(toolchain: str, text: str) -> bool:
    """Whether nobody else defines the tunables: builds of the device form do, and Triton has no macros."""
    return toolchain != "triton" and not in_device_form(toolchain, text)


def kernel_of(text: str, frame: KernelFile) -> KernelFile:
    """A candidate's file with its blocks found again: what lies outside the blocks never changes.

    Raises ValueError when it did.
    """
    contents: list[str] = []
    at = 0
    for index, block in enumerate(frame.blocks):
        before = frame.text[frame.blocks[index - 1].end if index else 0 : block.start]
        if text[at : at + len(before)] != before:
            raise ValueError("the text outside the EVOLVE blocks differs from the task's")
        at += len(before)
        is_last = index == len(frame.blocks) - 1
        after = frame.text[block.end :] if is_last else frame.text[block.end : frame.blocks[index + 1].start]
        end = len(text) - len(after) if is_last else text.index(after, at)
        contents.append(text[at:end])
        at = end
    kernel = frame.with_contents(tuple(contents))
    if kernel.text != text:
        raise ValueError("the text outside the EVOLVE blocks differs from the task's")
    return kernel
