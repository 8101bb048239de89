"""Which functions a shared library offers, read from its bytes; the file is hostile."""

from __future__ import annotations

import struct

__all__ = ["ElfError", "exported_symbols"]

_SHT_DYNSYM = 11
_MAX_SYMBOLS = 200_000


class ElfError(ValueError):
    """Not a 64-bit little-endian ELF shared library that can be read."""


def exported_symbols(data: bytes) -> frozenset[str]:
    """Names of global or weak symbols that are defined in the library. Raises ElfError."""
    if data[:6] != b"\x7fELF\x02\x01" or len(data) < 64:
        raise ElfError("not a 64-bit little-endian ELF file")
    try:
        return _exported(data)
    except (struct.error, IndexError, OverflowError) as error:
        raise ElfError(f"a damaged ELF file: {error}") from error


def _exported(data: bytes) -> frozenset[str]:
    (offset,) = struct.unpack_from("<Q", data, 0x28)
    size, count = struct.unpack_from("<HH", data, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, offset + index * size) for index in range(min(count, 4096))]
    names: set[str] = set()
    for _, kind, _, _, at, length, link, _, _, entry in sections:
        if kind != _SHT_DYNSYM or entry < 24:
            continue
        _, _, _, _, text_at, text_length, *_ = sections[link]
        text = data[text_at : text_at + text_length]
        for index in range(min(length // entry, _MAX_SYMBOLS)):
            name, info, _, section = struct.unpack_from("<IBBH", data, at + index * entry)
            if section and info >> 4 in (1, 2):
                end = text.find(b"\0", name)
                names.add(text[name:end].decode("ascii", "replace"))
    return frozenset(names)
