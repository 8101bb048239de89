"""The compiled form overrides what the source seems to do; the readers on real output of nvcc, g++ and SYCL."""

# ruff: noqa: E501 - tables

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfd.base.evidence import SEEN, Evidence, from_facts, to_fact
from kfd.core.search.compiled import refined
from kfd_worker.toolchains.compiled import from_objdump, from_ptx, from_sass, from_spirv, split_listing

FORMS = Path(__file__).resolve().parents[2] / "benchmarks" / "behaviour" / "compiled"


three = st.sampled_from([None, False, True])
seen = st.builds(
    Evidence,
    wide=three,
    scalar=three,
    shared=three,
    ahead=three,
    barriers=three,
    shuffles=three,
    global_atomics=three,
    kernels=st.sampled_from([None, 1, 2]),
)


def form(name: str) -> str:
    return (FORMS / name).read_text()


def module(name: str) -> bytes:
    return (FORMS / f"{name}.spv").read_bytes()


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        (
            "relu_scalar",
            Evidence(shared=False, ahead=False, barriers=False, shuffles=False, global_atomics=False, kernels=1),
        ),
        (
            "relu_float4",
            Evidence(
                wide=True, shared=False, ahead=False, barriers=False, shuffles=False, global_atomics=False, kernels=1
            ),
        ),
        (
            "sum_shuffle_then_atomic",
            Evidence(shared=True, ahead=False, barriers=True, shuffles=True, global_atomics=True, kernels=1),
        ),
        (
            "matmul_tiled",
            Evidence(shared=True, ahead=False, barriers=True, shuffles=False, global_atomics=False, kernels=1),
        ),
        (
            "matmul_cp_async",
            Evidence(shared=True, ahead=True, barriers=True, shuffles=False, global_atomics=False, kernels=1),
        ),
        # The compiler itself votes and reduces in a warp before an atomic on shared memory.
        (
            "rank_count_shared_atomic",
            Evidence(shared=True, ahead=False, barriers=True, shuffles=None, global_atomics=False, kernels=1),
        ),
    ],
)
def test_sass(name: str, seen: Evidence) -> None:
    assert from_sass(form(f"{name}.sass")) == seen


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        (
            "relu_scalar",
            Evidence(
                wide=False, shared=False, ahead=False, barriers=False, shuffles=False, global_atomics=False, kernels=1
            ),
        ),
        (
            "relu_float4",
            Evidence(
                wide=True, shared=False, ahead=False, barriers=False, shuffles=False, global_atomics=False, kernels=1
            ),
        ),
        (
            "sum_shuffle_then_atomic",
            Evidence(
                wide=False, shared=True, ahead=False, barriers=True, shuffles=True, global_atomics=True, kernels=1
            ),
        ),
        (
            "matmul_cp_async",
            Evidence(
                wide=False, shared=True, ahead=True, barriers=True, shuffles=False, global_atomics=False, kernels=1
            ),
        ),
    ],
)
def test_ptx(name: str, seen: Evidence) -> None:
    assert from_ptx(form(f"{name}.ptx")) == seen


@pytest.mark.parametrize(
    ("name", "scalar"),
    [
        ("relu_scalar", True),
        ("relu_sse", False),
        ("histogram_omp_atomic", True),
        ("dot_horizontal_add", False),
    ],
)
def test_x86(name: str, scalar: bool) -> None:
    """The optimiser packs by itself and ends OpenMP's reductions with locked instructions: both are nobody's idea."""
    assert from_objdump(form(f"{name}.x86")) == Evidence(scalar=scalar, ahead=False)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("relu_scalar", set()),
        ("relu_vec4", {"wide"}),
        ("transpose_tile", {"shared", "barriers"}),
        ("row_sum_subgroup", {"shuffles"}),
        ("sum_atomic_ref", {"global_atomics"}),
        ("count_group_atomic", {"shared", "barriers"}),
    ],
)
def test_spirv(name: str, shown: set[str]) -> None:
    seen = from_spirv(module(name))
    fields = ("wide", "shared", "ahead", "barriers", "shuffles", "global_atomics")
    assert {field for field in fields if getattr(seen, field)} == shown
    assert all(getattr(seen, field) is not None for field in fields)
    assert seen.kernels == 1


def test_facts_of_a_build() -> None:
    ptxas = [("ptxas.a", "registers=32 shared=0 barriers=0"), ("ptxas.b", "registers=40 shared=8448 barriers=1")]
    assert from_facts(ptxas) == Evidence(shared=True, barriers=True)
    assert from_facts(ptxas[:1]) == Evidence(barriers=False), "a launch may add dynamic shared memory"
    assert from_facts([("solve.local_bytes", "2048"), ("compiler", "x shared=1")]) == Evidence(shared=True)
    assert from_facts([("artifact_bytes", "1"), ("solve.local_bytes", "many")]) == Evidence()
    assert from_facts([(SEEN, "shared=0 kernels=1"), *ptxas]) == Evidence(shared=False, barriers=True, kernels=1)


@given(seen)
def test_what_was_seen_travels_as_a_fact(seen: Evidence) -> None:
    assert from_facts([("compiler", "g++"), to_fact(seen)]) == seen


@given(st.lists(st.tuples(st.sampled_from([SEEN, "ptxas.a", "a.local_bytes"]), st.text(max_size=60)), max_size=6))
def test_facts_of_strangers_are_read_without_a_fall(facts: list[tuple[str, str]]) -> None:
    assert 0 <= sum(refined((3, 3, 3), from_facts(facts))) <= 9


def test_a_listing_comes_before_the_payload() -> None:
    assert split_listing(b"00000004\nabc\n\x7fELF\n12") == ("abc\n", b"\x7fELF\n12")
    assert split_listing(b"\x7fELF of before") == ("", b"\x7fELF of before")
    assert split_listing(b"") == ("", b"")


@pytest.mark.parametrize(
    ("levels", "seen", "expected"),
    [
        ((3, 1, 0), Evidence(), (3, 1, 0)),
        ((0, 2, 0), Evidence(wide=True), (1, 2, 0)),
        ((1, 2, 0), Evidence(scalar=True), (0, 2, 0)),
        ((2, 2, 0), Evidence(scalar=True), (2, 2, 0)),
        ((0, 2, 0), Evidence(scalar=False), (0, 2, 0)),
        ((2, 0, 0), Evidence(wide=False, shared=True, ahead=True), (3, 0, 0)),
        ((1, 0, 0), Evidence(shared=True, ahead=True), (1, 0, 0)),
        ((3, 0, 0), Evidence(shared=False), (2, 0, 0)),
        ((0, 0, 0), Evidence(global_atomics=True), (0, 0, 3)),
        ((0, 0, 3), Evidence(global_atomics=False, shuffles=True, kernels=1), (0, 0, 2)),
        ((0, 0, 3), Evidence(global_atomics=False, shuffles=False, barriers=True, shared=True, kernels=1), (0, 0, 1)),
        ((0, 0, 3), Evidence(global_atomics=False, kernels=2), (0, 0, 3)),
        ((0, 0, 2), Evidence(shuffles=False, barriers=False), (0, 0, 0)),
        ((0, 0, 0), Evidence(shuffles=True), (0, 0, 2)),
        ((0, 0, 1), Evidence(barriers=False), (0, 0, 0)),
        ((2, 0, 0), Evidence(shared=True, barriers=True), (2, 0, 0)),
    ],
)  # fmt: skip
def test_the_compiled_form_comes_first(
    levels: tuple[int, int, int], seen: Evidence, expected: tuple[int, int, int]
) -> None:
    assert refined(levels, seen) == expected


@given(st.tuples(*[st.integers(0, 3)] * 3), seen)
def test_evidence_never_touches_the_algorithm_and_settles_at_once(levels: tuple[int, int, int], seen: Evidence) -> None:
    once = refined(levels, seen)
    assert once[1] == levels[1]
    assert all(0 <= level <= 3 for level in once)
    assert refined(once, seen) == once


@given(st.binary(max_size=400), st.text(max_size=300))
def test_anything_else_is_no_evidence(data: bytes, text: str) -> None:
    assert from_spirv(data) == Evidence()
    from_spirv(module("transpose_tile")[:200] + data)
    for reader in (from_sass, from_ptx, from_objdump):
        reader(text)


def test_hostile_forms_cost_little() -> None:
    start = time.process_time()
    for text in ("/*0000*/ A" * 100_000, ".entry " * 200_000, "0:\tlock " * 200_000, " " * 1_000_000, "a." * 400_000):
        for reader in (from_sass, from_ptx, from_objdump):
            reader(text)
    header = (0x07230203).to_bytes(4, "little") + bytes(16)
    from_spirv(header + bytes(4_000_000))
    from_spirv(header + (0x10000).to_bytes(4, "little") * 500_000)
    assert time.process_time() - start < 8


@pytest.mark.skipif(shutil.which("g++") is None or shutil.which("objdump") is None, reason="needs g++ and objdump")
def test_what_the_compiler_at_hand_makes(tmp_path: Path) -> None:
    source = 'extern "C" void twice(const float *__restrict x, float *__restrict y, long n) { for (long i = 0; i < n; ++i) y[i] = 2 * x[i]; }\n'
    (tmp_path / "k.cpp").write_text(source)
    scalar = []
    for flag in ("-O1", "-O3"):
        subprocess.run(["g++", flag, "-c", "k.cpp", "-o", "k.o"], cwd=tmp_path, check=True, timeout=60)
        text = subprocess.run(
            ["objdump", "-d", "k.o"], cwd=tmp_path, check=True, capture_output=True, text=True, timeout=60
        )
        scalar.append(from_objdump(text.stdout).scalar)
    if scalar[0] is None:
        pytest.skip("not an x86 machine")
    assert scalar == [True, False]
