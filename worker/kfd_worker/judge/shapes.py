"""Sizes that nobody has declared, drawn so that a kernel for the declared ones must be right for them. Pure.

A size is free when the cases disagree about it. A drawn value stays between the least and the greatest declared
one, on their lattice (multiples of 128 stay multiples of 128, powers of two stay powers of two), and keeps every
relation that holds between two sizes in all declared cases (equal, not greater, divides): a kernel may rely on
what all cases have in common, and on nothing else.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence

from kfd.tasks.spec import Case

__all__ = ["hidden_cases"]

_TRIES = 200


def _power(value: int) -> bool:
    return value > 0 and value & (value - 1) == 0


def _relations(cases: Sequence[Mapping[str, int]]) -> list[Callable[[Mapping[str, int]], bool]]:
    names = sorted(cases[0])
    found: list[Callable[[Mapping[str, int]], bool]] = []
    for one in names:
        for other in names:
            if one == other:
                continue
            for holds in (_equal, _not_greater, _divides):
                if all(holds(case[one], case[other]) for case in cases):
                    found.append(lambda sizes, a=one, b=other, law=holds: law(sizes[a], sizes[b]))  # type: ignore[misc]
    return found


def _equal(a: int, b: int) -> bool:
    return a == b


def _not_greater(a: int, b: int) -> bool:
    return a <= b


def _divides(a: int, b: int) -> bool:
    return a > 0 and b % a == 0


def _drawn(values: Sequence[int], dice: random.Random) -> int:
    low, high = min(values), max(values)
    if all(map(_power, values)):
        return 1 << dice.randint(low.bit_length() - 1, high.bit_length() - 1)
    step = math.gcd(*values)
    first, last = low // step, high // step
    # Small sizes as often as big ones: the logarithm is uniform.
    count = round(math.exp(dice.uniform(math.log(max(1, first)), math.log(last))))
    count = min(last, max(first, count))
    # An odd count leaves a tail for every vector width.
    if count % 2 == 0 and count + 1 <= last:
        count += 1
    return count * step


def hidden_cases(
    cases: Sequence[Case], dice: random.Random, cost: Callable[[Case], int], most: int, count: int = 2
) -> list[Case]:
    """At most ``count`` cases that are not declared, each of at most ``most`` bytes by ``cost``.

    Empty when no size is free. ``cost`` may raise ValueError for sizes that make no shape.
    """
    declared = [dict(case.sizes) for case in cases]
    if len(declared) < 2 or len({frozenset(sizes) for sizes in declared}) != 1:
        return []
    values = {name: sorted({sizes[name] for sizes in declared}) for name in declared[0]}
    free = [name for name, seen in values.items() if len(seen) > 1 and seen[0] >= 1]
    laws = _relations(declared)
    found: list[Case] = []
    for _ in range(_TRIES if free else 0):
        sizes = dict(dice.choice(declared)) | {name: _drawn(values[name], dice) for name in free}
        case = Case(name=f"hidden-{len(found) + 1}", sizes=tuple(sizes.items()), timed=False)
        if sizes in declared or any(sizes == dict(one.sizes) for one in found) or not all(law(sizes) for law in laws):
            continue
        try:
            fits = cost(case) <= most
        except ValueError:
            continue
        if fits:
            found.append(case)
        if len(found) == count:
            break
    return found
