"""Memory and parallelism of CUDA, OpenCL C and SYCL kernels (levels of the paper, section 1), as they execute.

A construct counts on one axis: shared memory that is filled from global memory is a tile and counts on memory with its
barriers; shared memory through which threads hand on what they computed counts on parallelism.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice

from kfd.prompting.levels_preprocess import split_arguments
from kfd.prompting.levels_source import Function, Live

__all__ = ["Shared", "memory", "parallelism", "private_accumulators", "shared_arrays"]

_MAX_USES = 400

_DECLARED = re.compile(
    r"\b__shared__\b(?P<cuda>[^;{}()]{1,300}(?:\([^()]*\)[^;{}()]{0,300})?)[;{=]"
    r"|\b(?:__)?local\b\s+(?P<opencl>[^;{}()]{1,300})[;),]"
    r"|\bwork_group_static\s*<[^;]{1,200}?>\s*(?P<static>\w+)\s*[;{]"
    r"|\blocal_accessor\s*<[^;(]{1,200}>\s*(?P<accessor>[^;]{1,300});"
    r"|(?P<group>\w+)\s*=\s*\*?\s*(?:\w+::)*group_local_memory(?:_for_overwrite)?\b"
)
_NAME = re.compile(r"[A-Za-z_]\w*")
_ALIAS = re.compile(r"[&*]\s*(\w+)\s*=\s*&?\s*(\w+)\b")
_INDEX = r"((?:\s*\[[^\[\]]{0,200}(?:\[[^\[\]]{0,100}\][^\[\]]{0,100}){0,8}\]){0,6})"
_WRITE = re.compile(
    rf"(?<![.\w>])(?P<name>\w+){_INDEX}\s*(?P<sign>\+\+|--|<<=|>>=|[-+*/|&^%]=|=(?!=))\s*(?=(?P<value>[^;]{{0,600}}))"
)
_READ = re.compile(r"(?<![.\w>])(\w+)\s*\[|\b(?:vload\w*|__ldg|__ldcs|sub_group_block_read\w*)\s*\(|\*\s*\(")
_COPY = re.compile(
    r"\b(?:async_work_group_(?:strided_)?copy|async_group_copy|joint_async_work_group_copy|__pipeline_memcpy_async"
    r"|memcpy_async|cp_async\w*)\s*\(([^;]{1,400});"
)
_ATOMIC = re.compile(
    r"\b(?:atomic(?:Add|Sub|Exch|Min|Max|Inc|Dec|CAS|And|Or|Xor)\w*|atom(?:ic)?_(?!ref\b|int\b|uint\b|fence\b)\w+)\s*"
    r"\(([^;]{1,300})"
    r"|\batomic_ref\s*<(?P<scope>[^;()]{1,300})>\s*\w*\s*\((?P<of>[^;]{1,200})"
)
_AHEAD = re.compile(
    r"\b(?:async_work_group_(?:strided_)?copy|async_group_copy|joint_async_work_group_copy|__pipeline_memcpy_async|memcpy_async"
    r"|cp_async\w*|joint_prefetch|prefetch|__builtin_prefetch|__prefetch_global_\w+)\s*\("
)
_WIDE = re.compile(
    r"\b(?:make_)?(?:u?(?:char|short|int|long)|float|double|half|bfloat16)(?:2|3|4|8|16)\b"
    r"|\bv(?:load|store)a?(?:_half)?(?:2|3|4|8|16)\b|\bvec\s*<|\bmarray\s*<|\b__half2\b|\b__nv_bfloat162\b"
    r"|\b(?:intel_)?sub_group_block_(?:read|write)\w*|\bgroup_(?:load|store)\s*\("
)
_BARRIER = re.compile(
    r"\b(?:__syncthreads\w*|(?:work_group_)?barrier|group_barrier)\s*\(|\bsync\s*\(\s*\)|\bsync_threads\s*\("
)
_EXCHANGE = re.compile(
    r"\b(?:__shfl\w*|__reduce_\w+_sync|__ballot_sync|__any_sync|__all_sync|__match_\w+_sync"
    r"|(?:intel_)?sub_group_(?:non_uniform_|clustered_)?(?:reduce|scan|shuffle|broadcast|all|any|ballot|rotate)\w*"
    r"|work_group_(?:reduce|scan|broadcast|all|any)\w*|reduce_over_group|(?:inclusive|exclusive)_scan_over_group"
    r"|(?:any|all|none)_of_group|group_broadcast|shift_group_(?:left|right)|permute_group_by_xor|select_from_group"
    r"|joint_(?:reduce|inclusive_scan|exclusive_scan|any_of|all_of)|(?:Block|Warp)(?:Reduce|Scan)|group_ballot)\s*[(<]"
    r"|\.\s*(?:shfl(?:_up|_down|_xor)?|ballot|match_any)\s*\(|\bcg::(?:reduce|inclusive_scan|exclusive_scan)\b"
    r"|(?<![.\w])(?:sycl::)?reduction\s*\("
)
_GRID = re.compile(r"\b(?:this_grid|this_cluster|barrier_cluster\w*|get_root_group|ext_oneapi_get_root_group)\s*\(")
_THREAD = re.compile(
    r"\bthreadIdx\b|\bget_(?:local|global)(?:_linear)?_id\b|\bget_sub_group_local_id\b|\bthread_rank\b"
    r"|\bget_local_linear_id\b"
)
_GROUP = re.compile(r"\bblockIdx\b|\bget_group(?:_linear)?(?:_id)?\b")
_DECLARATION = re.compile(r"\b(?P<name>\w+)\s*(?:=(?!=))\s*(?=(?P<value>[^;,]{1,300}))")
_LOOP = re.compile(r"\bfor\s*\((?P<first>[^;]{0,300});[^;]{0,300};(?P<step>[^;{}]{0,200}?)\)\s*(?=[^\s);,])")
_STEP = re.compile(
    r"(?P<name>\w+)\s*\+=\s*(?P<by>[^,]{1,100})|(?P<again>\w+)\s*=\s*(?P=again)\s*\+\s*(?P<more>[^,]{1,100})"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """Shared memory of a kernel, by the names it has anywhere in it."""

    tiles: frozenset[str]
    """Filled from global memory only."""
    exchanged: frozenset[str]
    """Everything else: partial results, state, counters."""
    doubled: bool
    """A tile has several copies, and an index alternates between them."""


def memory(live: Live, shared: Shared) -> int:
    """0 single elements; 1 wide or coalesced; 2 one level of tiles; 3 tiles over registers, or planned ahead."""
    code = live.code
    registers = bool(private_accumulators(code, shared))
    if shared.tiles:
        return 3 if registers or shared.doubled or _AHEAD.search(code) else 2
    if registers:
        return 2
    return 1 if _WIDE.search(code) or _coalesced(code) else 0


def parallelism(live: Live, shared: Shared) -> int:
    """0 independent threads; 1 shared memory and barriers; 2 sub-group and group operations; 3 across groups."""
    code = live.code
    local = shared.tiles | shared.exchanged
    in_group = False
    for match in islice(_ATOMIC.finditer(code), _MAX_USES):
        target = match["of"] or match[1] or ""
        if "work_group" in (match["scope"] or "") or _base(target) in local:
            in_group = True
        else:
            return 3
    if _GRID.search(code) or _two_passes(live):
        return 3
    if _EXCHANGE.search(code):
        return 2
    alone = not local and _BARRIER.search(code) is not None
    return 1 if shared.exchanged or in_group or alone else 0


# ---- shared memory


def shared_arrays(live: Live) -> Shared:
    """What a kernel's shared memory is for, by what is written into it."""
    code = live.code
    declared = _declared_names(code)
    names = _handed_on(live, set(declared))
    if not names:
        return Shared(tiles=frozenset(), exchanged=frozenset(), doubled=False)
    private = set(re.findall(r"\b(?:float|double|int|half|uint|unsigned)\s+(\w+)\s*\[", code)) - names
    loaded, fetched = _loaded_values(code, names | private), _fetched_values(code, names)
    outer, own, other = set(), set(), set()
    for match in islice(_WRITE.finditer(code), _MAX_USES):
        name, value = match["name"], match["value"]
        if name not in names or _is_declaration(code, match):
            continue
        words = set(_NAME.findall(value))
        if _reads_elsewhere(name, match[2], value) or words & fetched:
            own.add(name)
        elif match["sign"] != "=" or name in words:
            other.add(name)  # in its own place: what is in a tile may be changed there
        elif _reads_outside(value, names | private) or words & loaded:
            outer.add(name)
        elif not re.fullmatch(r"[-+.\w]*", value.strip()) or re.match(r"[A-Za-z_]", value.strip()):
            other.add(name)
    copied = {_base(split_arguments(match[1])[0]) for match in _COPY.finditer(code)} & names
    tiles = ((outer - own) | copied) & names
    doubled = any(
        re.search(rf"\b{re.escape(name)}\s*\[[^\]]*(?:\^|\b1\s*-|%\s*[234]\b|&\s*1\b)[^\]]*\]", code)
        and re.search(rf"\b{re.escape(name)}\s*(?:\[\s*\w+\s*\]\s*)*\[|\[\s*[2-4]\s*\]", code)
        and _has_copies(code, name)
        for name in tiles
    )
    atomics = {_base(match["of"] or match[1] or "") for match in _ATOMIC.finditer(code)} & names
    return Shared(tiles=frozenset(tiles), exchanged=frozenset((own | other | atomics) - tiles), doubled=doubled)


def _has_copies(code: str, name: str) -> bool:
    """Whether an array is declared with two to four copies of a tile."""
    return (
        re.search(rf"\b{re.escape(name)}\s*\[\s*[2-4]\s*\]\s*\[", code) is not None
        or re.search(rf"\[\s*[2-4]\s*\]\s*\[[^;]{{1,100}}>\s*{re.escape(name)}\b", code) is not None
    )


def _is_declaration(code: str, match: re.Match[str]) -> bool:
    before = code[max(0, match.start() - 40) : match.start()]
    return re.search(r"\b(?:__shared__|local|float|double|int|half|uint|auto|unsigned)\s*[&*]?\s*$", before) is not None


def _declared_names(code: str) -> list[str]:
    names: list[str] = []
    for match in islice(_DECLARED.finditer(code), 100):
        single = match["static"] or match["group"]
        if single:
            names.append(single)
            continue
        text = match["cuda"] or match["opencl"] or match["accessor"] or ""
        text = re.sub(r"(?:__align__|alignas)\s*\([^()]*\)", "", text)
        for part in split_arguments(text):
            named = re.search(r"(\w+)\s*(?:\[.*|\(.*|\{.*)?$", re.sub(r"\s*=.*", "", part), re.S)
            if named:
                names.append(named[1])
    return [name for name in names if not name.isdigit()]


def _handed_on(live: Live, names: set[str]) -> set[str]:
    """The names and those of pointers, references and parameters that stand for the same memory."""
    by_name: dict[str, Function] = {function.name: function for function in live.functions if function.name}
    calls = re.compile(rf"\b({'|'.join(map(re.escape, by_name))})\s*(?:<[^<>;]{{0,200}}>)?\s*\(") if by_name else None
    for _ in range(2):
        names |= {match[1] for match in _ALIAS.finditer(live.code) if match[2] in names}
        for match in islice(calls.finditer(live.code), _MAX_USES) if calls else ():
            given = split_arguments(live.code[match.end() : match.end() + 600])
            for argument, parameter in zip(given, by_name[match[1]].parameters, strict=False):
                if _base(argument) in names and ("*" in parameter or "[" in parameter or "&" in parameter):
                    named = re.search(r"(\w+)\s*(?:\[.*)?$", parameter)
                    names |= {named[1]} if named else set()
    return names


def _base(argument: str) -> str:
    """The variable that an argument points into; empty when there is none."""
    found = re.match(r"[\s&*(]*(?:\([^()]*\)\s*)?[\s&*(]*([A-Za-z_]\w*)", argument)
    return found[1] if found else ""


def _reads_outside(value: str, inside: set[str]) -> bool:
    return any(match[1] is None or match[1] not in inside for match in _READ.finditer(value))


def _reads_elsewhere(name: str, index: str, value: str) -> bool:
    """Whether a written value is computed from another place of the same memory."""
    places = re.findall(rf"\b{re.escape(name)}\b{_INDEX}", value)
    return any(re.sub(r"\s", "", place) != re.sub(r"\s", "", index) for place in places)


def _fetched_values(code: str, names: set[str]) -> set[str]:
    """Variables that hold an element of shared memory as it was read."""
    held = re.compile(r"(?<![.\w>])(\w+)\s*=\s*(?:[^?;]{1,200}\?\s*)?(\w+)\s*\[[^;]{1,200}?\](?:\s*:[^;]{1,60})?;")
    return {match[1] for match in islice(held.finditer(code), _MAX_USES) if match[2] in names} - names


def _loaded_values(code: str, inside: set[str]) -> set[str]:
    """Variables that hold an element of global memory as it was loaded, and are never accumulated into."""
    loaded, changed = set(), set()
    for match in islice(_WRITE.finditer(code), _MAX_USES):
        if match[2].strip():
            continue
        pure = re.fullmatch(r"(?:[^?;]{1,200}\?)?\s*\(?\s*\*?[\w()<>*\s:]*\[[^;?]{1,300}", match["value"])
        if match["sign"] == "=" and pure and _reads_outside(match["value"], inside):
            loaded.add(match["name"])
        else:
            changed.add(match["name"])
    return loaded - changed


# ---- registers, coalescing, passes


def private_accumulators(code: str, shared: Shared) -> set[str]:
    """Arrays of one thread with a constant extent that are accumulated into: a block in registers."""
    taken = shared.tiles | shared.exchanged
    found = set()
    for match in list(
        re.finditer(r"(?<![\w<])(\w+)\s+(?:\w+\s*,\s*)*(\w+(?:\s*\[[^\];]{0,100}\])+[^;()]{0,300});", code)
    )[:100]:
        if match[1] in ("return", "typename"):
            continue
        for name in re.findall(r"(\w+)\s*\[", match[2]):
            if name in taken:
                continue
            word = re.escape(name)
            grown = (
                rf"\b{word}\b{_INDEX}\s*(?:\+=|=[^;=][^;]{{0,200}}\b{word}\s*\[[^;]{{0,200}}[*,+]"
                rf"|=\s*[\w:]{{0,40}}(?:fma|mad)\w*\s*\([^;]{{0,200}}\b{word}\s*\[)"
            )
            if re.search(grown, code):
                found.add(name)
    return found


def _coalesced(code: str) -> bool:
    """A loop that walks by the width of a group, or an index that adds such steps to a thread's number."""
    threads = {"threadIdx"}
    for _ in range(2):
        for match in islice(_DECLARATION.finditer(code), _MAX_USES):
            words = set(re.findall(r"\w+", match["value"]))
            if _THREAD.search(match["value"]) or words & threads:
                threads.add(match["name"])
    counters = set()
    for match in islice(_LOOP.finditer(code), 200):
        step = _STEP.search(match["step"])
        if step is None:
            counters |= set(re.findall(r"(?:\+\+\s*)?(\w+)(?:\s*\+\+)?", match["step"]))
            continue
        by = (step["by"] or step["more"]).strip()
        from_thread = _THREAD.search(match["first"]) or set(re.findall(r"\w+", match["first"])) & threads
        if from_thread and not (by.isdigit() and int(by) < 16):
            return True
    steps = re.finditer(r"\b(\w+)(?:\.x)?\s*\+\s*(\d+)\s*\*\s*(\w+)|\b(\w+)(?:\.x)?\s*\+\s*(\w+)\s*\*\s*(\d+)", code)
    for match in list(steps)[:_MAX_USES]:
        start = match[1] or match[4]
        width, counter = (match[2], match[3]) if match[1] else (match[6], match[5])
        if (start in threads or start == "x") and counter in counters and int(width[:6]) >= 16:
            return True
    return False


def _two_passes(live: Live) -> bool:
    """A kernel that leaves one accumulated value a group, and another that accumulates these."""
    kernels = [function for function in live.functions if function.is_kernel]
    if len(kernels) < 2:
        return False
    writers = []
    for kernel in kernels:
        groups = {match["name"] for match in _DECLARATION.finditer(kernel.body) if _is_group(match["value"])}
        pattern = r"\w+\s*\[([^\[\];]{1,80})\]\s*=(?!=)"
        stored = [match[1] for match in re.finditer(pattern, kernel.body)]
        spread = re.search(r"\bgridDim\b|\bget_global_(?:id|size|range)\b", kernel.body)
        if spread and any(_is_group(index) or index.strip() in groups for index in stored):
            writers.append(kernel)
    return (
        any("+=" in other.body or "(" in other.body for other in kernels if other not in writers) if writers else False
    )


def _is_group(text: str) -> bool:
    """Whether an expression is a group's number and nothing else."""
    plain = re.sub(r"\s", "", text)
    return (
        _GROUP.search(text) is not None
        and re.fullmatch(r"blockIdx\.x|(?:\w+[.(){}:<>]*)*get_group(?:_linear)?(?:_id)?\(\d?\)(?:\[\d\])?", plain)
        is not None
    )
