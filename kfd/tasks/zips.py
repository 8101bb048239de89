"""Plain files of a zip, with every size checked before and while inflating."""

from __future__ import annotations

import io
import stat
import struct
import zipfile
import zlib

from kfd.base.failure import BadInput
from kfd.tasks.names import left_out
from kfd.tasks.tar import Entry

__all__ = ["read"]

_REPACK = "Make the zip again from plain files, without encryption, or give the folder itself."


def read(data: bytes, max_entries: int, max_bytes: int) -> list[Entry]:
    """Plain files of a zip. Raises BadInput for everything else."""
    # Counted before the directory is parsed: a few megabytes of directory would make millions of objects.
    if data.count(b"PK\x01\x02") > max_entries * 2 + 64:
        raise BadInput(f"the zip has more than {max_entries} entries", mend="Leave data out of the package.")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            listing = archive.infolist()
            wanted = [info for info in listing if not info.is_dir() and not left_out(info.filename)]
            if sum(info.file_size for info in wanted) > max_bytes:
                raise BadInput(f"more than {max_bytes} bytes unpacked", mend="Leave data out of the package.")
            return _entries(archive, wanted, max_bytes)
    except (
        zipfile.BadZipFile,
        zlib.error,
        struct.error,
        ValueError,
        EOFError,
        OSError,
        NotImplementedError,
        RuntimeError,
        OverflowError,
    ) as error:
        raise BadInput(f"the zip cannot be read: {error}", mend=_REPACK) from None


def _entries(archive: zipfile.ZipFile, wanted: list[zipfile.ZipInfo], max_bytes: int) -> list[Entry]:
    entries: list[Entry] = []
    left = max_bytes
    for info in wanted:
        _check(info)
        with archive.open(info) as file:
            data = file.read(left + 1)
        left -= len(data)
        if left < 0 or len(data) != info.file_size:
            raise BadInput(f"{info.filename[:80]!r} is not as large as the zip says", mend=_REPACK)
        mode = info.external_attr >> 16
        entries.append(Entry(info.filename, data, bool(mode & 0o111)))
    return entries


def _check(info: zipfile.ZipInfo) -> None:
    """Refuse what is not a plain file under exactly the name that the zip shows."""
    mode = info.external_attr >> 16
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        raise BadInput(f"{info.filename[:80]!r} is a link or a device", mend=_REPACK)
    if info.orig_filename != info.filename:
        raise BadInput(f"{info.filename[:80]!r} has a name that hides another", mend=_REPACK)
    if info.flag_bits & 1:
        raise BadInput(f"{info.filename[:80]!r} is encrypted", mend=_REPACK)
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise BadInput(f"{info.filename[:80]!r} is packed by a method other than deflate", mend=_REPACK)
