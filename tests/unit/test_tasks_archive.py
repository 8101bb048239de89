"""Packages: what is packed, what is refused before anything is unpacked, and that equal tasks have equal digests."""

# ruff: noqa: E501 - tables of names

from __future__ import annotations

import gzip
import io
import os
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from kfd.base.digest import digest_of
from kfd.base.failure import BadInput
from kfd.tasks import pack, unpack
from kfd.tasks.archive import ArchiveLimits, read

FILES = {"config.yaml": b"name: x\n", "task.py": b"CASES = []\n", "recorded/nothing/rewrite.0.md": b"hi\n"}


def folder(root: Path, files: dict[str, bytes] = FILES) -> Path:
    for name, data in files.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
    return root


def tar_bytes(files: dict[str, bytes], prefix: str = "", fmt: int = tarfile.PAX_FORMAT) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=fmt) as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(prefix + name)
            info.size, info.mtime, info.uid, info.uname = len(data), 12345.5, 1000, "someone"
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def zip_bytes(files: dict[str, bytes], prefix: str = "") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(prefix + name, data)
    return buffer.getvalue()


def one_tar(info: tarfile.TarInfo, data: bytes = b"") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        info.size = len(data)
        archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def test_a_task_has_one_digest_in_whatever_form_it_comes(tmp_path: Path) -> None:
    forms = {
        "plain.tar": tar_bytes(FILES),
        "dotted.tar": tar_bytes(FILES, "./"),
        "topped.tar": tar_bytes(FILES, "softmax/"),
        "gnu.tar": tar_bytes(FILES, "softmax/", tarfile.GNU_FORMAT),
        "ustar.tar": tar_bytes(dict(reversed(FILES.items())), "softmax/", tarfile.USTAR_FORMAT),
        "zipped.tar.gz": gzip.compress(tar_bytes(FILES)),
        "zipped.tgz": gzip.compress(tar_bytes(FILES, "t/")),
        "plain.zip": zip_bytes(FILES),
        "topped.zip": zip_bytes(FILES, "softmax/"),
    }
    digests = {digest_of(pack(folder(tmp_path / "folder")))}
    for name, data in forms.items():
        (tmp_path / name).write_bytes(data)
        digests.add(digest_of(pack(tmp_path / name)))
    assert len(digests) == 1


def test_a_canonical_archive_is_a_tar_that_others_read_with_sorted_names_and_no_metadata(
    tmp_path: Path,
) -> None:
    long_name = "recorded/" + "a" * 60 + "/" + "b" * 60 + ".md"
    task = folder(tmp_path / "t", {**FILES, long_name: b"long", "run.sh": b"#!/bin/sh\n"})
    (task / "run.sh").chmod(0o755)
    archive = pack(task)
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        members = opened.getmembers()
    assert [member.name for member in members] == sorted([*FILES, long_name, "run.sh"])
    assert {(m.mtime, m.uid, m.gid, m.uname, m.gname) for m in members} == {(0, 0, 0, "", "")}
    assert {m.name: m.mode for m in members}["run.sh"] == 0o755
    assert {m.mode for m in members if m.name != "run.sh"} == {0o644}
    assert {name: entry.data for name, entry in read(archive).items()}[long_name] == b"long"


def test_version_control_and_caches_are_left_out(tmp_path: Path) -> None:
    noise = {
        ".git/config": b"",
        "__pycache__/task.cpython-311.pyc": b"",
        ".venv/lib/x.py": b"",
        "task.py~": b"",
        ".DS_Store": b"",
        "__MACOSX/._task.py": b"",
    }
    task = folder(tmp_path / "t", {**FILES, **noise})
    os.symlink("/etc/passwd", task / ".git" / "link")
    assert set(read(pack(task))) == set(FILES)


def test_unpack_gives_back_every_byte_and_mode_and_only_into_an_empty_folder(tmp_path: Path) -> None:
    task = folder(tmp_path / "t")
    (task / "task.py").chmod(0o755)
    archive = pack(task)
    unpack(archive, tmp_path / "out")
    found = {str(p.relative_to(tmp_path / "out")): p.read_bytes() for p in (tmp_path / "out").rglob("*") if p.is_file()}
    assert found == FILES
    assert stat.S_IMODE((tmp_path / "out" / "task.py").stat().st_mode) & 0o100
    assert not (tmp_path / "out" / "config.yaml").stat().st_mode & 0o111
    with pytest.raises(BadInput, match="not empty"):
        unpack(archive, tmp_path / "out")


@pytest.mark.parametrize(
    "name",
    ["../evil", "/etc/evil", "a/../../evil", "a\\b", "C:evil", "a//b", "a/./b", "x" * 201, "a\nb", "a\x1bb", "cafe\u0301",
     "a/b/c/d/e/f/g/h/i", "rtl\u202egnp.cpp", "a" * 120],
)  # fmt: skip
def test_names_that_are_not_short_plain_relative_paths_are_refused(name: str, tmp_path: Path) -> None:
    for kind, data in (
        ("t.tar", tar_bytes({**FILES, name: b""})),
        ("t.zip", zip_bytes({**FILES, name: b""})),
    ):
        (tmp_path / kind).write_bytes(data)
        with pytest.raises(BadInput) as caught:
            pack(tmp_path / kind)
        assert caught.value.mend
        assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize(
    "pair",
    [("task.py", "Task.py"), ("sub/x.h", "SUB/y.h"), ("sub", "sub/x.h"), ("stra\u00dfe.h", "STRASSE.h")],
)
def test_names_that_are_one_file_somewhere_are_refused(pair: tuple[str, str], tmp_path: Path) -> None:
    (tmp_path / "t.tar").write_bytes(tar_bytes({**FILES, pair[0]: b"1", pair[1]: b"2"}))
    with pytest.raises(BadInput, match=r"one name|both a file and a folder|there twice"):
        pack(tmp_path / "t.tar")


def test_a_name_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    whole = tar_bytes({"a": b"1"}, fmt=tarfile.USTAR_FORMAT)[:1024]
    (tmp_path / "t.tar").write_bytes(whole + whole + bytes(1024))
    with pytest.raises(BadInput, match="twice"):
        pack(tmp_path / "t.tar")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a", b"1")
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("a", b"2")
    (tmp_path / "t.zip").write_bytes(buffer.getvalue())
    with pytest.raises(BadInput, match="twice"):
        pack(tmp_path / "t.zip")


@pytest.mark.parametrize(
    "kind",
    [
        tarfile.SYMTYPE,
        tarfile.LNKTYPE,
        tarfile.CHRTYPE,
        tarfile.BLKTYPE,
        tarfile.FIFOTYPE,
        tarfile.GNUTYPE_SPARSE,
    ],
)
def test_links_devices_and_sparse_files_in_a_tar_are_refused(kind: bytes, tmp_path: Path) -> None:
    info = tarfile.TarInfo("evil")
    info.type, info.linkname = kind, "/etc/passwd"
    (tmp_path / "t.tar").write_bytes(one_tar(info))
    with pytest.raises(BadInput, match="not a plain file"):
        pack(tmp_path / "t.tar")


def test_a_link_in_a_zip_or_a_folder_is_refused(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        info = zipfile.ZipInfo("evil")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, "/etc/passwd")
    (tmp_path / "t.zip").write_bytes(buffer.getvalue())
    with pytest.raises(BadInput, match="link"):
        pack(tmp_path / "t.zip")
    task = folder(tmp_path / "t")
    os.symlink("/etc/passwd", task / "evil")
    with pytest.raises(BadInput, match="symbolic link") as caught:
        pack(task)
    assert caught.value.file == "evil"
    (task / "evil").unlink()
    os.mkfifo(task / "pipe")
    with pytest.raises(BadInput, match="not a regular file"):
        pack(task)


SMALL = ArchiveLimits(files=5, total_bytes=10_000, packed_bytes=100_000)


@pytest.mark.parametrize(
    "build",
    [
        lambda: gzip.compress(tar_bytes({"zeros": bytes(5_000_000)})),
        lambda: zip_bytes({"zeros": bytes(5_000_000)}),
        lambda: gzip.compress(bytes(80_000_000)),
        lambda: tar_bytes({f"f{n}": b"" for n in range(20)}),
        lambda: zip_bytes({f"f{n}": b"" for n in range(200)}),
        lambda: bytes(100_001),
    ],
)
def test_bombs_are_refused_by_size_and_count(build: Callable[[], bytes], tmp_path: Path) -> None:
    (tmp_path / "bomb").write_bytes(build())
    with pytest.raises(BadInput, match=r"more than|larger than"):
        pack(tmp_path / "bomb", SMALL)


def test_a_zip_that_lies_about_sizes_is_refused(tmp_path: Path) -> None:
    data = bytearray(zip_bytes({"zeros": bytes(50_000)}))
    at = data.rindex(b"PK\x01\x02")
    data[at + 24 : at + 28] = (10).to_bytes(4, "little")
    (tmp_path / "t.zip").write_bytes(bytes(data))
    with pytest.raises(BadInput):
        pack(tmp_path / "t.zip", SMALL)


@pytest.mark.parametrize(
    "data",
    [b"", b"hello", b"\x1f\x8b", b"PK\x03\x04", gzip.compress(b"hello"), tar_bytes(FILES)[:700], bytes(1024)],
    ids=["empty", "text", "half gzip", "half zip", "gzip of text", "half tar", "no entries"],
)
def test_what_is_no_archive_is_refused_with_what_to_do(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(data)
    with pytest.raises(BadInput) as caught:
        pack(tmp_path / "t")
    assert caught.value.mend


def test_a_damaged_header_or_negative_size_never_hangs_or_escapes(tmp_path: Path) -> None:
    good = tar_bytes(FILES, fmt=tarfile.USTAR_FORMAT)
    for at in range(0, 512, 3):
        for value in (0x00, 0x2D, 0x80, 0xFF):
            data = bytearray(good)
            data[at] = value
            (tmp_path / "t.tar").write_bytes(bytes(data))
            try:
                pack(tmp_path / "t.tar")
            except BadInput as error:
                assert error.mend  # noqa: PT017 - both outcomes are right; anything else is not


def test_only_canonical_archives_are_read(tmp_path: Path) -> None:
    archive = pack(folder(tmp_path / "t"))
    for other in (tar_bytes(FILES), archive + bytes(512), archive[:-512], zip_bytes(FILES)):
        with pytest.raises(BadInput):
            read(other)
    assert set(read(archive)) == set(FILES)


def test_a_missing_path_says_what_may_be_given(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no task at") as caught:
        pack(tmp_path / "nothing")
    assert ".tar.gz" in caught.value.mend
