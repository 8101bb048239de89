"""Laws of the build cache."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from kfd.base.digest import Digest, digest_of
from kfd.base.instant import SECOND
from kfd.base.work import (
    BuildResult,
    BuildSpec,
    Diagnostic,
    Incident,
    IncidentCode,
    Limits,
    Report,
    Stopped,
    Verdict,
    VerdictCode,
)
from kfd_worker.launcher.buildcache import BuildCache, cacheable, key_of

ARTIFACT = b"\x7fELF" + b"machine code" * 50
MESSAGE = Diagnostic(file="kernel.cpp", line=3, column=1, severity="error", text="no such thing")
GOOD = Report(
    outcome=Verdict(code=VerdictCode.OK),
    detail=BuildResult(artifact=digest_of(ARTIFACT), facts=(("compiler", "g++"),)),
    log_tail="warning",
)
BAD = Report(
    outcome=Verdict(code=VerdictCode.COMPILE_ERROR, text="kernel.cpp:3: no such thing"),
    detail=BuildResult(diagnostics=(MESSAGE,)),
)
SPEC = BuildSpec(
    task=digest_of(b"task"), source="int x;", kernel_path="kernel.cpp", toolchain="cpp", target="cpp:native"
)
PRINT = digest_of(b"compiler")
KEY = key_of(SPEC, Limits(), PRINT, "bwrap")


def key(number: int) -> Digest:
    return key_of(dataclasses.replace(SPEC, source=f"int x{number};"), Limits(), PRINT, "bwrap")


def test_what_was_put_comes_back_and_says_so(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path)
    assert cache.get(KEY) is None
    cache.put(KEY, GOOD, ARTIFACT)
    found = cache.get(KEY)
    assert found is not None
    report, artifact = found
    assert artifact == ARTIFACT
    assert report.outcome == GOOD.outcome
    assert report.log_tail == GOOD.log_tail
    assert isinstance(report.detail, BuildResult)
    assert report.detail.facts == (("compiler", "g++"), ("build_cache", "hit"))


def test_it_survives_a_restart_and_compile_errors_are_kept_as_well(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path)
    cache.put(KEY, BAD, b"")
    found = BuildCache(tmp_path).get(KEY)
    assert found is not None
    assert found[0].outcome == BAD.outcome
    assert found[1] == b""


@pytest.mark.parametrize(
    "report",
    [
        Report(outcome=Verdict(code=VerdictCode.TIMEOUT), detail=BuildResult()),
        Report(outcome=Verdict(code=VerdictCode.RESOURCE_LIMIT), detail=BuildResult(diagnostics=(MESSAGE,))),
        Report(outcome=Verdict(code=VerdictCode.LOAD_ERROR), detail=BuildResult()),
        Report(outcome=Verdict(code=VerdictCode.COMPILE_ERROR, text="the compiler was killed"), detail=BuildResult()),
        Report(outcome=Incident(code=IncidentCode.SANDBOX), detail=BuildResult(diagnostics=(MESSAGE,))),
        Report(outcome=Stopped(reason="cancelled")),
        Report(outcome=Verdict(code=VerdictCode.OK), detail=BuildResult()),
    ],
    ids=lambda report: str(report.outcome)[:40],
)
def test_what_depends_on_the_moment_is_never_kept(tmp_path: Path, report: Report) -> None:
    assert not cacheable(report)
    cache = BuildCache(tmp_path)
    cache.put(KEY, report, b"")
    assert cache.get(KEY) is None
    assert list(tmp_path.iterdir()) == []


def test_damage_anywhere_is_a_miss_and_removes_the_entry(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path)
    cache.put(KEY, GOOD, ARTIFACT)
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    for at in (0, 40, 70, 200, len(whole) - 100, len(whole) - 1):
        cache.put(KEY, GOOD, ARTIFACT)
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert cache.get(KEY) is None, at
        assert not path.exists()
    for length in (0, 30, 100, len(whole) - 1):
        cache.put(KEY, GOOD, ARTIFACT)
        path.write_bytes(whole[:length])
        assert cache.get(KEY) is None, length


def test_an_entry_under_another_name_is_a_miss(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path)
    cache.put(KEY, GOOD, ARTIFACT)
    (path,) = tmp_path.iterdir()
    path.rename(tmp_path / f"{key(1).hash}.build")
    assert BuildCache(tmp_path).get(key(1)) is None


def test_the_folder_is_bounded_and_the_longest_unused_goes_first(tmp_path: Path) -> None:
    one = len(ARTIFACT)
    cache = BuildCache(tmp_path, max_bytes=8 * (one + 900), max_entries=5)
    for number in range(5):
        cache.put(key(number), GOOD, ARTIFACT)
    assert cache.get(key(0)) is not None
    cache.put(key(5), GOOD, ARTIFACT)
    assert cache.get(key(1)) is None
    assert cache.get(key(0)) is not None
    for number in range(50):
        cache.put(key(number), GOOD, ARTIFACT)
        files = list(tmp_path.iterdir())
        assert len(files) <= 5
        assert sum(file.stat().st_size for file in files) <= 8 * (one + 900)


def test_an_artifact_that_would_fill_the_cache_is_not_kept(tmp_path: Path) -> None:
    cache = BuildCache(tmp_path, max_bytes=1000)
    cache.put(KEY, GOOD, ARTIFACT)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "other",
    [
        key_of(dataclasses.replace(SPEC, source="int y;"), Limits(), PRINT, "bwrap"),
        key_of(dataclasses.replace(SPEC, flags=("-O2",)), Limits(), PRINT, "bwrap"),
        key_of(dataclasses.replace(SPEC, defines=(("N", "1"),)), Limits(), PRINT, "bwrap"),
        key_of(dataclasses.replace(SPEC, target="cpp:other"), Limits(), PRINT, "bwrap"),
        key_of(dataclasses.replace(SPEC, task=digest_of(b"other")), Limits(), PRINT, "bwrap"),
        key_of(SPEC, Limits(wall_ns=SECOND), PRINT, "bwrap"),
        key_of(SPEC, Limits(memory_bytes=1), PRINT, "bwrap"),
        key_of(SPEC, Limits(processes=1), PRINT, "bwrap"),
        key_of(SPEC, Limits(artifact_bytes=1), PRINT, "bwrap"),
        key_of(SPEC, Limits(), digest_of(b"another compiler"), "bwrap"),
        key_of(SPEC, Limits(), PRINT, "plain"),
    ],
)
def test_everything_that_can_change_the_answer_changes_the_key(other: Digest) -> None:
    assert other != KEY


def test_a_folder_that_cannot_be_used_makes_no_cache_and_no_error(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    cache = BuildCache(blocked / "cache")
    cache.put(KEY, GOOD, ARTIFACT)
    assert cache.get(KEY) is None
