"""Evidence of behaviour in the compiled form, and how it overrides what the source says (DESIGN, section 7).

A build may report machine code as text (SASS, PTX, x86 from ``objdump``), SPIR-V words, or only facts such as the
shared memory of a kernel. Each reader says what was seen, what was surely not, and what the form cannot tell (None).
Compilers remove what does nothing and vectorise by themselves, so what is seen holds and what is not there is not
claimed any more. They cannot show why shared memory is used (a tile or an exchange) nor what is computed: that stays
with the source.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

__all__ = ["Evidence", "from_facts", "from_objdump", "from_ptx", "from_sass", "from_spirv", "refined"]

_MAX_TEXT = 8 << 20
_MAX_WORDS = 2 << 20
_MAX_FACTS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a compiled form shows; None where it cannot tell."""

    wide: bool | None = None
    """Loads or stores of several elements at once."""
    shared: bool | None = None
    """Shared or local memory is used."""
    ahead: bool | None = None
    """Asynchronous copies into it, or prefetches."""
    barriers: bool | None = None
    shuffles: bool | None = None
    """Operations of a sub-group or group."""
    global_atomics: bool | None = None
    kernels: int | None = None


def refined(levels: tuple[int, int, int], seen: Evidence) -> tuple[int, int, int]:
    """Memory, algorithm and parallelism, 0 to 3: those of the source (``levels``), corrected by what was ``seen``."""
    memory, algorithm, parallelism = levels
    if seen.shared is False:
        memory = min(memory, 2)  # a block in registers may be left, one level of tiles
    elif seen.ahead and memory == 2:
        memory = 3
    if seen.wide:
        memory = max(memory, 1)
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


def from_ptx(text: str, *, by_triton: bool = False) -> Evidence:
    """PTX as ``nvcc -ptx`` or Triton write it; nothing is known from a text without an entry.

    Triton (``by_triton``) chooses shared memory and pipelines by itself and compiles each kernel alone, so these say
    nothing about what the author asked for.
    """
    text = text[:_MAX_TEXT]
    kernels = len(_PTX_KERNEL.findall(text))
    if not kernels:
        return Evidence()
    found = set(_PTX.findall(text))

    def any_of(pattern: str) -> bool:
        return any(re.match(pattern, name) for name in found)

    return Evidence(
        wide=any_of(r"(?:ld|st)\.(?!param|shared|local)[\w.:]*\.v[248]\b"),
        shared=None if by_triton else any_of(r"(?:ld|st|atom|red|ldmatrix|stmatrix|cp)\b[\w.:]*\.shared"),
        ahead=None if by_triton else any_of(r"cp\.async|prefetch"),
        barriers=any_of(r"(?:bar|barrier)\.(?:cta\.)?(?:sync|red)"),
        shuffles=any_of(r"shfl\.|vote\.|redux\.|match\."),
        global_atomics=any_of(r"(?:atom|red)\.(?!async)(?![\w.:]*\.?shared)"),
        kernels=None if by_triton else kernels,
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
    """x86 machine code as ``objdump -d`` prints it: packed accesses of memory, prefetches and locked instructions.

    Horizontal operations are also what copying and interleaving make, so parallelism stays with the source.
    """
    instructions = [(match[1], match[2]) for match in _X86.finditer(text[:_MAX_TEXT])]
    if not instructions:
        return Evidence()
    return Evidence(
        wide=any(_PACKED.match(name) and "(" in rest for name, rest in instructions),
        ahead=any(name.startswith("prefetch") or "movnt" in name for name, _ in instructions),
        global_atomics=True if any(name.startswith("lock ") for name, _ in instructions) else None,
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


# ---- facts

_SHARED_FACT = re.compile(r"\bshared=(\d{1,9})\b")
_BARRIER_FACT = re.compile(r"\bbarriers=(\d{1,9})\b")


def from_facts(facts: Iterable[tuple[str, str]]) -> Evidence:
    """Facts of a build (``BuildResult.facts``): static shared memory and barriers of ``ptxas``, local memory of OpenCL.

    No static shared memory proves nothing, as a launch may add dynamic; no barrier in any kernel proves there is none.
    """
    shared: list[int] = []
    barriers: list[int] = []
    for number, (name, value) in enumerate(facts):
        if number >= _MAX_FACTS:
            break
        if name.startswith("ptxas."):
            shared += [int(amount) for amount in _SHARED_FACT.findall(value[:400])]
            barriers += [int(amount) for amount in _BARRIER_FACT.findall(value[:400])]
        elif name.endswith(".local_bytes") and value.isdecimal():
            shared.append(int(value[:12]))
    return Evidence(
        shared=True if any(shared) else None,
        barriers=any(barriers) if barriers else None,
        kernels=None,
    )
