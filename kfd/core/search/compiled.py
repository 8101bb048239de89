"""Behaviour corrected by the compiled form (DESIGN, section 7): what was built goes before what the source says.

Compilers remove what does nothing and vectorise by themselves, so what is seen holds and what is not there is not
claimed any more. They cannot show why shared memory is used (a tile or an exchange) nor what is computed: that stays
with the source.
"""

from __future__ import annotations

from kfd.base.evidence import Evidence

__all__ = ["refined"]


def refined(levels: tuple[int, int, int], seen: Evidence) -> tuple[int, int, int]:
    """Memory, algorithm and parallelism, 0 to 3: those of the source (``levels``), corrected by what was ``seen``."""
    memory, algorithm, parallelism = levels
    if seen.shared is False:
        memory = min(memory, 2)  # a block in registers may be left, one level of tiles
    elif seen.ahead and memory == 2:
        memory = 3
    if seen.wide:
        memory = max(memory, 1)
    elif seen.scalar and memory == 1:
        memory = 0
    inside = 1 if seen.barriers is not False and seen.shared is not False else 0
    if seen.global_atomics:
        parallelism = 3
    elif parallelism == 3 and seen.global_atomics is False and seen.kernels == 1:
        parallelism = 2 if seen.shuffles is not False else inside
    if seen.shuffles:
        parallelism = max(parallelism, 2)
    elif parallelism == 2 and seen.shuffles is False:
        parallelism = inside
    if parallelism == 1 and seen.barriers is False:
        parallelism = 0
    return memory, algorithm, parallelism
