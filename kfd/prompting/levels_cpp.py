"""Memory, algorithm and parallelism of C++ for the CPU (levels of the paper, section 1).

The cache takes the place of shared memory: loops over tiles and packed buffers are its tiles. SIMD loads are memory,
horizontal SIMD operations and reduction clauses parallelism.
"""

from __future__ import annotations

import re

from kfd.prompting import levels_algorithm
from kfd.prompting.constructs import Constructs
from kfd.prompting.levels_device import Shared, private_accumulators
from kfd.prompting.levels_source import Live

__all__ = ["levels"]

_VECTOR_CALL = re.compile(r"(?:_mm\d*_|vld\d|vst\d|svld|svst|__builtin_assume_aligned$|std::assume_aligned)")
_VECTOR_TYPE = re.compile(r"(?:__m\d+[id]?|float\d+x\d+_t|native_simd|simd|fixed_size_simd)$")
_HORIZONTAL = re.compile(
    r"_mm\d*_(?:mask_)?(?:reduce|hadd|shuffle|permute|unpack|movehl|movelh|extractf|extracti|cvts[sd])\w*"
    r"|__builtin_shuffle\w*|vaddvq?_\w+|std::reduce"
)
_AHEAD = re.compile(r"__builtin_prefetch$|_mm_prefetch$|_mm\d*_stream_\w+|__builtin_nontemporal_store$")
_ATOMIC = re.compile(r"__atomic_\w+|__sync_\w+|std::atomic\w*")
_BARRIER = re.compile(r"pthread_barrier_wait|\w*(?:\.|->)arrive_and_wait|std::barrier|std::latch")
_BITS = re.compile(r"(?:__builtin_bit_cast|(?:std::)?bit_cast)\b")
_SMALL_STEP = 16
"""Steps up to this are unrolling or a register block; longer ones, or unknown, walk over tiles of the cache."""


def levels(found: Constructs, live: Live) -> tuple[int, int, int]:
    """Memory, algorithm and parallelism, 0 to 3 each."""
    return _memory(found, live.code), _algorithm(found, live), _parallelism(found, live.code)


def _memory(found: Constructs, code: str) -> int:
    """0 scalar; 1 vector loads; 2 tiles or local buffers; 3 several levels, or traffic planned ahead."""
    horizontal = [call for call in found.calls if _HORIZONTAL.match(call)]
    ahead = any(_AHEAD.match(call) for call in found.calls)
    vector = (
        found.vector_types
        or any(_VECTOR_TYPE.search(name) for name in found.types)
        or any(_VECTOR_CALL.match(call) and call not in horizontal and not _AHEAD.match(call) for call in found.calls)
        or any(_is_simd(words) for words in found.pragmas)
    )
    registers = private_accumulators(code, _NO_SHARED)
    counted = set(re.findall(r"(?:\+\+\s*(\w+)\s*\[|(\w+)\s*\[[^;=]{0,80}\]\s*\+\+)", code))
    counters = {name for pair in counted for name in pair if name}
    buffers = found.buffers - sum(_declares(code, name) for name in registers | counters)
    tiles = found.blocked_loops > 0 or _walks_tiles(code) or buffers > 0
    if (ahead and (tiles or vector)) or found.nested_blocks or (tiles and registers):
        return 3
    if tiles and found.blocked_loops and buffers > 0 and vector:
        return 3
    if tiles or ahead or registers:
        return 2
    return 1 if vector else 0


_NO_SHARED = Shared(tiles=frozenset(), exchanged=frozenset(), doubled=False)


def _declares(code: str, name: str) -> bool:
    return re.search(rf"\b[\w>]+\s+(?:\w+\s*,\s*)*{re.escape(name)}\s*\[", code) is not None


def _is_simd(words: tuple[str, ...]) -> bool:
    return (words[:1] == ("omp",) and "simd" in words) or words[:2] == ("GCC", "ivdep")


def _walks_tiles(code: str) -> bool:
    """A loop in long steps whose counter an inner loop's is added to in an index."""
    for match in list(re.finditer(r"\bfor\s*\([^;]{0,200};[^;]{0,200};\s*(\w+)\s*\+=\s*(\w+)\s*\)", code))[:50]:
        counter, step = match[1], _number(code, match[2])
        if step is not None and step <= _SMALL_STEP:
            continue
        body = code[match.end() : match.end() + 3000]
        inner = set(re.findall(r"\bfor\s*\([^;]{0,100}?(\w+)\s*=\s*0\s*;", body))
        sums = re.findall(rf"\(?\b{re.escape(counter)}\s*\+\s*(\w+)\b", body)
        if inner & set(sums):
            return True
    return False


def _number(code: str, text: str) -> int | None:
    """The value of a literal or of a constant that the source gives a literal."""
    if not text.isdigit():
        given = re.search(rf"\b{re.escape(text)}\s*=\s*(\d{{1,9}})\b", code)
        if given is None:
            return None
        text = given[1]
    return int(text[:9])


def _algorithm(found: Constructs, live: Live) -> int:
    """As on devices; approximated functions restate a formula, recursion divides the work."""
    approximated = found.horner > 0 or found.tables > 0 or found.bit_casts > 0 or any(map(_BITS.match, found.calls))
    online = found.rescaled > 0
    if found.recursive or (approximated and online):
        return 3
    level = levels_algorithm.algorithm(live)
    if approximated or online:
        return max(2, level)
    return max(level, int(bool(found.fused_loops or found.reciprocals)))


def _parallelism(found: Constructs, code: str) -> int:
    """0 independent threads; 1 barriers between phases; 2 reductions and horizontal SIMD; 3 atomics, critical sections,
    partial results of threads that are combined."""
    omp = [set(words) for words in found.pragmas if words[:1] == ("omp",)]
    names = list(found.names())
    if any(words & {"atomic", "critical", "ordered"} for words in omp) or any(map(_ATOMIC.match, names)):
        return 3
    barrier = any("barrier" in words for words in omp) or any(map(_BARRIER.match, names))
    threaded = (
        barrier
        or any(words & {"parallel", "taskloop", "task"} for words in omp)
        or any(re.match(r"std::(?:j?thread|async|execution::par)", name) for name in names)
    )
    if threaded and _combines(code):
        return 3
    if any("reduction" in words for words in omp) or any(_HORIZONTAL.match(call) for call in found.calls):
        return 2
    return int(barrier)


def _combines(code: str) -> bool:
    """A thread stores what it has accumulated into an array, and the array is summed up afterwards."""
    for match in list(re.finditer(r"(?<![\w.])(\w+)\s*\[\s*\w+\s*\]\s*=\s*(\w+)\s*;", code))[:50]:
        array, value = re.escape(match[1]), re.escape(match[2])
        grown = re.search(rf"(?<![\w.]){value}\s*\+=", code[: match.start()])
        rest = code[match.end() :]
        summed = re.search(rf"\+=\s*{array}\s*\[|\b(?:accumulate|reduce)\s*\(\s*(?:\w+\(\s*)?{array}\b", rest)
        if grown and summed:
            return True
    return False
