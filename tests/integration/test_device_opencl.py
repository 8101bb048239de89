"""OpenCL and SYCL kernels in device form, built in real boxes and run on the CPU through the child's protocol."""

from __future__ import annotations

import os
import runpy
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

torch = pytest.importorskip("torch")

from kfd.base.expr import evaluate  # noqa: E402
from kfd.base.work import BuildResult, Verdict, VerdictCode  # noqa: E402
from kfd.tasks import load, pack  # noqa: E402
from kfd.tasks.spec import KernelFile, Role  # noqa: E402
from kfd_worker.harness import child  # noqa: E402
from kfd_worker.judge.device_plan import plan_order  # noqa: E402
from kfd_worker.launcher.client import LauncherClient  # noqa: E402
from kfd_worker.launcher.config import LauncherConfig  # noqa: E402
from kfd_worker.toolchains import package  # noqa: E402
from tests.integration.device_rig import TASKS, Buffers, ChildRig, build, map_order, missing, package_of  # noqa: E402
from tests.integration.exec_device_answers import TREES  # noqa: E402
from tests.integration.exec_recordings import walk  # noqa: E402

pytestmark = pytest.mark.asyncio(loop_scope="module")

SHIPPED = ("softmax_opencl", "matmul_opencl", "softmax_sycl", "matmul_sycl")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LauncherClient]:
    folder = tmp_path_factory.mktemp("device")
    reason = missing("opencl", folder)
    if reason:
        pytest.skip(reason)
    made = await LauncherClient.start(LauncherConfig(state_dir=str(folder / "state"), run_slots=0))
    try:
        yield made
    finally:
        await made.close()


def need(toolchain: str, folder: Path) -> None:
    reason = missing(toolchain, folder)
    if reason:
        pytest.skip(reason)


def results(folder: Path, data: bytes, name: str, case: int, **options: Any) -> None:
    """Run a package on one case, twice on one set and once on another, and compare with the reference."""
    task = runpy.run_path(str(TASKS / name / "task.py"))
    spec = load(pack(TASKS / name)).spec
    sizes = {key: value for key, value in task["CASES"][case].items() if key not in ("name", "timed")}
    generator = torch.Generator().manual_seed(7)
    inputs = [task["make_inputs"](task["CASES"][case], generator) for _ in range(2)]
    shapes = {one.name: tuple(evaluate(extent, sizes) for extent in one.shape) for one in spec.parameters if one.shape}
    buffers = Buffers(spec, inputs, shapes)
    rig = ChildRig(folder, data, **options)
    try:
        assert rig.kind == child.READY
        assert rig.loaded[:2] == (child.LOADED, 0)
        kind, status, text = rig.order(map_order(rig.header, sizes, buffers), (buffers.fd,))
        assert (kind, status) == (child.MAPPED, 0), text
        assert rig.call(1, [0, 1, 0]) == (child.DONE, 0)
        (out,) = (one.name for one in spec.parameters if one.role is Role.OUT)
        for values, outputs in zip(inputs, buffers.outputs, strict=True):
            want = task["reference"](**{key: value.double() for key, value in values.items()})
            error = (outputs[out].double() - want).norm() / want.norm()
            assert float(error) < 1e-5
    finally:
        rig.close()
        buffers.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", SHIPPED)
async def test_a_shipped_task_builds_in_a_box_and_is_right_on_every_case(
    client: LauncherClient, tmp_path: Path, name: str
) -> None:
    need(name.partition("_")[2], tmp_path)
    data = await package_of(client, tmp_path, name)
    header, _ = package.read(data)
    assert header["abi"]["kind"] == ("spirv" if "sycl" in name else "opencl-binary")
    for case in range(len(load(pack(TASKS / name)).spec.cases)):
        results(tmp_path, data, name, case)


async def test_a_device_without_the_host_s_memory_gets_copies(client: LauncherClient, tmp_path: Path) -> None:
    data = await package_of(client, tmp_path, "softmax_opencl")
    results(tmp_path, data, "softmax_opencl", 0, options=("copies",))


TUNED = """
// [EVOLVE_START]
// [TUNE] GROUP in {32, 16, 64}; where GROUP <= 64
// [LAUNCH] scratch sums: float32[rows, 2]
// [LAUNCH] launch solve grid(rows) block(GROUP) args(x, sums, cols, local(4 * GROUP), int32(GROUP))
// [LAUNCH] launch scale grid(ceildiv(cols, GROUP), rows) block(GROUP) args(x, sums, y, cols)
kernel void solve(global const float *x, global float *sums, long cols, local float *part, int width)
{
    const long row = get_group_id(0), me = get_local_id(0);
    float top = -INFINITY;
    for (long j = me; j < cols; j += GROUP) top = fmax(top, x[row * cols + j]);
    part[me] = top;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = 0; i < width; ++i) top = fmax(top, part[i]);
    barrier(CLK_LOCAL_MEM_FENCE);
    float sum = 0.0f;
    for (long j = me; j < cols; j += GROUP) sum += exp(x[row * cols + j] - top);
    part[me] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (me == 0) {
        sum = 0.0f;
        for (int i = 0; i < width; ++i) sum += part[i];
        sums[2 * row] = top;
        sums[2 * row + 1] = sum;
    }
}
kernel void scale(global const float *x, global const float *sums, global float *y, long cols)
{
    const long j = get_global_id(0), row = get_group_id(1);
    if (j < cols) y[row * cols + j] = exp(x[row * cols + j] - sums[2 * row]) / sums[2 * row + 1];
}
// [EVOLVE_END]
"""


@pytest.mark.parametrize("chosen", ["32", "64"])
async def test_several_kernels_with_scratch_local_memory_and_tunables(
    client: LauncherClient, tmp_path: Path, chosen: str
) -> None:
    data = await package_of(client, tmp_path, "softmax_opencl", TUNED, defines=(("GROUP", chosen),))
    header, _ = package.read(data)
    assert header["tunables"] == {"GROUP": int(chosen)}
    order = plan_order(header, {"rows": 3, "cols": 65}, 1 << 20)
    assert order["scratch"] == [24]
    assert order["launches"][1]["grid"] == [-(-65 // int(chosen)), 3, 1]
    for case in (1, 2, 3):
        results(tmp_path, data, "softmax_opencl", case)


async def test_scratch_holds_garbage_when_a_call_begins(client: LauncherClient, tmp_path: Path) -> None:
    # Copies what it finds in scratch, then leaves something of its own there.
    text = TUNED[: TUNED.index("// [TUNE]")] + (
        "// [LAUNCH] scratch kept: float32[rows, cols]\n"
        "// [LAUNCH] launch solve grid(rows) block(1) args(x, y, kept, cols)\n"
        "kernel void solve(global const float *x, global float *y, global float *kept, long cols)\n"
        "{\n    const long at = get_group_id(0) * cols;\n"
        "    for (long j = 0; j < cols; ++j) { y[at + j] = kept[at + j]; kept[at + j] = 1.0f; }\n}\n"
        "// [EVOLVE_END]\n"
    )
    data = await package_of(client, tmp_path, "softmax_opencl", text)
    spec = load(pack(TASKS / "softmax_opencl")).spec
    sizes = {"rows": 3, "cols": 17}
    buffers = Buffers(spec, [{"x": torch.zeros(3, 17)}], {"x": (3, 17), "y": (3, 17)})
    rig = ChildRig(tmp_path, data)
    try:
        rig.order(map_order(rig.header, sizes, buffers), (buffers.fd,))
        for _ in range(2):
            assert rig.call(1, [0]) == (child.DONE, 0)
            found = buffers.outputs[0]["y"].view(torch.int32)
            assert bool((found == torch.tensor(0xA5A5A5A5 - (1 << 32), dtype=torch.int32)).all())
    finally:
        rig.close()
        buffers.close()


async def test_a_kernel_that_leaves_its_arrays_ends_its_own_process_only(
    client: LauncherClient, tmp_path: Path
) -> None:
    spec = load(pack(TASKS / "softmax_opencl")).spec
    text = spec.kernel.text.replace("out[j] = exp(in[j] - largest) / (float)sum;", "out[j - 1] = 1.0f;")
    data = await package_of(client, tmp_path, "softmax_opencl", text)
    buffers = Buffers(spec, [{"x": torch.zeros(1, 1)}], {"x": (1, 1), "y": (1, 1)})
    rig = ChildRig(tmp_path, data)
    try:
        rig.order(map_order(rig.header, {"rows": 1, "cols": 1}, buffers), (buffers.fd,))
        with pytest.raises(AssertionError, match="the child is gone"):
            rig.call(1, [0])
        assert rig.process.wait(20) < 0
    finally:
        rig.close()
        buffers.close()


async def test_an_input_cannot_be_written(client: LauncherClient, tmp_path: Path) -> None:
    spec = load(pack(TASKS / "softmax_opencl")).spec
    text = spec.kernel.text.replace("out[j] = exp", "((global float *)in)[j] = exp")
    data = await package_of(client, tmp_path, "softmax_opencl", text)
    buffers = Buffers(spec, [{"x": torch.zeros(1, 1)}], {"x": (1, 1), "y": (1, 1)})
    rig = ChildRig(tmp_path, data)
    try:
        rig.order(map_order(rig.header, {"rows": 1, "cols": 1}, buffers), (buffers.fd,))
        with pytest.raises(AssertionError, match="the child is gone"):
            rig.call(1, [0])
    finally:
        rig.close()
        buffers.close()


async def test_recorded_answers_end_as_recorded(client: LauncherClient, tmp_path: Path) -> None:
    spec = load(pack(TASKS / "softmax_opencl")).spec
    ran = 0
    for step in walk(spec.kernel, TREES["softmax_opencl"](), spec.entry):
        if not isinstance(step.made, KernelFile) or step.depth > 2 or ran == 8:
            continue
        ran += 1
        done = await build(client, tmp_path, "softmax_opencl", step.made.text)
        assert isinstance(done.report.outcome, Verdict)
        if step.reply.ends == "compile_error":
            assert done.report.outcome.code is VerdictCode.COMPILE_ERROR
            continue
        assert done.artifact is not None, (step.name, done.report.outcome)
        if step.reply.ends == "faster":
            for case in (1, 2, 3):
                results(tmp_path, done.artifact.read_bytes(), "softmax_opencl", case)
    assert ran == 8


WRONG = [
    ("softmax_opencl", "args(x, y, cols)", "args(x, y)", "the launch gives `solve` 2 arguments; the kernel takes 3"),
    (
        "softmax_opencl",
        "args(x, y, cols)",
        "args(x, y, int32(cols))",
        "is `private long cols`; the launch",
    ),
    (
        "softmax_opencl",
        "args(x, y, cols)",
        "args(x, cols, cols)",
        "`global float* y`; the launch gives a value",
    ),
    ("softmax_opencl", "launch solve grid", "launch other grid", "`other`, which is no kernel here; there are: solve"),
    ("softmax_opencl", "grid(rows)", "grid(row)", "Did you mean rows?"),
    ("softmax_opencl", "grid(rows)", "grid(rows - 1)", "is 0. It must lie between 1 and"),
    ("softmax_opencl", "double sum = 0.0;", "double sum = nothing;", "use of undeclared identifier 'nothing'"),
    ("softmax_sycl", "args(x, y, cols)", "args(x, y)", "the launch gives `solve` 2 arguments; the kernel takes 3"),
    ("softmax_sycl", "double sum = 0.0;", "double sum = nothing;", "use of undeclared identifier 'nothing'"),
    ("softmax_sycl", "KERNEL(1) void solve", "void solve", "0 device images"),
]


@pytest.mark.parametrize(("name", "old", "new", "says"), WRONG)
async def test_what_is_wrong_is_said_with_its_line(
    client: LauncherClient, tmp_path: Path, name: str, old: str, new: str, says: str
) -> None:
    need(name.partition("_")[2], tmp_path)
    text = load(pack(TASKS / name)).spec.kernel.text
    assert text.count(old) == 1
    done = await build(client, tmp_path, name, text.replace(old, new))
    assert isinstance(done.report.outcome, Verdict)
    assert done.report.outcome.code is VerdictCode.COMPILE_ERROR
    assert isinstance(done.report.detail, BuildResult)
    first = done.report.detail.diagnostics[0]
    assert says in first.text
    assert first.file == f"kernel.{'sycl' if 'sycl' in name else 'cl'}"
    if "device images" not in says:
        assert first.line == text[: text.index(old)].count("\n") + 1
    assert done.artifact is None


async def test_a_tunable_is_only_set_to_what_is_offered(client: LauncherClient, tmp_path: Path) -> None:
    done = await build(client, tmp_path, "softmax_opencl", TUNED, defines=(("GROUP", "33"),))
    assert isinstance(done.report.outcome, Verdict)
    assert "GROUP = 33 is not offered" in done.report.outcome.text


@pytest.mark.skipif(not os.path.exists("/usr/bin/ocloc"), reason="ocloc is not installed: apt install intel-opencl-icd")
async def test_ocloc_builds_for_an_intel_gpu_that_is_not_here(client: LauncherClient, tmp_path: Path) -> None:
    data = await package_of(client, tmp_path, "matmul_opencl", target="opencl:pvc")
    header, payload = package.read(data)
    assert header["abi"] == {
        "kind": "opencl-binary",
        "toolchain": "opencl",
        "target": "opencl:pvc",
        "runtime": "",
        "device": "pvc",
    }
    assert len(payload) > 1000
    assert package.compatible(header, {"kinds": "opencl-binary", "device": "pvc"}) == ""
    assert "built for the device 'pvc'" in package.compatible(header, {"kinds": "opencl-binary", "device": "CPU"})
    broken = load(pack(TASKS / "matmul_opencl")).spec.kernel.text.replace("float sum = 0.0f;", "float sum = nothing;")
    done = await build(client, tmp_path, "matmul_opencl", broken, target="opencl:pvc")
    assert isinstance(done.report.outcome, Verdict)
    assert "undeclared identifier" in done.report.outcome.text
