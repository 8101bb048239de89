"""Prompt variants as text for people. Pure; what models wrote is made plain."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from itertools import islice

from kfd.api.v1 import control_pb2
from kfd.base.plain import plain, plain_line
from kfd_client.render import table

__all__ = ["prompt_screen", "prompt_table", "prompt_text"]


def prompt_table(prompts: Iterable[control_pb2.PromptVariant]) -> str:
    """A line for each variant and for each mutation that made none."""
    rows = [
        (
            one.mutation.rpartition("-")[2] or "first",
            one.variant,
            one.parent,
            str(one.generation) if one.variant else "",
            one.state if one.variant == "" else ("in use" if one.held else "dropped since"),
            str(one.children) if one.variant else "",
            f"{one.credit:.4f}" if one.variant else "",
            one.model,
            one.reason,
        )
        for one in prompts
    ]
    return table(("PROMPT", "VARIANT", "PARENT", "GEN", "STATE", "CHILDREN", "CREDIT", "MODEL", "WHY NOT"), rows)


def prompt_screen(one: control_pb2.PromptVariant) -> str:
    """All about one: its record, and what it says as a diff against its parent."""
    lines = [f"{plain_line(one.variant or one.mutation, 60)}  {plain_line(one.state, 20)}"]
    if one.reason:
        lines[0] += f": {plain_line(one.reason, 600)}"
    if one.parent:
        model = f" by {plain_line(one.model, 100)}" if one.model else ""
        lines.append(f"made     from {plain_line(one.parent, 60)}{model}, after {one.asked_at} outcomes")
        lines.append(f"tokens   {one.input_tokens} in, {one.output_tokens} out")
    if one.variant:
        used = "in use" if one.held else "no longer in use"
        lines.append(f"credit   {one.credit:.4f} over {one.children} children, generation {one.generation}, {used}")
    for region in one.regions:
        pinned = ", pinned" if region.pinned else ""
        changed = region.text != region.parent_text
        lines += ["", f"{plain_line(region.name, 40)}{pinned}{'' if changed or not one.parent else ', as its parent'}"]
        if changed:
            lines += [f"  {line}" for line in _diff(region.parent_text, region.text)]
        elif not one.parent:
            lines += [f"  {line}" for line in plain(region.text).split("\n")]
    return "\n".join(lines) + "\n"


def prompt_text(one: control_pb2.PromptVariant) -> str:
    """What a variant says, region by region."""
    return "\n\n".join(f"{region.name}:\n\n{region.text}" for region in one.regions) + "\n"


def _diff(before: str, after: str) -> list[str]:
    """A unified diff without its head and its line numbers."""
    old, new = plain(before).split("\n") if before else [], plain(after).split("\n") if after else []
    lines = islice(difflib.unified_diff(old, new, n=1, lineterm=""), 2, None)
    return [line for line in lines if not line.startswith("@@")]
