"""A kernel as the core knows it: what is read from its text when it arrives."""

from __future__ import annotations

import hashlib

from kfd.core.events import Drafted
from kfd.core.search.tuning import Declared
from kfd.prompting import features, language
from kfd.prompting.claims import with_claim
from kfd.prompting.clones import shape
from kfd.tasks.spec import KernelFile

__all__ = ["drafted"]


def drafted(
    kernel: KernelFile, toolchain: str, *, space: Declared | None = None, algorithm: int | None = None
) -> Drafted:
    """A kernel as the core knows it. ``algorithm``: the level that its author claims, where the source shows none."""
    text = kernel.text
    return Drafted(
        source=hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(),
        kernel_text=text,
        normal=features.normal_form(text, language.of_path(kernel.path)).hash,
        shape=shape(text, language.of_path(kernel.path)).hash,
        cell=with_claim(features.behaviour(text, toolchain), algorithm),
        space=space,
    )
