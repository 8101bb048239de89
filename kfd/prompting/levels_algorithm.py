"""The algorithm axis of C++, CUDA, OpenCL and SYCL kernels: what the arithmetic is, from the text that they execute.

Level 1: operators fused into one pass, or fewer passes than the direct form. Level 2: the formula restated (online
softmax, Welford, implicit convolution, matrix units). Level 3: less work in order, or another algorithm (transforms,
running sums, selection by digits, linear attention). Each rule looks for the shape of an expression, never for a name
that the author chose. Tiles are memory and shuffles are parallelism: they count there.
"""

from __future__ import annotations

import re
from itertools import islice

from kfd.prompting.levels_source import Live

__all__ = ["algorithm"]

_MAX_FOUND = 300
_INDEX = r"(?:\s*\[[^\[\]]{0,200}(?:\[[^\[\]]{0,100}\][^\[\]]{0,100}){0,8}\])"
_EXP = r"(?:\w+::)*(?:native_|__)?exp(?:2|10|m1)?f?\b(?=\s*\()"
_HOLDS_EXP = re.compile(rf"\b(\w+)\s*=(?!=)\s*(?=[^;,]{{0,100}}?{_EXP})")
_RESCALED = re.compile(
    rf"(?<![.\w])(?P<name>\w+){_INDEX}*\s*(?:\*=\s*(?P<by>[\w:]+)|=\s*(?P=name){_INDEX}*\s*\*\s*(?P<factor>[\w:]+))"
)
_ADDED = re.compile(r"(?<![\w])(?P<name>[\w.]+)\s*\+=\s*(?P<value>[^;]{1,200});")
_MATRIX = re.compile(
    r"\b(?:wmma\s*::|mma_sync\s*\(|fragment\s*<|joint_matrix\s*<|joint_matrix_(?:load|mad|fill)\s*\(|wgmma\w*\s*\("
    r"|_tile_dp\w+\s*\(|intel_sub_group_\w*_matrix_mad\w*\s*\()"
)
_NONLINEAR = re.compile(
    rf"{_EXP}|\b(?:\w+::)*(?:native_|half_|__)?(?:erfc?|tanh|r?sqrt|log(?:2|10|1p)?|pow[nr]?|sin|cos|f?max|f?min|clamp|rint|round)f?\s*\("
)  # fmt: skip
_LOOP_HEAD = re.compile(r"\bfor\s*\([^;]{0,300};[^;]{0,300};[^;{}]{0,200}?\)\s*(?=[^\s);,])")
_STORE = re.compile(rf"(?<![.\w])(\w+){_INDEX}+\s*=(?!=)\s*(?=(?P<value>[^;]{{0,300}}))")


def algorithm(live: Live) -> int:
    """The level of what a kernel computes, 0 to 3."""
    code = live.code
    if any(rule(code) for rule in (_running_sum, _transformed_filter, _butterfly, _selection, _outer_state)):
        return 3
    if _online(code) or _welford(code) or _unfolded(code) or _MATRIX.search(code):
        return 2
    return int(_squares_beside_sums(code) or _kept_row(code) or _fused(live))


def _plain(text: str) -> str:
    return re.sub(r"[\s()]", "", text)


# ---- level 3


def _running_sum(code: str) -> bool:
    """A window that is moved: one element of an array is added and another of the same is taken away."""
    taken = re.finditer(r"(?<![\w.])(\w+)\s*-=\s*(\w+)\s*\[", code)
    return any(
        re.search(rf"(?<![\w.]){re.escape(match[1])}\s*\+=\s*{re.escape(match[2])}\s*\[", code)
        for match in list(taken)[:20]
    )


def _transformed_filter(code: str) -> bool:
    """The filter of Winograd's F(2, 3): ``a + b + c`` beside ``a - b + c``."""
    sums = {_plain(match[1]) for match in re.finditer(r"\(([^()+;]{1,40}\+[^()+;]{1,40}\+[^()+;]{1,40})\)", code)}
    mixed = re.finditer(r"\(([^()+;-]{1,40})-([^()+;-]{1,40})\+([^()+;-]{1,40})\)", code)
    return any(_plain(f"{match[1]}+{match[2]}+{match[3]}") in sums for match in mixed)


def _butterfly(code: str) -> bool:
    """Sum and difference of the same two values are stored, in stages that double or with roots of unity."""
    if not re.search(r"\b(?:\w+::)*(?:native_|__)?(?:sincos|cos|sin)(?:pi)?f?\s*\(|<<=\s*1\b|\*=\s*2\b", code):
        return False
    sums = {(match[1], match[2]) for match in re.finditer(r"\]\s*=\s*(\w+)\s*\+\s*(\w+)\s*;", code)}
    return any((match[1], match[2]) in sums for match in re.finditer(r"\]\s*=\s*(\w+)\s*-\s*(\w+)\s*;", code))


def _selection(code: str) -> bool:
    """Selection in linear time: by digits, shifted by a loop's counter, or by the standard library."""
    if re.search(r"\bnth_element\s*\(", code):
        return True
    digits = re.finditer(r">>\s*(\w+)\s*\)\s*&\s*\w+", code)
    return any(
        re.search(rf"\bfor\s*\([^;]{{0,100}};[^;]{{0,100}};\s*{re.escape(match[1])}\s*[-+]=\s*\w+\s*\)", code)
        for match in list(digits)[:10]
    )


def _outer_state(code: str) -> bool:
    """A matrix grows by outer products and is multiplied again: linear attention."""
    grown = re.finditer(rf"(?<![\w.])(\w+){_INDEX}{_INDEX}\s*\+=\s*\w+{_INDEX}\s*\*\s*\w+{_INDEX}\s*;", code)
    return any(re.search(rf"\*\s*{re.escape(match[1])}\s*\[", code) for match in list(grown)[:20])


# ---- level 2


def _online(code: str) -> bool:
    """An accumulator is multiplied by an exponential while it grows."""
    powers = {match[1] for match in islice(_HOLDS_EXP.finditer(code), _MAX_FOUND)}
    for match in islice(_RESCALED.finditer(code), _MAX_FOUND):
        factor = match["by"] or match["factor"]
        called = re.match(_EXP, code[match.start("by") if match["by"] else match.start("factor") :][:60])
        if (factor in powers and factor != match["name"]) or called:
            return True
    return False


def _welford(code: str) -> bool:
    """``mean += delta / n`` with ``delta = value - mean``."""
    for match in list(re.finditer(r"(?<![\w.])([\w.]+)\s*\+=\s*(\w+)\s*[/*]", code))[:50]:
        mean, delta = re.escape(match[1]), re.escape(match[2])
        if re.search(rf"\b{delta}\s*=(?!=)[^;,]{{1,120}}-\s*{mean}(?![\w.\[])", code):
            return True
    return False


def _unfolded(code: str) -> bool:
    """An index is taken apart into channel, row and column of a filter: a convolution as a product of matrices."""
    parts = re.finditer(r"\b(\w+)\s*%\s*(\w+)\s*/\s*\w+", code)
    return any(re.search(rf"\b{re.escape(match[1])}\s*/\s*{re.escape(match[2])}\b", code) for match in list(parts)[:20])


# ---- level 1


def _squares_beside_sums(code: str) -> bool:
    """Sum and sum of squares of the same values, each accumulated."""
    values = [(match["name"], _plain(match["value"])) for match in islice(_ADDED.finditer(code), _MAX_FOUND)]
    for name, value in values:
        halves = [term.split("*") for term in value.split("+")]
        if all(len(half) == 2 and half[0] == half[1] for half in halves):
            root = "+".join(half[0] for half in halves)
            if any(other != name and plain == root for other, plain in values):
                return True
    return False


_PRIVATE = re.compile(r"(?<![\w<])(?:float|double|int|half|\w+\d)\s+(?:\w+\s*,\s*)*(\w+)\s*\[[^\];]{0,100}\]\s*[;,={]")
_SHARED = re.compile(r"\b(?:__shared__|(?:__)?local)\b[^;]{0,300};")


def _private_arrays(code: str) -> set[str]:
    return set(_PRIVATE.findall(_SHARED.sub(" ", code)))


def _kept_row(code: str) -> bool:
    """A row is loaded into an array of the thread once, reduced there, and stored from it."""
    arrays = _private_arrays(code)
    if not arrays:
        return False
    stores = [(match[1], match["value"]) for match in islice(_STORE.finditer(code), _MAX_FOUND)]
    for name in arrays:
        word = rf"\b{re.escape(name)}\s*\["
        filled = any(
            target == name and re.search(r"\w\s*\[", value) and not re.search(word, value) for target, value in stores
        )
        read = any(target not in arrays and re.search(word, value) for target, value in stores)
        grown = re.search(rf"\b{re.escape(name)}{_INDEX}+\s*\+=", code)
        reduced = re.search(rf"(?:\+=|=\s*(?:\w+::)*f?max\w*\s*\()[^;]{{0,60}}{word}", code)
        if filled and read and reduced and not grown:
            return True
    return False


def _fused(live: Live) -> bool:
    """Several operators at once: more inputs than one operator has, and more than a sum or product of them."""
    code = _LOOP_HEAD.sub(" ", live.code)
    inputs = _inputs(live, code)
    if len(inputs) < 2:
        return False
    names = "|".join(map(re.escape, inputs))
    element = rf"(?:\w+\s*<[^<>;]{{1,60}}>\s*\(\s*)?\b({names})\s*\)?\s*\["
    pre = re.finditer(rf"=(?!=)\s*{element}[^;\]]{{0,80}}\]\s*\+\s*{element}", code)
    adds_first = any(match[1] != match[2] for match in list(pre)[:20])
    accumulates = re.search(r"[\w\]]\s*\+=|(\w+)\s*=\s*(?:\w+::)*(?:f?max|fma|mad)\w*\s*\([^;]{0,80}\b\1\b", code)
    if not accumulates:
        return _NONLINEAR.search(code) is not None or (len(inputs) > 2 and re.search(r"\?|/", code) is not None)
    if adds_first and re.search(r"\b(\w+)\s*\*\s*\1\b", code):
        return True
    product = re.search(rf"\+=\s*\w+{_INDEX}+\s*\*\s*\w+{_INDEX}+", code)
    biased = re.search(rf"(?:\+=|=|\+)\s*\b({names})\s*\[[^;*\]]{{1,60}}\]\s*[;)]", code)
    return bool(product and biased and (len(inputs) > 2) and _NONLINEAR.search(code))


def _inputs(live: Live, code: str) -> list[str]:
    """Pointer parameters of the kernels whose elements are read."""
    found: list[str] = []
    for parameter in [given for function in live.functions[:20] for given in function.parameters]:
        named = re.search(r"(\w+)\s*(?:\[.*)?$", parameter)
        if named is None or not re.search(r"[*\[]", parameter) or re.search(r"\blocal\b|\b__local\b", parameter):
            continue
        name = re.escape(named[1])
        read = (
            rf"\b{name}{_INDEX}(?!\s*=(?!=))|\b{name}\s*\){_INDEX}(?!\s*=(?!=))"
            rf"|vload\w*\s*\((?:[^();]|\([^()]*\)){{0,60}}\(?\s*\b{name}\b|\bload\w*\s*\([^;]{{0,200}}\b{name}\b"
        )
        if named[1] not in found and re.search(read, code):
            found.append(named[1])
    return found[:40]
