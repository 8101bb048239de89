"""A small tar reader and writer.

Not ``tarfile``: that one follows links, sparse maps and negative offsets (it can be made to loop), and what
it writes is a detail of its release. Here only plain files and folders exist, every length is checked
against what is there, and the bytes written are ours.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kfd.base.failure import BadInput

__all__ = ["Entry", "gunzip", "looks_like", "read", "write"]

_BLOCK = 512
_MAX_PAX = 64 << 10
_REPACK = "Make the archive again with tar or kfd-client, from plain files and folders only."


@dataclass(frozen=True, slots=True)
class Entry:
    """One plain file."""

    name: str
    data: bytes
    executable: bool = False


def looks_like(data: bytes) -> bool:
    """Whether bytes begin with a valid tar header."""
    return len(data) >= _BLOCK and _checksum_holds(data[:_BLOCK])


def gunzip(data: bytes, limit: int) -> bytes:
    """Inflate, at most ``limit`` bytes. Raises BadInput."""
    inflater = zlib.decompressobj(wbits=31)
    try:
        plain = inflater.decompress(data, limit + 1)
    except zlib.error as error:
        raise BadInput(f"the archive is not valid gzip: {error}", mend=_REPACK) from None
    if len(plain) > limit:
        raise BadInput(f"the archive holds more than {limit} bytes unpacked", mend="Leave data out of the package.")
    if not inflater.eof:
        raise BadInput("the gzip archive is cut off", mend=_REPACK)
    return plain


def read(data: bytes, max_entries: int, max_bytes: int) -> Iterator[Entry]:
    """Plain files of a tar (ustar, GNU long names, pax paths). Raises BadInput for everything else."""
    at, count, total = 0, 0, 0
    long_name = ""
    while at + _BLOCK <= len(data):
        header = data[at : at + _BLOCK]
        if not any(header):
            return
        if not _checksum_holds(header):
            raise BadInput(f"the archive is damaged at byte {at}", mend=_REPACK)
        kind = header[156:157]
        size = 0 if kind == b"5" else _number(header[124:136])
        body = data[at + _BLOCK : at + _BLOCK + size]
        if len(body) != size:
            raise BadInput("the archive is cut off", mend=_REPACK)
        at += _BLOCK + (size + _BLOCK - 1) // _BLOCK * _BLOCK
        count += 1
        if count > max_entries * 2:
            raise BadInput(f"the archive has more than {max_entries} entries", mend="Leave data out of the package.")
        if kind in (b"L", b"x", b"g"):
            long_name = _extended_name(kind, body) or long_name
            continue
        name = _plain(long_name or _header_name(header))
        long_name = ""
        if kind == b"5":
            continue
        if kind not in (b"0", b"\0", b"7"):
            raise BadInput(f"{name[:80]!r} is not a plain file (tar type {kind!r})", mend=_REPACK)
        total += size
        if total > max_bytes:
            raise BadInput(f"more than {max_bytes} bytes unpacked", mend="Leave data out of the package.")
        yield Entry(name, body, bool(_number(header[100:108]) & 0o111))
    if any(data[at:]) or not data:
        raise BadInput("the archive is cut off", mend=_REPACK)


def write(entries: Iterable[Entry]) -> bytes:
    """Canonical tar of some files. Names must have passed ``check_name``."""
    pieces: list[bytes] = []
    for entry in sorted(entries, key=lambda entry: entry.name.encode()):
        name = entry.name.encode()
        if len(name) > 100:
            # The one long form written: GNU's, one extra block with the whole name.
            pieces += [_header(b"././@LongLink", len(name) + 1, 0o644, b"L"), _padded(name + b"\0")]
        pieces += [_header(name[:100], len(entry.data), 0o755 if entry.executable else 0o644, b"0")]
        pieces += [_padded(entry.data)]
    return b"".join([*pieces, bytes(2 * _BLOCK)])


def _header(name: bytes, size: int, mode: int, kind: bytes) -> bytes:
    fields = b"".join(
        (
            name.ljust(100, b"\0"),
            b"%07o\0" % mode,
            b"%07o\0" % 0,
            b"%07o\0" % 0,
            b"%011o\0" % size,
            b"%011o\0" % 0,
            b" " * 8,
            kind,
            bytes(100),
            b"ustar\x0000",
        )
    ).ljust(_BLOCK, b"\0")
    return fields[:148] + b"%06o\0 " % sum(fields) + fields[156:]


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % _BLOCK)


def _checksum_holds(header: bytes) -> bool:
    try:
        return sum(header[:148]) + 8 * 32 + sum(header[156:]) == _number(header[148:156])
    except BadInput:
        return False


def _number(field: bytes) -> int:
    text = field.strip(b" \0")
    if not text:
        return 0
    if not text.isdigit() or set(text) & set(b"89"):
        raise BadInput("the archive has a header with a bad number", mend=_REPACK)
    return int(text, 8)


def _header_name(header: bytes) -> str:
    name = header[:100].split(b"\0")[0]
    prefix = header[345:500].split(b"\0")[0] if header[257:263] == b"ustar\0" else b""
    return _decoded(prefix + b"/" + name if prefix else name)


def _extended_name(kind: bytes, body: bytes) -> str:
    """Name said by a GNU long-name entry or a pax header; empty when that header is about something else."""
    if len(body) > _MAX_PAX:
        raise BadInput("the archive has an oversized header", mend=_REPACK)
    if kind == b"L":
        return _decoded(body.rstrip(b"\0"))
    found = ""
    while body:
        digits, space, _ = body.partition(b" ")
        length = int(digits) if space and digits.isdigit() and len(digits) < 8 else 0
        record = body[len(digits) + 1 : length]
        if length <= len(digits) + 1 or length > len(body) or not record.endswith(b"\n"):
            raise BadInput("the archive has a damaged pax header", mend=_REPACK)
        key, _, value = record[:-1].partition(b"=")
        if key.startswith(b"GNU.sparse") or key == b"size":
            raise BadInput("the archive holds a sparse or oversized file", mend=_REPACK)
        if key == b"path" and kind == b"x":
            found = _decoded(value)
        body = body[length:]
    return found


def _decoded(name: bytes) -> str:
    try:
        return name.decode()
    except UnicodeDecodeError:
        raise BadInput("the archive holds a name that is not UTF-8", mend="Rename the file.") from None


def _plain(name: str) -> str:
    """``./a`` is ``a``, as tar writes it for ``tar c .``."""
    while name.startswith("./"):
        name = name[2:]
    return name.rstrip("/") if name.strip("/.") else name
