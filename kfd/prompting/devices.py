"""Behaviour of device code: the levels of ``features`` read from what OpenCL C, SYCL, CUDA and Triton offer.

A construct counts on one axis only (paper notes, section 1): a barrier beside local memory is part of its tiles, so
parallelism begins where work-items exchange values without it.
"""

from __future__ import annotations

import re

from kfd.prompting import pylexing
from kfd.prompting.constructs import Constructs

__all__ = ["algorithm", "memory", "parallelism", "triton"]

_MAX_TEXT = 128 << 10

_SHARED = re.compile(
    r"\b__shared__\b|\b(?:__)?local\s+(?:(?:const|volatile|unsigned)\s+)*\w+\s*\*?\s*\w+\s*[\[,);]"
    r"|\bwork_group_static\b|\blocal_accessor\b|\bgroup_local_memory(?:_for_overwrite)?\b"
)
_WIDE = re.compile(
    r"\b(?:make_)?(?:u?(?:char|short|int|long)|float|double|half|bfloat16)(?:2|3|4|8|16)\b"
    r"|\bv(?:load|store)(?:_half|a_half)?(?:2|3|4|8|16)\b|\bsycl::vec\b|\bmarray\b|\b__half2\b|\b__nv_bfloat162\b"
    r"|\bsub_group_block_(?:read|write)\w*|\bintel_sub_group_block_(?:read|write)\w*"
)
_AHEAD = re.compile(
    r"\b(?:__pipeline_memcpy_async|memcpy_async|async_work_group_(?:strided_)?copy|__builtin_prefetch|prefetch\w*"
    r"|cp_async\w*|__ldg|__ldcs|__stcs|__stwt)\s*\("
)
_BARRIER = re.compile(
    r"\b(?:__syncthreads\w*|__syncwarp|(?:work_group_|sub_group_)?barrier|group_barrier)\s*\(|\bsync\s*\(\s*\)"
)
_EXCHANGE = re.compile(
    r"\b(?:__shfl\w*|__reduce_\w+_sync|__ballot_sync|__any_sync|__all_sync"
    r"|(?:intel_)?sub_group_(?:reduce|scan|shuffle|broadcast|all|any|ballot)\w*|work_group_(?:reduce|scan|broadcast|all|any)\w*"
    r"|reduce_over_group|(?:inclusive|exclusive)_scan_over_group|group_broadcast|shift_group_(?:left|right)"
    r"|permute_group_by_xor|select_from_group|joint_reduce)\b"
)
_GLOBAL = re.compile(
    r"\b(?:atomic(?:Add|Sub|Exch|Min|Max|Inc|Dec|CAS|And|Or|Xor)\w*|atom(?:ic)?_\w+|atomic_ref|__threadfence|grid_group)\b"
)
_MATRIX = re.compile(r"\b(?:wmma|mma_sync|joint_matrix\w*|__dp4a|dot_acc_sat|wgmma\w*)\b")
_QUICK = re.compile(
    r"\b(?:native_\w+|half_(?:exp|log|sin|cos|rsqrt|sqrt|powr|recip|divide)\w*|__(?:exp|log|sin|cos|tan|pow)\w*f|__fdividef"
    r"|__frcp_\w+|exp2f?|fast_\w+)\s*\("
)


def memory(found: Constructs) -> int:
    """0 one element at a time; 1 wide loads; 2 tiles in local memory; 3 tiles with wide or planned-ahead traffic,
    registers or matrix units."""
    code = found.code
    shared = _SHARED.search(code) is not None
    ahead = _AHEAD.search(code) is not None
    wide = found.vector_types or _WIDE.search(code) is not None
    # An array of a work-item is registers; the local ones are counted by the grammar as well.
    registers = found.buffers > len(_SHARED.findall(code))
    if (shared and (ahead or wide or registers)) or _MATRIX.search(code):
        return 3
    if shared or found.blocked_loops:
        return 2
    return 1 if wide or ahead or registers else 0


def algorithm(found: Constructs, host: int) -> int:
    """As in host form (``host``); the device's quick functions are approximations as well."""
    return max(host, 2 if _QUICK.search(found.code) else 0)


def parallelism(found: Constructs) -> int:
    """0 independent work-items; 1 barriers; 2 values exchanged in a group without local memory; 3 atomics or a
    meeting of the whole grid."""
    code = found.code
    if _GLOBAL.search(code):
        return 3
    if _EXCHANGE.search(code):
        return 2
    return 1 if _BARRIER.search(code) else 0


_TL_BLOCK = re.compile(r"\b(?:tl|language)\.arange\s*\(")
_TL_TILE = re.compile(
    r"\b(?:tl|language)\.(?:make_block_ptr|make_tensor_descriptor|dot|dot_scaled)\s*\(|\[\s*:\s*,\s*None\s*\]"
)
_TL_AHEAD = re.compile(
    r"\b(?:cache_modifier|eviction_policy|num_stages|warp_specialize|multiple_of|max_contiguous)\b"
    r"|\b(?:tl|language)\.(?:range|make_tensor_descriptor)\s*\("
)
_TL_REDUCE = re.compile(
    r"\b(?:tl|language)\.(?:sum|max|min|argmax|argmin|reduce|associative_scan|cumsum|cumprod|xor_sum|sort|softmax)\s*\("
)
_TL_GLOBAL = re.compile(r"\b(?:tl|language)\.(?:atomic_\w+|debug_barrier)\s*\(")
_TL_LOOP = re.compile(r"^[ \t]*(?:for|while)\b", re.M)
_TL_ONLINE = re.compile(r"^[ \t]*(\w{1,64})[ \t]*=[ \t]*\1[ \t]*\*[^\n=]{1,200}\+", re.M)
_TL_QUICK = re.compile(r"\b(?:tl|language|libdevice|math)\.(?:exp2|fast_\w+|rsqrt)\s*\(|\binline_asm_elementwise\b")
_TL_ONCE = re.compile(r"\b1(?:\.0*)?[ \t]*/(?!/)")


def triton(text: str) -> tuple[int, int, int]:
    """Memory, algorithm and parallelism of a Triton kernel, 0 to 3 each.

    Memory: single elements, blocks, tiles of two dimensions, tiles with hints or several stages. Algorithm: as in host
    form. Parallelism: nothing, a loop of programs over blocks, reductions inside a block, atomics.
    """
    code = pylexing.code_only(text[:_MAX_TEXT])
    tile = _TL_TILE.search(code) is not None
    hinted = _TL_AHEAD.search(code) is not None
    block = _TL_BLOCK.search(code) is not None
    levels = 3 if tile and hinted else 2 if tile or (block and hinted) else int(block)
    online = _TL_ONLINE.search(code) is not None
    quick = _TL_QUICK.search(code) is not None
    form = 3 if online and quick else 2 if online or quick else int(_TL_ONCE.search(code) is not None)
    if _TL_GLOBAL.search(code):
        shared = 3
    elif _TL_REDUCE.search(code):
        shared = 2
    else:
        shared = int(_TL_LOOP.search(code) is not None)
    return levels, form, shared
