"""The evolvable regions of a prompt: what they say at first, and how their texts are kept harmless.

A region is written by us, by a user's pin, or by the meta-prompter, which reads strangers' texts: so every text of a
region is treated as a stranger's. It is advice in a fence that it cannot close, without headings, markers or signs of
edits, and the prompt says that it overrides nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path

from kfd.core.search.prompt_archive import MAX_REGION, Region
from kfd.prompting import quoting

__all__ = ["first_regions", "region_text", "shown"]

_FOLDER = Path(__file__).parent / "templates" / "regions"

_FAMILIES = {
    "cpp": "cpp",
    "sim": "cpp",
    "opencl": "opencl",
    "sycl": "sycl",
    "cuda": "cuda",
    "triton": "triton",
}
"""Whose advice a toolchain gets."""

_HEADING = re.compile(r"^([ \t]*)(?:#{1,6}[ \t]+)+", re.M)
_RULE = re.compile(r"^[ \t]*(?:-{3,}|={3,}|_{3,}|\*{3,})[ \t]*$", re.M)
_CHAT = re.compile(r"<\||\|>|\[/?INST\]")
"""Signs that end a message in the chat formats of some models."""


def first_regions(toolchain: str, *, device_form: bool) -> Mapping[Region, str]:
    """Our own advice for a toolchain and a form of kernel. Raises ValueError for a toolchain that has none."""
    family = _FAMILIES.get(toolchain)
    if family is None:
        raise ValueError(f"there is no advice for {toolchain!r}; there is for {', '.join(_FAMILIES)}")
    form = "device" if device_form else "host"
    parts = {
        Region.PHILOSOPHY: ("philosophy",),
        Region.STRATEGIES: (f"strategies.{family}", f"strategies.{form}"),
        Region.PITFALLS: (f"pitfalls.{family}", f"pitfalls.{form}"),
        Region.ANALYSIS: ("analysis",),
    }
    return {region: "\n".join(_read(name) for name in names if _read(name)) for region, names in parts.items()}


@cache
def _read(name: str) -> str:
    path = _FOLDER / f"{name}.md"
    return path.read_text(encoding="utf-8").strip() if path.exists() else ""


def region_text(text: str) -> str:
    """A region's text as it is stored and shown: what is read twice stays as it is.

    Headings lose their signs and rules vanish, so that no section of a prompt can be imitated; so do markers, signs of
    edits, control characters and the signs of chat formats. Nothing is cut off: who takes a text in checks its length.
    """
    while True:
        plain = _without_signs(text)
        if plain == text:
            return plain
        # What one sign hid may be another: "# =====" is no rule before its heading is gone.
        text = plain


def _without_signs(text: str) -> str:
    plain = quoting.harmless(text, len(text) + 1)
    plain = _CHAT.sub(lambda match: " ".join(match[0]), plain)
    plain = _HEADING.sub(r"\1", _RULE.sub("", plain))
    plain = "\n".join(line.rstrip() for line in plain.split("\n"))
    return re.sub(r"\n{3,}", "\n\n", plain).strip("\n")


@lru_cache(maxsize=256)
def shown(regions: tuple[tuple[Region, str], ...]) -> tuple[tuple[str, str], ...]:
    """(name, text in a fence) of each region that says something, in the order of ``Region``."""
    texts = dict(regions)
    return tuple(
        (region.value, quoting.fence(region_text(texts[region]), MAX_REGION))
        for region in Region
        if texts.get(region, "").strip()
    )
