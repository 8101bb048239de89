"""Laws of the daemon's blob store and of the agent's cache and outbox, on real files."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from kfd.base.digest import Digest, digest_of
from kfd.base.failure import BadInput, CallerError, Exhausted, NotFound, WrongState
from kfd.base.ids import JobId
from kfd.base.transfer import CHUNK
from kfd.base.work import LeaseRef, Report, Verdict, VerdictCode
from kfd.blobs import BlobStore
from kfd_worker.blobs import BlobCache, BlobMissing
from kfd_worker.files import machine_id, take_lock
from kfd_worker.outbox import Outbox

DATA = bytes(range(256)) * 4096  # 1 MiB
DIGEST = digest_of(DATA)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[BlobStore]:
    store = BlobStore(tmp_path / "blobs", floor_bytes=0)
    yield store
    await store.close()


async def chunks(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


async def everything(store: BlobStore, digest: Digest, offset: int = 0) -> bytes:
    return b"".join([data async for data in store.read(digest, offset)])


class TestWhole:
    async def test_what_was_put_is_got(self, store: BlobStore) -> None:
        assert await store.put(DATA) == DIGEST
        assert await store.get(DIGEST) == DATA
        assert await store.has(DIGEST)
        assert store.path(DIGEST).read_bytes() == DATA

    async def test_nothing_is_a_blob_too(self, store: BlobStore) -> None:
        digest = await store.put(b"")
        assert await store.get(digest) == b""
        assert await store.write(digest_of(b""), 0, chunks()) == (0, True)

    async def test_what_is_not_here_is_not_found(self, store: BlobStore) -> None:
        with pytest.raises(NotFound):
            await store.get(DIGEST)
        with pytest.raises(NotFound):
            await everything(store, DIGEST)
        assert await store.missing([DIGEST]) == [DIGEST]
        assert not await store.delete(DIGEST)

    async def test_the_size_is_part_of_the_name(self, store: BlobStore) -> None:
        await store.put(DATA)
        assert await store.missing([Digest(DIGEST.hash, 5)]) == [Digest(DIGEST.hash, 5)]

    async def test_a_deleted_blob_is_gone(self, store: BlobStore) -> None:
        await store.put(DATA)
        assert await store.delete(DIGEST)
        assert not await store.has(DIGEST)

    async def test_a_damaged_blob_is_set_aside_and_can_be_uploaded_again(self, store: BlobStore) -> None:
        await store.put(DATA)
        store.path(DIGEST).write_bytes(b"x" * len(DATA))
        with pytest.raises(NotFound):
            await store.get(DIGEST)
        assert await store.missing([DIGEST]) == [DIGEST]
        await store.put(DATA)
        assert await store.get(DIGEST) == DATA

    async def test_finding_a_blob_extends_its_life(self, store: BlobStore) -> None:
        import os

        await store.put(DATA)
        os.utime(store.path(DIGEST), (1, 1))
        await store.missing([DIGEST])
        assert store.path(DIGEST).stat().st_mtime > 1

    async def test_many_puts_of_the_same_bytes_at_once_leave_one_file(self, store: BlobStore, tmp_path: Path) -> None:
        await asyncio.gather(*(store.put(DATA) for _ in range(20)))
        assert [path.name for path in (tmp_path / "blobs").rglob("*") if path.is_file()] == [DIGEST.hash]

    async def test_a_disk_that_is_nearly_full_takes_nothing(self, tmp_path: Path) -> None:
        store = BlobStore(tmp_path / "full", floor_bytes=1 << 60)
        with pytest.raises(Exhausted, match="full"):
            await store.put(DATA)
        with pytest.raises(Exhausted, match="full"):
            await store.write(DIGEST, 0, chunks(DATA))
        await store.close()

    async def test_a_write_that_finds_the_disk_full_says_so(
        self, store: BlobStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(*_: Any) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr("kfd.blobs.store.os.fsync", full)
        with pytest.raises(Exhausted):
            await store.put(DATA)
        monkeypatch.undo()
        assert not await store.has(DIGEST)
        await store.put(DATA)


class TestTransfers:
    async def test_an_upload_in_pieces_is_complete(self, store: BlobStore) -> None:
        assert await store.write(DIGEST, 0, chunks(DATA[:10], DATA[10:])) == (len(DATA), True)
        assert await store.get(DIGEST) == DATA

    async def test_an_interrupted_upload_goes_on_where_it_was(self, store: BlobStore) -> None:
        assert await store.write(DIGEST, 0, chunks(DATA[:1000])) == (1000, False)
        assert await store.progress(DIGEST) == (1000, False)
        assert await store.write(DIGEST, 1000, chunks(DATA[1000:])) == (len(DATA), True)
        assert await store.progress(DIGEST) == (len(DATA), True)

    async def test_a_sender_that_breaks_leaves_what_came(self, store: BlobStore) -> None:
        async def breaking() -> AsyncIterator[bytes]:
            yield DATA[:500]
            raise ConnectionError

        with pytest.raises(ConnectionError):
            await store.write(DIGEST, 0, breaking())
        assert await store.progress(DIGEST) == (500, False)

    async def test_a_cancelled_upload_can_be_resumed(self, store: BlobStore) -> None:
        begun = asyncio.Event()

        async def stalling() -> AsyncIterator[bytes]:
            yield DATA[:500]
            begun.set()
            await asyncio.Event().wait()

        task = asyncio.ensure_future(store.write(DIGEST, 0, stalling()))
        await begun.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert await store.progress(DIGEST) == (500, False)
        assert await store.write(DIGEST, 500, chunks(DATA[500:])) == (len(DATA), True)

    async def test_a_gap_is_refused(self, store: BlobStore) -> None:
        with pytest.raises(WrongState, match="bytes of this blob are here"):
            await store.write(DIGEST, 10, chunks(DATA[10:]))

    async def test_going_back_overwrites(self, store: BlobStore) -> None:
        await store.write(DIGEST, 0, chunks(b"wrong bytes"))
        assert await store.write(DIGEST, 0, chunks(DATA)) == (len(DATA), True)

    @pytest.mark.parametrize("data", [DATA + b"x", b"x" * len(DATA)])
    async def test_other_bytes_than_the_name_says_are_refused_and_forgotten(
        self, store: BlobStore, data: bytes
    ) -> None:
        with pytest.raises(BadInput):
            await store.write(DIGEST, 0, chunks(data))
        assert await store.progress(DIGEST) == (0, False)
        assert not await store.has(DIGEST)

    async def test_a_blob_beyond_the_limit_is_refused_before_a_byte_is_kept(self, tmp_path: Path) -> None:
        store = BlobStore(tmp_path / "small", floor_bytes=0, max_blob=1000)
        with pytest.raises(BadInput, match="limit"):
            await store.write(DIGEST, 0, chunks(DATA))
        with pytest.raises(BadInput, match="limit"):
            await store.put(DATA)
        await store.close()

    async def test_a_complete_blob_is_told_to_be_complete_at_once(self, store: BlobStore) -> None:
        await store.put(DATA)

        asked = []

        async def watched() -> AsyncIterator[bytes]:
            asked.append(True)
            yield DATA

        assert await store.write(DIGEST, 0, watched()) == (len(DATA), True)
        assert not asked

    async def test_two_uploads_of_the_same_blob_at_once_do_not_mix(self, store: BlobStore) -> None:
        begun, gate = asyncio.Event(), asyncio.Event()

        async def slow() -> AsyncIterator[bytes]:
            yield DATA[:100]
            begun.set()
            await gate.wait()
            yield DATA[100:]

        first = asyncio.ensure_future(store.write(DIGEST, 0, slow()))
        await begun.wait()
        assert await store.write(DIGEST, 0, chunks(DATA)) == (len(DATA), True)
        gate.set()
        assert await first == (len(DATA), True)
        assert await store.get(DIGEST) == DATA

    async def test_a_read_begins_where_it_is_asked_to(self, store: BlobStore) -> None:
        await store.put(DATA)
        assert await everything(store, DIGEST, CHUNK + 3) == DATA[CHUNK + 3 :]
        assert await everything(store, DIGEST, len(DATA)) == b""
        with pytest.raises(BadInput):
            await everything(store, DIGEST, len(DATA) + 1)

    async def test_what_a_crash_left_unfinished_is_swept_at_the_start(self, tmp_path: Path) -> None:
        store = BlobStore(tmp_path / "blobs", floor_bytes=0)
        await store.write(DIGEST, 0, chunks(DATA[:1000]))
        await store.close()
        again = BlobStore(tmp_path / "blobs", floor_bytes=0)
        assert await again.progress(DIGEST) == (0, False)
        assert list((tmp_path / "blobs" / "partial").iterdir()) == []
        await again.close()


class FakeClient:
    """Serves blobs from a dictionary; can break off, and can lie."""

    def __init__(self, *blobs: bytes) -> None:
        self.blobs = {digest_of(data): data for data in blobs}
        self.downloads = 0
        self.offsets: list[int] = []

    async def download(self, digest: Digest, file: Any, offset: int) -> None:
        self.downloads += 1
        self.offsets.append(offset)
        await asyncio.sleep(0)
        file.write(self.blobs[digest][offset:])


def client(*blobs: bytes) -> Any:
    return FakeClient(*blobs)


class TestCache:
    async def test_a_blob_is_downloaded_once(self, tmp_path: Path) -> None:
        cache, source = BlobCache(tmp_path), client(DATA)
        paths = await asyncio.gather(*(cache.fetch(DIGEST, source) for _ in range(5)))
        assert {path.read_bytes() for path in paths} == {DATA}
        assert source.downloads == 1

    async def test_the_cache_survives_a_restart_and_is_verified(self, tmp_path: Path) -> None:
        source = client(DATA)
        await BlobCache(tmp_path).fetch(DIGEST, source)
        await BlobCache(tmp_path).fetch(DIGEST, source)
        assert source.downloads == 1
        (tmp_path / DIGEST.hash).write_bytes(b"x" * len(DATA))
        path = await BlobCache(tmp_path).fetch(DIGEST, source)
        assert source.downloads == 2
        assert path.read_bytes() == DATA

    async def test_the_least_recently_used_goes_first_and_pinned_files_stay(self, tmp_path: Path) -> None:
        blobs = [bytes([n]) * 1000 for n in range(5)]
        names = [digest_of(data) for data in blobs]
        cache, source = BlobCache(tmp_path, max_bytes=3000), client(*blobs)
        with cache.pinned([names[0]]):
            for name in names:
                await cache.fetch(name, source)
            assert [cache.path(name).exists() for name in names] == [True, False, False, True, True]
        await cache.fetch(names[1], source)
        assert not cache.path(names[0]).exists()

    async def test_pinning_more_than_fits_is_put_right_afterwards(self, tmp_path: Path) -> None:
        blobs = [bytes([n]) * 1000 for n in range(5)]
        names = [digest_of(data) for data in blobs]
        cache, source = BlobCache(tmp_path, max_bytes=2000), client(*blobs)
        with cache.pinned(names):
            for name in names:
                await cache.fetch(name, source)
            assert all(cache.path(name).exists() for name in names)
        assert sum(cache.path(name).exists() for name in names) == 2

    async def test_other_bytes_than_the_name_says_are_not_kept(self, tmp_path: Path) -> None:
        source = client(DATA)
        source.blobs[DIGEST] = b"y" * len(DATA)
        with pytest.raises(BlobMissing):
            await BlobCache(tmp_path).fetch(DIGEST, source)
        assert not (tmp_path / DIGEST.hash).exists()
        assert list((tmp_path / "partial").iterdir()) == []

    async def test_a_broken_download_goes_on_where_it_was(self, tmp_path: Path) -> None:
        cache, source = BlobCache(tmp_path), client(DATA)
        whole = source.blobs[DIGEST]

        async def broken(digest: Digest, file: Any, offset: int) -> None:
            file.write(whole[offset : offset + 1000])
            raise ConnectionError

        good, source.download = source.download, broken
        with pytest.raises(ConnectionError):
            await cache.fetch(DIGEST, source)
        source.download = good
        await cache.fetch(DIGEST, source)
        assert source.offsets == [1000]

    async def test_a_file_that_somebody_removed_is_fetched_again(self, tmp_path: Path) -> None:
        cache, source = BlobCache(tmp_path), client(DATA)
        (await cache.fetch(DIGEST, source)).unlink()
        assert (await cache.fetch(DIGEST, source)).read_bytes() == DATA

    async def test_an_artifact_built_here_need_not_be_fetched(self, tmp_path: Path) -> None:
        cache, source = BlobCache(tmp_path / "cache"), client()
        (tmp_path / "artifact").write_bytes(DATA)
        await cache.add(DIGEST, tmp_path / "artifact")
        assert (await cache.fetch(DIGEST, source)).read_bytes() == DATA
        assert source.downloads == 0


LEASE = LeaseRef(job=JobId("c1-1.build"), attempt=1)
REPORT = Report(outcome=Verdict(code=VerdictCode.COMPILE_ERROR, text="k.cpp:1:1: no"))


class TestOutbox:
    def test_reports_survive_a_restart_and_go_when_they_are_taken(self, tmp_path: Path) -> None:
        Outbox(tmp_path).save(LEASE, REPORT)
        again = Outbox(tmp_path)
        assert again.load() == [(LEASE, REPORT)]
        again.drop(LEASE)
        assert Outbox(tmp_path).load() == []

    def test_one_lease_never_removes_another(self, tmp_path: Path) -> None:
        outbox = Outbox(tmp_path)
        other = LeaseRef(job=LEASE.job, attempt=2)
        outbox.save(LEASE, REPORT)
        outbox.save(other, REPORT)
        outbox.drop(LEASE)
        assert outbox.load() == [(other, REPORT)]

    @pytest.mark.parametrize("damage", ["cut", "flip", "empty", "noise"])
    def test_a_damaged_report_is_set_aside_and_the_others_are_sent(self, tmp_path: Path, damage: str) -> None:
        outbox = Outbox(tmp_path)
        outbox.save(LEASE, REPORT)
        (path,) = [path for path in tmp_path.iterdir() if path.is_file()]
        data = path.read_bytes()
        path.write_bytes({"cut": data[:-3], "flip": data[:-1] + b"\0", "empty": b"", "noise": b"\xff" * 40}[damage])
        other = LeaseRef(job=JobId("c1-2.build"), attempt=1)
        outbox.save(other, REPORT)
        assert outbox.load() == [(other, REPORT)]
        assert [kept.name for kept in (tmp_path / "damaged").iterdir()] == [path.name]

    def test_half_written_files_and_strangers_do_no_harm(self, tmp_path: Path) -> None:
        outbox = Outbox(tmp_path)
        (tmp_path / ".abc.new").write_bytes(b"half")
        (tmp_path / "README").write_bytes(b"hello")
        outbox.save(LEASE, REPORT)
        assert outbox.load() == [(LEASE, REPORT)]
        assert not (tmp_path / ".abc.new").exists()

    def test_a_full_disk_leaves_nothing_half_written(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        outbox = Outbox(tmp_path)

        def full(_: int) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr("kfd_worker.outbox.os.fsync", full)
        with pytest.raises(OSError, match="No space"):
            outbox.save(LEASE, REPORT)
        monkeypatch.undo()
        assert outbox.load() == []


class TestFiles:
    @pytest.fixture
    def locked(self, tmp_path: Path) -> Iterator[Path]:
        with take_lock(tmp_path):
            yield tmp_path

    def test_one_agent_at_a_time_uses_a_state_folder(self, locked: Path) -> None:
        with pytest.raises(CallerError, match="already"):
            take_lock(locked)

    def test_a_lock_goes_with_its_holder(self, tmp_path: Path) -> None:
        take_lock(tmp_path).close()
        take_lock(tmp_path).close()

    def test_a_machine_keeps_its_id(self, tmp_path: Path) -> None:
        nowhere = tmp_path / "nothing"
        assert machine_id(tmp_path, nowhere) == machine_id(tmp_path, nowhere)
        (tmp_path / "system").write_text("abc\n")
        assert machine_id(tmp_path, tmp_path / "system") != "abc"
