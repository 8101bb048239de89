"""What a source is, apart from how it is written: its normal form and its behaviour.

Behaviour is read from what a kernel executes, so comments, strings, names, host code and text that cannot run (``#if
0``, ``if (false)``, functions and macros that nothing reaches) change nothing. A construct counts on one axis only:
``omp simd`` is a matter of memory, a ``reduction`` clause of parallelism. The rules are those of
``benchmarks/behaviour/corpus/README.md``; ``compiled.refined`` corrects the answer once a build reports its form.
"""

from __future__ import annotations

import re
from functools import lru_cache

from kfd.base.digest import Digest, digest_of
from kfd.prompting import levels_algorithm, levels_cpp, levels_device, levels_triton, pylexing
from kfd.prompting.constructs import constructs
from kfd.prompting.language import PYTHON, C, Language, of_toolchain
from kfd.prompting.levels_source import live_parts
from kfd.tasks import tunables
from kfd.tasks.targets import TOOLCHAINS

__all__ = ["behaviour", "normal_form", "statements"]

LONGEST_WORD = 256
"""Characters of a name that behaviour is read from. Patterns look for a name and what follows it from each of its
characters, so that one word of a hundred thousand would take minutes."""
_LONG_WORD = re.compile(rf"(?<!\w)\w{{{LONGEST_WORD + 1},}}+")


@lru_cache(maxsize=128)  # a parent is asked about many times, a child when it is parsed and when it is screened
def normal_form(text: str, language: Language = C) -> Digest:
    """Digest of the token stream without comments and spacing: equal for sources that compile and start alike.

    Line ends count where they mean something: at the end of a preprocessor directive and of a line of Python. The
    comments that mean something count too: tunables and the launch plan (``kfd.tasks.tunables``).
    """
    pieces = [*language.stream(text), *statements(text, "TUNE"), *statements(text, "LAUNCH")]
    return digest_of("\0".join(pieces).encode("utf-8", "surrogatepass"))


def statements(text: str, word: str) -> list[str]:
    """The statements of one kind (``TUNE``, ``LAUNCH``) as they are read, without spacing."""
    made: list[str] = []
    try:
        for _, rest in tunables.directives(text, word):
            # The statements' own ``//`` is a division, as in Python.
            made.append(f"[{word}] {' '.join(pylexing.stream(rest))}")
    except tunables.PlanError as error:
        made += [f"[{word}] {problem.text}" for problem in error.problems]
    return made


def behaviour(text: str, toolchain: str) -> tuple[int, int, int]:
    """Levels 0 to 3 of memory, algorithm and parallelism (paper notes, section 1).

    ``toolchain`` names the language and what its constructs are. Raises nothing: a text that does not parse is
    described by the parts that do, one of an unknown toolchain is read as C++.
    """
    text = _LONG_WORD.sub(lambda match: match[0][:LONGEST_WORD], text)
    launched = frozenset(name for line in statements(text, "LAUNCH") for name in re.findall(r"\blaunch (\w+)", line))
    if of_toolchain(toolchain) is PYTHON:
        return levels_triton.levels(text, launched)
    live = live_parts(text, launched)
    known = TOOLCHAINS.get(toolchain)
    if known is None or not known.device_form:
        return levels_cpp.levels(constructs(text), live)
    shared = levels_device.shared_arrays(live)
    return levels_device.memory(live, shared), levels_algorithm.algorithm(live), levels_device.parallelism(live, shared)
