"""Which kernels a cubin offers, read from its bytes; the file is hostile."""

from __future__ import annotations

import struct

from kfd_worker.toolchains.elf import ElfError

__all__ = ["kernels"]

_SHT_SYMTAB = 2
_EM_CUDA = 190
_ENTRY = 0x10
"""Bit of a symbol's ``st_other``: the function is a kernel."""
_MAX_SECTIONS = 4096
_MAX_SYMBOLS = 100_000
_MAX_NAME = 1000


def kernels(data: bytes) -> frozenset[str]:
    """Names of the kernels in device code for one architecture. Raises ElfError."""
    if data[:5] != b"\x7fELF\x02" or len(data) < 64:
        raise ElfError("not a 64-bit ELF file")
    try:
        (machine,) = struct.unpack_from("<H", data, 0x12)
        if machine != _EM_CUDA:
            raise ElfError("an ELF file, but not of device code")
        return _entries(data)
    except (struct.error, IndexError, OverflowError) as error:
        raise ElfError(f"a damaged ELF file: {error}") from error


def _entries(data: bytes) -> frozenset[str]:
    (offset,) = struct.unpack_from("<Q", data, 0x28)
    size, count = struct.unpack_from("<HH", data, 0x3A)
    sections = [
        struct.unpack_from("<IIQQQQIIQQ", data, offset + index * size) for index in range(min(count, _MAX_SECTIONS))
    ]
    names: set[str] = set()
    for _, kind, _, _, at, length, link, _, _, entry in sections:
        if kind != _SHT_SYMTAB or entry < 24:
            continue
        _, _, _, _, text_at, text_length, *_ = sections[link]
        text = data[text_at : text_at + text_length]
        for index in range(min(length // entry, _MAX_SYMBOLS)):
            name, _, other, section = struct.unpack_from("<IBBH", data, at + index * entry)
            if section and other & _ENTRY:
                end = text.find(b"\0", name, name + _MAX_NAME)
                names.add(text[name : end if end >= 0 else name + _MAX_NAME].decode("ascii", "replace"))
    return frozenset(names)
