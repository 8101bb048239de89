"""OpenCL and SYCL toolchains as far as they are pure: packages, messages, requests, the runtime's environment."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfd.base.digest import digest_of
from kfd.base.work import BuildSpec, VerdictCode
from kfd.tasks import launchplan, load, pack
from kfd.tasks.launchplan import LaunchPlan
from kfd_worker.devices.opencl import Runtime
from kfd_worker.harness import opencl_compile
from kfd_worker.judge.device_plan import load_order, plan_order
from kfd_worker.sandbox.box import Ended, Limit
from kfd_worker.toolchains import package
from kfd_worker.toolchains.clang_messages import errors_of, parse_clang
from kfd_worker.toolchains.device_form import header, launches, options_of, split_output, tunables_of
from kfd_worker.toolchains.opencl import failure, kernel_facts
from kfd_worker.toolchains.package import PackageError
from kfd_worker.toolchains.port import Refused, Unusable

TASK = load(pack(Path(__file__).resolve().parents[2] / "tasks" / "softmax_opencl")).spec
TEXT = TASK.kernel.text.replace("// [LAUNCH]", "// [TUNE] GROUP in {1, 2, 4}; where GROUP < 4\n// [LAUNCH]")


def spec(defines: tuple[tuple[str, str], ...] = (), flags: tuple[str, ...] = (), text: str = TEXT) -> BuildSpec:
    return BuildSpec(
        task=digest_of(b""),
        source=text,
        kernel_path="kernel.cl",
        toolchain="opencl",
        target="opencl:cpu",
        flags=flags,
        defines=defines,
    )


def plan(text: str = TEXT) -> LaunchPlan:
    return launchplan.parse(text, TASK.parameters, "opencl")


def ended(code: int = 0, log: str = "", stdout: bytes = b"") -> Ended:
    return Ended(
        code=code,
        started=True,
        limit=Limit.NONE,
        log=log.encode(),
        log_dropped=0,
        stdout=stdout,
        wall_ns=1,
        cpu_ns=1,
        peak_bytes=0,
    )


HEADER = dict(header(spec(), plan(), kind="opencl-binary", runtime="Driver 1", device="CPU"))


def test_a_package_is_read_as_it_was_written_and_equal_ones_are_equal_bytes() -> None:
    data = package.write(HEADER, b"\x00payload\n")
    found, payload = package.read(data)
    assert payload == b"\x00payload\n"
    assert found == json.loads(json.dumps(HEADER))
    assert package.write(dict(reversed(HEADER.items())), payload) == data
    assert plan_order(found, {"rows": 3, "cols": 5}, 1 << 20) == {
        "scratch": [],
        "launches": [
            {
                "kernel": "solve",
                "grid": [3, 1, 1],
                "block": [1, 1, 1],
                "shared": 0,
                "args": [["arg", 0], ["arg", 1], ["arg", 3]],
            }
        ],
    }
    assert load_order(found, "/p") == {"do": "load", "path": "/p", "kind": "opencl-binary", "options": []}


def test_kernels_are_started_by_the_payload_s_names() -> None:
    made = header(spec(), plan(), kind="spirv", entry=lambda name: f"__sycl_kernel_{name}")
    assert plan_order(made, {"rows": 1, "cols": 1}, 1)["launches"][0]["kernel"] == "__sycl_kernel_solve"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x7fELF",
        package.MAGIC,
        package.MAGIC + b"{}",
        package.MAGIC + b"{}\nx",
        package.MAGIC + b"[]\nx",
        package.MAGIC + b"\xff\nx",
        package.MAGIC + b"[" * 100_000 + b"\nx",
        package.MAGIC + json.dumps({**HEADER, "abi": {"kind": "x"}}).encode() + b"\nx",
        package.MAGIC + json.dumps({**HEADER, "options": [1]}).encode() + b"\nx",
        package.MAGIC + json.dumps({**HEADER, "tunables": {"T": "1"}}).encode() + b"\nx",
        package.MAGIC + json.dumps(HEADER).encode() + b"\n",
        package.MAGIC + b" " * (300 << 10) + b"\nx",
    ],
)
def test_what_is_no_package_is_refused(data: bytes) -> None:
    with pytest.raises(PackageError):
        package.read(data)


@given(st.binary(max_size=300), st.integers(0, 600))
def test_damaged_packages_are_refused_or_read_whole(noise: bytes, at: int) -> None:
    data = package.write(HEADER, b"payload")
    damaged = data[: at % len(data)] + noise
    try:
        found, payload = package.read(damaged)
    except PackageError:
        return
    assert payload
    assert isinstance(found["plan"], dict)


def test_a_payload_runs_only_where_its_driver_and_device_are() -> None:
    here = {"kinds": "opencl-binary spirv", "runtime": "Driver 1", "device": "CPU"}
    assert package.compatible(HEADER, here) == ""
    assert "'Driver 1'; here is 'Driver 2'" in package.compatible(HEADER, {**here, "runtime": "Driver 2"})
    assert "device 'CPU'; here is none" in package.compatible(HEADER, {**here, "device": ""})
    assert "does not load opencl-binary" in package.compatible(HEADER, {**here, "kinds": "spirv"})
    anywhere = header(spec(), plan(), kind="spirv")
    assert package.compatible(anywhere, {"kinds": "spirv"}) == ""


def test_tunables_become_macros_and_other_definitions_stay() -> None:
    assert options_of(spec(flags=("-cl-mad-enable",)), plan()) == ["-cl-mad-enable", "-DGROUP=1"]
    chosen = spec(defines=(("GROUP", "2"), ("MODE", "fast")))
    assert options_of(chosen, plan()) == ["-DMODE=fast", "-DGROUP=2"]
    assert tunables_of(chosen, plan()) == {"GROUP": 2}


@pytest.mark.parametrize(
    ("defines", "flags"),
    [
        ((("GROUP", "3"),), ()),
        ((("GROUP", "4"),), ()),
        ((("GROUP", "two"),), ()),
        ((("A b", "1"),), ()),
        ((("A", '1" -I/'),), ()),
        ((), ("-I/etc",)),
        ((), ("-cl-mad-enable -I/etc",)),
        ((), ("-include x",)),
        ((), ("-o",)),
        ((), ("-x",)),
        ((), ("-cl-std=CL9",)),
    ],
)
def test_what_is_not_offered_or_not_allowed_is_refused(
    defines: tuple[tuple[str, str], ...], flags: tuple[str, ...]
) -> None:
    with pytest.raises(Refused):
        options_of(spec(defines, flags), plan())


def test_the_compile_program_is_told_what_each_launch_gives() -> None:
    text = TEXT.replace("args(x, y, cols)", "args(x, local(8), cols, int32(3))")
    (one,) = launches(plan(text), str)
    assert one["arguments"] == [["pointer", "float32"], ["local", ""], ["value", "int64"], ["value", "int32"]]
    assert one["line"] == text[: text.index("// [LAUNCH]")].count("\n") + 1


@pytest.mark.parametrize(
    ("given", "declared", "wrong"),
    [
        (("pointer", "float32"), ("global", "float*"), False),
        (("pointer", "float32"), ("constant", "float*"), False),
        (("pointer", "float32"), ("local", "float*"), True),
        (("pointer", "float32"), ("private", "long"), True),
        (("local", ""), ("local", "float*"), False),
        (("local", ""), ("global", "float*"), True),
        (("value", "int64"), ("private", "long"), False),
        (("value", "int64"), ("private", "int"), True),
        (("value", "int32"), ("private", "int"), False),
        (("value", "float32"), ("private", "float"), False),
        (("value", "float32"), ("private", "double"), True),
        (("value", "int64"), ("global", "long*"), True),
        (("value", "int64"), ("private", "struct mine"), False),
    ],
)
def test_a_launch_s_argument_is_held_against_the_kernel_s(
    given: tuple[str, str], declared: tuple[str, str], wrong: bool
) -> None:
    assert opencl_compile.disagreement(*given, *declared) is wrong


DRIVER = """Compilation started
1:12:7: warning: unused variable 'q'
2:14:17: error: use of undeclared identifier 'foo'; did you mean 'for'?
   14 |   y[0] = foo;
      |          ^~~
Compilation failed
"""
RUN_TIME = """Device compilation failed
Detailed information:
\trtc_0.cpp:5:10: error: use of undeclared identifier 'nope'
    5 |   c[0] = nope;
/usr/lib/gcc/x86_64-linux-gnu/12/../../../../include/c++/12/bits/stl_algo.h:4810:5: note: 'sort' declared here
"""


def test_messages_of_drivers_and_of_the_run_time_compiler_name_the_kernel_file() -> None:
    found = parse_clang(DRIVER, box_path="/job/source/kernel.cl", kernel_path="kernel.cl")
    assert [(one.file, one.line, one.column, one.severity) for one in found] == [
        ("kernel.cl", 12, 7, "warning"),
        ("kernel.cl", 14, 17, "error"),
    ]
    assert errors_of(found) == "kernel.cl:14: use of undeclared identifier 'foo'; did you mean 'for'?"
    found = parse_clang(RUN_TIME, box_path="/job/source/k.sycl", kernel_path=r"k\1.sycl")
    assert [(one.file, one.line) for one in found] == [(r"k\1.sycl", 5), ("c++/12/bits/stl_algo.h", 4810)]


@given(st.text(max_size=2000))
def test_any_log_is_a_bounded_number_of_short_messages(log: str) -> None:
    found = parse_clang(f"1:2:3: error: {log}\n" * 30, box_path="/job/source/kernel.cl", kernel_path="kernel.cl")
    assert len(found) <= 20
    assert all(len(one.text) <= 600 for one in found)


def test_a_machine_without_a_device_is_no_fault_of_the_source() -> None:
    assert failure(ended(opencl_compile.NO_DEVICE, "no OpenCL device of kind cpu"), ()) is None
    assert failure(ended(127, "sh: not found"), ()) is None
    messages = parse_clang(DRIVER, box_path="/job/source/kernel.cl", kernel_path="kernel.cl")
    verdict = failure(ended(1, DRIVER), messages)
    assert verdict is not None
    assert (verdict.code, verdict.text[:13]) == (VerdictCode.COMPILE_ERROR, "kernel.cl:14:")
    verdict = failure(ended(1, "std::bad_alloc"), ())
    assert verdict is not None
    assert verdict.code is VerdictCode.RESOURCE_LIMIT
    verdict = failure(ended(139), ())
    assert verdict is not None
    assert verdict.text == "the compiler was ended by signal SIGSEGV"


def test_output_is_a_line_of_facts_and_a_payload() -> None:
    log = 'Kernel "solve" was successfully vectorized (16)\n'
    facts = dict(kernel_facts(ended(stdout=b'{"solve.spill_bytes": "0"}\nabc\n'), log))
    assert facts == {"solve.spill_bytes": "0", "solve.vector_width": "16", "payload_bytes": "4"}
    for bad in (b"", b"{}", b"{}\n", b"[]\nx", b"x\ny"):
        with pytest.raises(Unusable):
            split_output(bad)


def test_a_box_sees_one_driver_and_none_of_the_python_packages_below_it(tmp_path: Path) -> None:
    libraries = tmp_path / "lib"
    (libraries / "python3.11" / "site-packages").mkdir(parents=True)
    runtime = Runtime(name="r", loader="l", vendors=str(tmp_path / "vendors"), libraries=str(libraries))
    shown = {mount.target: mount.source for mount in runtime.mounts(tmp_path / "empty")}
    assert shown == {
        str(tmp_path / "vendors"): str(tmp_path / "vendors"),
        str(libraries): str(libraries),
        str(libraries / "python3.11"): str(tmp_path / "empty"),
    }
    assert dict(runtime.environment(3)) == {
        "OCL_ICD_VENDORS": f"{tmp_path}/vendors/",
        "HWLOC_HIDE_ERRORS": "2",
        "LD_LIBRARY_PATH": str(libraries),
        "CL_CONFIG_CPU_TBB_NUM_WORKERS": "3",
        "POCL_MAX_PTHREAD_COUNT": "3",
    }
    system = Runtime(name="r", loader="l", vendors="/v", libraries="/usr/lib/x")
    assert [mount.target for mount in system.mounts(tmp_path)] == ["/v"]
