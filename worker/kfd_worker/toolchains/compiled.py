"""Readers of the compiled form: machine code as text, PTX, SPIR-V words. Pure.

The text comes out of a build box: the compiler's output of a stranger's source. Every reader is bounded and linear.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

from kfd.base.evidence import Evidence

__all__ = ["LIST_PTX", "LIST_X86", "from_objdump", "from_ptx", "from_sass", "from_spirv", "split_listing"]

_MAX_TEXT = 8 << 20
_MAX_WORDS = 2 << 20
_LENGTH = 8

_GIVE = 'printf "%08d\\n" "$(wc -c < "$listing")"; cat "$listing"'
LIST_X86 = (
    'listing=/scratch/listing; objdump -d --no-show-raw-insn "$object" 2>/dev/null | head -c 8388608 | '
    "awk '{ key = $2 ($0 ~ /[(]/) } !(key in seen) { seen[key]; print }' | head -c 65536 > \"$listing\"; " + _GIVE
)
"""Shell text that lists ``$object``: the first line of each instruction, with and without an access of memory."""

LIST_PTX = (
    "listing=/scratch/listing; cat /scratch/*.ptx 2>/dev/null | head -c 8388608 | "
    "awk '/[.]entry/ { print; next } { key = $1 ~ /^@/ ? $2 : $1 } !(key in seen) { seen[key]; print }' | "
    'head -c 65536 > "$listing"; ' + _GIVE
)
"""Shell text that lists the PTX files that a compiler kept: every entry, and the first line of each instruction."""


def split_listing(stdout: bytes) -> tuple[str, bytes]:
    """(listing, payload) of a build box's standard output: the listing's length in eight digits and a line end, the
    listing, then the payload. Output that does not begin so is all payload."""
    head = stdout[:_LENGTH]
    if len(head) < _LENGTH or not head.isdigit() or stdout[_LENGTH : _LENGTH + 1] != b"\n":
        return "", stdout
    end = _LENGTH + 1 + int(head)
    return stdout[_LENGTH + 1 : end].decode("utf-8", "replace"), stdout[end:]


# ---- text

_SASS = re.compile(r"^\s{0,40}/\*[0-9a-f]{4,8}\*/\s{1,40}(?:@!?U?P[T0-9]\s{1,8})?([A-Z][A-Z0-9_.]{1,60})", re.M)
_SASS_KERNEL = re.compile(r"^\s{0,40}Function : ", re.M)


def from_sass(text: str) -> Evidence:
    """NVIDIA machine code as ``cuobjdump -sass`` prints it; nothing is known from a text without instructions.

    Accesses of 64 bits may be one double or two floats and say nothing. ``REDUX`` and ``VOTE`` are also what the
    compiler makes of atomics, so they do not prove a shuffle, nor that there is none.
    """
    found = set(_SASS.findall(text[:_MAX_TEXT]))
    if not found:
        return Evidence()
    roots = {name.partition(".")[0] for name in found}
    wide = any(re.match(r"(?:LDG|STG|LD|ST)\..*\b128\b", name) for name in found)
    maybe = bool(roots & {"REDUX", "VOTE", "VOTEU", "MATCH"})
    return Evidence(
        wide=wide or None,
        shared=bool(roots & {"LDS", "STS", "LDSM", "STSM", "ATOMS", "LDGSTS", "UBLKCP", "UTMALDG"}),
        ahead=bool(roots & {"LDGSTS", "UBLKCP", "UTMALDG", "CCTL", "UBLKPF", "UTMAPF"}),
        barriers="BAR" in roots,
        shuffles=True if "SHFL" in roots else None if maybe else False,
        global_atomics=bool(roots & {"ATOM", "ATOMG", "RED", "REDG"}),
        kernels=len(_SASS_KERNEL.findall(text[:_MAX_TEXT])) or None,
    )


_PTX = re.compile(r"^\s{0,40}(?:@!?%p\d{1,6}\s{1,8})?([a-z][a-z0-9_]{0,20}(?:[.:][a-z0-9_:]{1,40}){0,12})[ \t;]", re.M)
_PTX_KERNEL = re.compile(r"^\s{0,40}(?:\.visible\s{1,8})?\.entry\b", re.M)


def from_ptx(text: str) -> Evidence:
    """PTX as nvcc writes it; nothing is known from a text without an entry."""
    text = text[:_MAX_TEXT]
    kernels = len(_PTX_KERNEL.findall(text))
    if not kernels:
        return Evidence()
    found = set(_PTX.findall(text))

    def any_of(pattern: str) -> bool:
        return any(re.match(pattern, name) for name in found)

    return Evidence(
        wide=any_of(r"(?:ld|st)\.(?!param|shared|local)[\w.:]*\.v[248]\b"),
        shared=any_of(r"(?:ld|st|atom|red|ldmatrix|stmatrix|cp)\b[\w.:]*\.shared"),
        ahead=any_of(r"cp\.async|prefetch"),
        barriers=any_of(r"(?:bar|barrier)\.(?:cta\.)?(?:sync|red)"),
        shuffles=any_of(r"shfl\.|vote\.|redux\.|match\."),
        global_atomics=any_of(r"(?:atom|red)\.(?!async)(?![\w.:]*\.?shared)"),
        kernels=kernels,
    )


_X86 = re.compile(
    r"^\s{0,12}[0-9a-f]{1,16}:\t(?:[0-9a-f]{2} ){0,16}\s{0,60}"
    r"((?:lock |notrack |bnd )?[a-z][a-z0-9]{1,20})([^\n]{0,200})",
    re.M,
)
_PACKED = re.compile(
    r"v?mov(?:u|a|nt)p[sd]$|v?movdq[ua](?:8|16|32|64)?$|v?lddqu$|v?(?:add|sub|mul|div|max|min|sqrt|and|xor)p[sd]$"
    r"|vfn?m(?:add|sub)\d{3}p[sd]$|vbroadcasts[sd]$|vgather\w+p[sd]$|v?cvt\w*p[sd]\w*$"
)


def from_objdump(text: str) -> Evidence:
    """x86 machine code as ``objdump -d`` prints it: whether any access of memory is packed, and prefetches.

    The optimiser packs by itself, so packed accesses say nothing of the author; that there are none says that the
    kernel is scalar, whatever its pragmas claim. Horizontal operations are also what copying and interleaving make, and
    locked instructions what OpenMP's reductions end with, so parallelism stays with the source.
    """
    instructions = [(match[1], match[2]) for match in _X86.finditer(text[:_MAX_TEXT])]
    if not instructions:
        return Evidence()
    return Evidence(
        scalar=not any(_PACKED.match(name) and "(" in rest for name, rest in instructions),
        ahead=any(name.startswith("prefetch") or "movnt" in name for name, _ in instructions),
    )


# ---- SPIR-V

_MAGIC = 0x07230203
_WORKGROUP, _GENERIC = 4, 8
_GROUP_SCOPES = frozenset((2, 3))  # Workgroup, Subgroup
_GLOBAL_CLASSES = frozenset((5, 12))  # CrossWorkgroup, StorageBuffer
_ENTRY_POINT, _EXTENDED = 15, 12
_TYPE_VECTOR, _TYPE_POINTER, _CONSTANT = 23, 32, 43
_LOAD, _STORE = 61, 62
_TYPED = frozenset((55, 59, 61, 65, 66, 67, 70, 83, 84, 121, 122, 124, 169, 245))
"""Instructions whose result may be a pointer: parameter, variable, load, access chains, copy, casts, select, phi."""
_ATOMICS = frozenset((*range(227, 243), 5614, 5615, 6035))
_ATOMIC_STORE = 228
_GROUP = frozenset((*range(261, 272), *range(333, 367), *range(5571, 5577), *range(4421, 4432)))
"""Operations of groups and sub-groups: reductions, scans, votes, broadcasts, shuffles."""
_ASYNC_COPY = 259
_BARRIER = 224
_VLOAD = frozenset((171, 172, 173, 174, 175, 176, 177, 178, 179, 180))
_PREFETCH = 182


def _instructions(words: tuple[int, ...]) -> Iterator[tuple[int, tuple[int, ...]]]:
    at = 5
    while at < len(words):
        length, code = words[at] >> 16, words[at] & 0xFFFF
        if length == 0 or at + length > len(words):
            return
        yield code, words[at + 1 : at + length]
        at += length


def from_spirv(module: bytes) -> Evidence:
    """A SPIR-V module, little-endian words; nothing is known from anything else."""
    count = min(len(module) // 4, _MAX_WORDS)
    words = struct.unpack(f"<{count}I", module[: 4 * count])
    if count < 6 or words[0] != _MAGIC:
        return Evidence()
    pointers: dict[int, tuple[int, int]] = {}  # type of a pointer: storage class, type that it points to
    types: dict[int, int] = {}  # type of a value that may be a pointer
    constants: dict[int, int] = {}
    vectors: set[int] = set()
    seen: set[str] = set()
    kernels = 0
    for code, rest in _instructions(words):
        kernels += code == _ENTRY_POINT
        if code == _TYPE_VECTOR and rest:
            vectors.add(rest[0])
        elif code == _TYPE_POINTER and len(rest) > 2:
            pointers[rest[0]] = (rest[1], rest[2])
        elif code in _TYPED and len(rest) > 1:
            types[rest[1]] = rest[0]
        elif code == _CONSTANT and len(rest) > 2:
            constants[rest[1]] = rest[2]
        if code in _ATOMICS and len(rest) > 3:
            target, scope = rest[:2] if code == _ATOMIC_STORE else rest[2:4]
            storage, _ = pointers.get(types.get(target, 0), (0, 0))
            # Behind a generic pointer only the scope tells.
            inside = storage == _WORKGROUP or (storage == _GENERIC and constants.get(scope, 0) in _GROUP_SCOPES)
            seen.add("shared" if inside else "atomic")
        seen |= _meaning(code, rest, pointers, types, vectors)
    return Evidence(
        wide="wide" in seen,
        shared="shared" in seen,
        ahead="ahead" in seen,
        barriers="barrier" in seen,
        shuffles="group" in seen,
        global_atomics="atomic" in seen,
        kernels=kernels or None,
    )


def _meaning(
    code: int,
    rest: tuple[int, ...],
    pointers: dict[int, tuple[int, int]],
    types: dict[int, int],
    vectors: set[int],
) -> set[str]:
    """What one instruction shows."""
    if code in (_LOAD, _STORE) and len(rest) > 2 - (code == _STORE):
        storage, pointee = pointers.get(types.get(rest[2] if code == _LOAD else rest[0], 0), (0, 0))
        wide = {"wide"} if storage in _GLOBAL_CLASSES and pointee in vectors else set()
        return wide | ({"shared"} if storage == _WORKGROUP else set())
    if code == _BARRIER:
        return {"barrier"}
    if code in _GROUP:
        return {"group"}
    if code == _ASYNC_COPY:
        return {"ahead", "shared"}
    if code == _EXTENDED and len(rest) > 3:
        return {"wide"} if rest[3] in _VLOAD else {"ahead"} if rest[3] == _PREFETCH else set()
    return set()
