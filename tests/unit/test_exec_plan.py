"""When measuring stops, how long a sample is, what a seed gives, where files may lie."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch")

import itertools

from kfd.base.digest import digest_of
from kfd.base.instant import SECOND
from kfd.base.work import Comparison, MeasurementPlan
from kfd_worker.devices.cpu import cpu_device, parse_model
from kfd_worker.judge.arena import Arena, ArraySpec
from kfd_worker.judge.benchmark import enough
from kfd_worker.judge.clocks import SAMPLE_NS, repeats
from kfd_worker.judge.taskcode import draw_seed
from kfd_worker.launcher.places import Inputs, MissingInput, folder_name, place

PLAN = MeasurementPlan(min_rounds=8, max_rounds=40, target_half_width=0.02, max_ns=10 * SECOND)


def noisy(rounds: int, spread: int) -> list[Comparison]:
    times = tuple(1_000_000 + (index * 7919 % 11) * spread for index in range(rounds))
    return [Comparison(case="a", baseline="reference", candidate_ns=(1_000_000,) * rounds, baseline_ns=times)]


def test_a_clear_answer_stops_at_the_least_rounds_and_a_noisy_one_goes_on() -> None:
    assert not enough(PLAN, 7, 0, noisy(7, 0), 0)
    assert enough(PLAN, 8, 0, noisy(8, 0), 0)
    assert not enough(PLAN, 8, 0, noisy(8, 90_000), 0)
    assert enough(PLAN, 40, 0, noisy(40, 90_000), 0)


def test_time_ends_measuring_after_three_rounds_and_three_times_the_time_in_any_case() -> None:
    assert not enough(PLAN, 2, PLAN.max_ns, noisy(2, 90_000), 0)
    assert enough(PLAN, 3, PLAN.max_ns, noisy(3, 90_000), 0)
    assert enough(PLAN, 1, 3 * PLAN.max_ns, noisy(1, 0), 0)


@given(st.integers(0, 10**10), st.integers(1, 64))
def test_a_sample_is_long_enough_unless_there_is_no_room(took: int, most: int) -> None:
    count = repeats(took, most)
    assert 1 <= count <= most
    assert count == most or count * max(1, took) >= SAMPLE_NS
    assert count == 1 or (count - 1) * max(1, took) < SAMPLE_NS


def test_seeds_depend_on_secret_and_purpose() -> None:
    seeds = {draw_seed(secret, *purpose) for secret in (b"a", b"b") for purpose in (("x", 1), ("x", 2), ("y", 1))}
    assert len(seeds) == 6
    assert draw_seed(b"a", "x", 1) == draw_seed(b"a", "x", 1)


@given(
    st.lists(st.integers(1, 40), min_size=0, max_size=3), st.sampled_from(["float32", "bool", "float64", "bfloat16"])
)
def test_arrays_start_aligned_and_end_close_to_the_guard(shape: list[int], dtype: str) -> None:
    array = ArraySpec("x", dtype, tuple(shape))
    assert array.start % 64 == 0
    slack = array.pages * 4096 - array.start - array.nbytes
    assert 0 <= slack < 64


def test_arrays_of_an_arena_do_not_overlap_and_inputs_cannot_be_opened_for_writing() -> None:
    import mmap

    arena = Arena("test", [ArraySpec("a", "float32", (1001,)), ArraySpec("b", "int64", (3,))], 2, writable=False)
    try:
        offsets = sorted((region.offset, region.spec.pages) for one in arena.regions for region in one.values())
        assert all(at + pages * 4096 <= later for (at, pages), (later, _) in itertools.pairwise(offsets))
        arena.regions[0]["a"].tensor.fill_(3.0)
        arena.regions[1]["b"].tensor.fill_(9)
        assert float(arena.regions[0]["a"].tensor.sum()) == 3003.0
        with pytest.raises(PermissionError):
            mmap.mmap(arena.fd, 4096, mmap.MAP_SHARED)
        mmap.mmap(arena.fd, 4096, mmap.MAP_SHARED, prot=mmap.PROT_READ).close()
    finally:
        arena.close()


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/../../x", "..", "", ".", "a/.."])
def test_no_file_is_placed_outside_its_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="inside"):
        place(tmp_path / "job", name, b"x")
    assert not list(tmp_path.rglob("x"))


def test_inputs_are_what_their_digest_says_or_missing(tmp_path: Path) -> None:
    data = b"some bytes"
    digest = digest_of(data)
    path = tmp_path / "input"
    path.write_bytes(data)
    inputs = Inputs({digest.hash: str(path)})
    assert inputs.read(digest) == data
    with pytest.raises(MissingInput, match="bytes"):
        inputs.read(dataclasses.replace(digest, size=3))
    path.write_bytes(b"other byte")
    with pytest.raises(MissingInput, match="damaged"):
        inputs.read(digest)
    path.unlink()
    with pytest.raises(MissingInput, match="cannot be read"):
        inputs.read(digest)
    with pytest.raises(MissingInput, match="was not given"):
        Inputs({}).read(digest)


@given(st.text(max_size=200))
def test_job_folders_have_plain_names(ref: str) -> None:
    name = folder_name(ref, 3)
    assert name.startswith("3-")
    assert "/" not in name
    assert len(name) < 100
    name.encode("ascii")


def test_the_cpu_is_a_device_with_its_vectors() -> None:
    device = cpu_device()
    assert device.id == "cpu"
    assert dict(device.facts)["cores"]
    text = "processor: 0\nmodel name\t: A CPU\nflags\t\t: fpu avx avx2 fma\n\nmodel name: B\nflags: avx512f\n"
    assert parse_model(text) == ("A CPU", ("avx", "fma", "avx2"))
