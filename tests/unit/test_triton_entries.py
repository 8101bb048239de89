"""Triton between plan, payload and launch."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfd.tasks import launchplan
from kfd.tasks.launchbind import bind
from kfd.tasks.spec import Parameter, Role
from kfd_worker.harness.triton_compile import Unusable, signature
from kfd_worker.toolchains.elf import ElfError
from kfd_worker.toolchains.port import Refused
from kfd_worker.toolchains.triton_entries import jobs, kernel_key, load_order, resolve, split

PARAMETERS = (
    Parameter(name="x", role=Role.IN, dtype="float16", shape=("n",)),
    Parameter(name="y", role=Role.OUT, dtype="float32", shape=("n",)),
    Parameter(name="n", role=Role.SIZE, dtype="int64"),
    Parameter(name="scale", role=Role.SCALAR, dtype="float32"),
)
TEXT = """# [TUNE] BLOCK in {64, 128}
# [LAUNCH] scratch sums: float64[n]
# [LAUNCH] launch first grid(ceildiv(n, BLOCK)) warps(2) args(x, sums, n, int32(n), scale, BLOCK=BLOCK)
# [LAUNCH] launch second grid(1) args(sums, y, n, BLOCK=2 * BLOCK)
"""


def plans(text: str = TEXT, **chosen: int) -> tuple[launchplan.LaunchPlan, list[object]]:
    plan = launchplan.parse(text, PARAMETERS, "triton")
    return plan, [bind(plan, {"n": size}, chosen, 1 << 30) for size in (1000, 7)]


def payload(*entries: dict[str, object], code: bytes = b"") -> bytes:
    return json.dumps({"entries": list(entries)}).encode() + b"\n" + code


def entry(**more: object) -> dict[str, object]:
    return {"key": "k/4/3/", "symbol": "k", "threads": 128, "shared": 64, "hidden": [0, 0], "size": 4, **more}


def test_a_kernel_is_compiled_once_for_all_cases_with_types_from_the_interface() -> None:
    plan, bound = plans()
    first, second = jobs(plan, bound, PARAMETERS)  # type: ignore[arg-type]
    assert (first.key, second.key) == ("first/2/3/BLOCK=64", "second/4/3/BLOCK=128")
    assert first.types == ("*fp16", "*fp64", "i64", "i32", "fp32")
    assert second.types == ("*fp64", "*fp32", "i64")
    assert first.to_json()["constants"] == {"BLOCK": 64}


def test_numbers_that_follow_sizes_make_variants_and_too_many_are_refused() -> None:
    text = "# [LAUNCH] launch k grid(1) args(x, y, BLOCK=n)\n"
    plan, bound = plans(text)
    assert [one.key for one in jobs(plan, bound, PARAMETERS)] == ["k/4/3/BLOCK=1000", "k/4/3/BLOCK=7"]  # type: ignore[arg-type]
    many = [bind(plan, {"n": size}, {}, 1 << 30) for size in range(1, 40)]
    with pytest.raises(Refused, match="make constants tunables"):
        jobs(plan, many, PARAMETERS)


def test_one_kernel_with_two_sets_of_types_is_refused() -> None:
    text = "# [LAUNCH] launch k grid(1) args(x, n)\n# [LAUNCH] launch k grid(1) args(y, n)\n"
    plan, bound = plans(text)
    with pytest.raises(Refused, match="different types"):
        jobs(plan, bound, PARAMETERS)  # type: ignore[arg-type]


def test_a_payload_is_taken_apart_and_launches_take_what_the_compiler_decided() -> None:
    _, (bound, _) = plans()
    keys = [kernel_key(launch) for launch in bound.launches]  # type: ignore[attr-defined]
    data = payload(entry(key=keys[0], threads=64), entry(key=keys[1], hidden=[16, 0], size=3), code=b"aaaabbb")
    entries = {one.key: one.to_json() for one in split(data)}
    assert [data[at : at + size] for at, size in (one["module"] for one in entries.values())] == [b"aaaa", b"bbb"]
    order = resolve(bound, entries)  # type: ignore[arg-type]
    assert [one["block"] for one in order["launches"]] == [[64, 1, 1], [128, 1, 1]]
    assert [one["shared"] for one in order["launches"]] == [64, 64]
    assert order["scratch"] == [8000]
    loaded = load_order(entries)
    assert loaded["kernels"][keys[1]] == [1, "k", [16, 0]]
    with pytest.raises(KeyError):
        resolve(bound, {})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no line",
        b"[]\n",
        b"{}\n",
        payload(),
        payload(entry(), code=b"abc"),
        payload(entry(size=0), code=b"abcd"),
        payload(entry(size=-1), code=b"abcd"),
        payload(entry(threads=4096), code=b"abcd"),
        payload(entry(threads=True), code=b"abcd"),
        payload(entry(shared=1 << 30), code=b"abcd"),
        payload(entry(hidden=[1 << 40]), code=b"abcd"),
        payload(entry(symbol=""), code=b"abcd"),
        payload(entry(key=7), code=b"abcd"),
        payload(*[entry(key=f"k{at}", size=1) for at in range(40)], code=b"x" * 40),
        b"[" * 60_000 + b"\n",
    ],
)
def test_a_payload_that_is_none_is_refused(data: bytes) -> None:
    with pytest.raises(ElfError):
        split(data)


@given(st.binary(max_size=200))
def test_any_bytes_are_entries_within_the_payload_or_refused(data: bytes) -> None:
    try:
        found = split(b'{"entries": ' + data)
    except ElfError:
        return
    assert all(one.offset + one.size <= len(data) + 12 for one in found)


def test_a_signature_fits_names_to_types() -> None:
    assert signature(["x", "n", "BLOCK"], ["*fp32", "i64"], {"BLOCK": 4}, 3) == {
        "x": "*fp32",
        "n": "i64",
        "BLOCK": "constexpr",
    }
    with pytest.raises(Unusable, match="takes 2 arguments") as caught:
        signature(["x", "n", "BLOCK"], ["*fp32"], {"BLOCK": 4}, 3)
    assert caught.value.line == 3
    with pytest.raises(Unusable, match="no such argument"):
        signature(["x"], [], {"WIDTH": 4}, 3)
