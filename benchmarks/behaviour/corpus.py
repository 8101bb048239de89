"""The labelled kernels: reading them, proving that they are the frozen ones, and the half that may be tuned on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["AXES", "CORPUS", "LANGUAGES", "Kernel", "fingerprint", "is_tuning", "kernels"]

CORPUS = Path(__file__).parent / "corpus"
AXES = ("memory", "algorithm", "parallelism")
LANGUAGES = ("cpp", "cuda", "sycl", "opencl", "triton")
"""Folders of the corpus, named as the toolchains are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """One labelled kernel."""

    path: str
    """Below the corpus, with its language's folder."""
    text: str
    levels: tuple[int, int, int]
    """Memory, algorithm and parallelism, 0 to 3 each."""

    @property
    def language(self) -> str:
        """The folder, which is the toolchain's name."""
        return self.path.partition("/")[0]


def is_tuning(path: str) -> bool:
    """Whether a kernel belongs to the half on which the classifier may be tuned: a bit of its path's SHA-256."""
    return hashlib.sha256(path.encode()).digest()[0] % 2 == 0


def kernels(root: Path = CORPUS) -> list[Kernel]:
    """All labelled kernels, by path. Raises KeyError when a file has no label or a label no file."""
    labels = json.loads((root / "labels.json").read_text())
    files = {path.relative_to(root).as_posix() for folder in LANGUAGES for path in (root / folder).iterdir()}
    if odd := files ^ set(labels):
        raise KeyError(f"files without a label, or labels without a file: {', '.join(sorted(odd))}")
    return [
        Kernel(path=path, text=(root / path).read_text(), levels=tuple(labels[path][axis] for axis in AXES))
        for path in sorted(labels)
    ]


def fingerprint(root: Path = CORPUS) -> str:
    """SHA-256 over the list ``digest  path`` of every file of the corpus but ``FROZEN``, as ``sha256sum`` prints it."""
    files: Iterable[Path] = sorted(path for path in root.rglob("*") if path.is_file() and path.name != "FROZEN")
    lines = (
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(root).as_posix()}\n"
        for path in files
        if "__pycache__" not in path.parts
    )
    return hashlib.sha256("".join(lines).encode()).hexdigest()
