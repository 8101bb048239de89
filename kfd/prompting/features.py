"""What a source is, apart from how it is written: its normal form and its behaviour.

Behaviour is read from the syntax tree, so comments, strings, names and text that cannot run (``#if 0``, ``if
(false)``, functions and macros that nothing reaches) change nothing. A construct counts on one axis only:
``omp simd`` is a matter of memory, a ``reduction`` clause of parallelism. Later the compiled form is asked
first (DESIGN, section 7).
"""

from __future__ import annotations

import re
from functools import lru_cache

from kfd.base.digest import Digest, digest_of
from kfd.prompting import devices, pylexing
from kfd.prompting.constructs import Constructs, constructs
from kfd.prompting.language import PYTHON, C, Language, of_toolchain
from kfd.tasks import tunables
from kfd.tasks.targets import TOOLCHAINS

__all__ = ["behaviour", "normal_form"]


@lru_cache(maxsize=128)  # a parent is asked about many times, a child when it is parsed and when it is screened
def normal_form(text: str, language: Language = C) -> Digest:
    """Digest of the token stream without comments and spacing: equal for sources that compile and start alike.

    Line ends count where they mean something: at the end of a preprocessor directive and of a line of Python. The
    comments that mean something count too: tunables and the launch plan (``kfd.tasks.tunables``).
    """
    pieces = [*language.stream(text), *_statements(text, "TUNE"), *_statements(text, "LAUNCH")]
    return digest_of("\0".join(pieces).encode("utf-8", "surrogatepass"))


def _statements(text: str, word: str) -> list[str]:
    """The statements of one kind as they are read, without spacing."""
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
    if of_toolchain(toolchain) is PYTHON:
        return devices.triton(text)
    found = constructs(text)
    known = TOOLCHAINS.get(toolchain)
    if known is not None and known.device_form:
        return devices.memory(found), devices.algorithm(found, _algorithm(found)), devices.parallelism(found)
    return _memory(found), _algorithm(found), _parallelism(found)


_VECTOR_CALL = re.compile(r"(?:_mm\d*_|vld\d|vst\d|svld|svst|__builtin_assume_aligned$|std::assume_aligned)")
_VECTOR_TYPE = re.compile(r"(?:__m\d+[id]?|float\d+x\d+_t|native_simd|simd|fixed_size_simd)$")
_HORIZONTAL = re.compile(
    r"_mm\d*_(?:mask_)?(?:reduce|hadd|shuffle|permute|unpack|cvts[sd])\w*|__builtin_shuffle\w*|vaddvq?_\w+|std::reduce"
)
_AHEAD = re.compile(r"__builtin_prefetch$|_mm_prefetch$|_mm\d*_stream_\w+|__builtin_nontemporal_store$")
_ATOMIC = re.compile(r"__atomic_\w+|__sync_\w+|std::atomic\w*")
_BITS = re.compile(r"(?:__builtin_bit_cast|(?:std::)?bit_cast)\b")


def _memory(found: Constructs) -> int:
    """0 scalar; 1 vector loads; 2 tiles or local buffers; 3 several levels, or traffic planned ahead."""
    horizontal = [call for call in found.calls if _HORIZONTAL.match(call)]
    ahead = any(_AHEAD.match(call) for call in found.calls)
    vector = (
        found.vector_types
        or any(_VECTOR_TYPE.search(name) for name in found.types)
        or any(_VECTOR_CALL.match(call) and call not in horizontal and not _AHEAD.match(call) for call in found.calls)
        or any(_is_simd(words) for words in found.pragmas)
    )
    tiles = found.blocked_loops > 0 or found.buffers > 0
    if (ahead and (tiles or vector)) or found.nested_blocks or (found.blocked_loops and found.buffers and vector):
        return 3
    if tiles or ahead:
        return 2
    return 1 if vector else 0


def _is_simd(words: tuple[str, ...]) -> bool:
    return (words[:1] == ("omp",) and "simd" in words) or words[:2] == ("GCC", "ivdep")


def _algorithm(found: Constructs) -> int:
    """0 direct port; 1 fused passes, hoisted reciprocals; 2 reformulated: online or approximated; 3 both, or
    recursion."""
    approximated = found.horner > 0 or found.tables > 0 or found.bit_casts > 0 or any(map(_BITS.match, found.calls))
    online = found.rescaled > 0
    if found.recursive or (approximated and online):
        return 3
    if approximated or online:
        return 2
    return 1 if found.fused_loops or found.reciprocals else 0


def _parallelism(found: Constructs) -> int:
    """0 one thread; 1 independent threads; 2 reductions, shuffles, barriers; 3 atomics, tasks, critical
    sections."""
    omp = [set(words) for words in found.pragmas if words[:1] == ("omp",)]
    threaded = [words for words in omp if words & {"parallel", "for", "sections", "teams", "distribute", "single"}]
    threads = threaded or any(re.match(r"std::(?:j?thread|async|execution::par)", name) for name in found.names())
    if any(words & {"atomic", "critical", "task", "taskloop", "ordered"} for words in omp) or any(
        _ATOMIC.match(name) for name in found.names()
    ):
        return 3
    if any("barrier" in words for words in omp) or any("reduction" in words for words in threaded):
        return 2
    if any(_HORIZONTAL.match(call) for call in found.calls):
        return 2
    return 1 if threads else 0
