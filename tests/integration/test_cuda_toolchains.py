"""nvcc, NVRTC and Triton really compile here, without a device; what is missing skips its test."""

from __future__ import annotations

import dataclasses
import importlib.util
import shutil
import subprocess
from pathlib import Path

import pytest

from kfd.base.digest import digest_of
from kfd.base.evidence import from_facts
from kfd.base.work import BuildSpec, VerdictCode
from kfd.tasks import launchplan, load, pack
from kfd.tasks.launchbind import bind
from kfd.tasks.launchplan import LaunchPlan
from kfd.tasks.spec import TaskSpec
from kfd_worker.sandbox.box import Ended, Limit
from kfd_worker.toolchains import cubin, package
from kfd_worker.toolchains.compiled import split_listing
from kfd_worker.toolchains.cuda import HOST_FORM, Cuda, architectures
from kfd_worker.toolchains.elf import exported_symbols
from kfd_worker.toolchains.port import SOURCE, BuildRequest, NotInstalled, Refused, Unusable
from kfd_worker.toolchains.triton import CUBIN_KIND, INTERPRETER, Triton
from kfd_worker.toolchains.triton_entries import resolve, split

TASKS = Path(__file__).resolve().parents[2] / "tasks"
PATH = "/usr/local/cuda/bin:/usr/local/bin:/usr/bin:/bin"
needs_nvcc = pytest.mark.skipif(shutil.which("nvcc", path=PATH) is None, reason="no nvcc")
needs_triton = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="no triton")


def spec_of(task: str, text: str = "", **more: object) -> BuildSpec:
    loaded = load(pack(TASKS / task)).spec
    spec = BuildSpec(
        task=loaded.digest,
        source=text or loaded.kernel.text,
        kernel_path=loaded.kernel.path,
        toolchain=loaded.toolchain,
        target=loaded.targets[0],
    )
    return dataclasses.replace(spec, **more)  # type: ignore[arg-type]


def asked(toolchain: Cuda | Triton, spec: BuildSpec) -> tuple[TaskSpec, LaunchPlan | None, BuildRequest]:
    """As the launcher asks: with the task and the source's plan."""
    name = "matmul" if "matmul" in spec.source else "softmax"
    task = load(pack(TASKS / f"{name}_{spec.toolchain}")).spec
    in_form = launchplan.in_device_form(spec.toolchain, spec.source)
    plan = launchplan.parse(spec.source, task.parameters, spec.toolchain) if in_form else None
    return task, plan, toolchain.request(spec, task, plan)


def made(toolchain: Cuda | Triton, spec: BuildSpec, folder: Path) -> Ended:
    """Built as in a build box, in a folder of its own."""
    _, _, request = asked(toolchain, spec)
    mounts = {mount.target: mount.source for mount in request.mounts}
    (folder / spec.kernel_path).write_text(spec.source)
    argv = [one.replace(SOURCE, str(folder)).replace("/scratch", str(folder)) for one in request.argv]
    argv = [mounts.get(one, one) for one in argv]
    env = {"PATH": PATH, "TMPDIR": str(folder), "HOME": str(folder)}
    done = subprocess.run(argv, capture_output=True, timeout=200, env=env)
    log = done.stderr.replace(str(folder).encode(), SOURCE.encode())
    return Ended(
        code=done.returncode,
        started=True,
        limit=Limit.NONE,
        log=log,
        log_dropped=0,
        stdout=done.stdout,
        wall_ns=1,
        cpu_ns=1,
        peak_bytes=0,
    )


@needs_nvcc
def test_nvcc_knows_itself_and_its_targets() -> None:
    toolchain = Cuda()
    assert {"cuda:sm_90", "cuda:sm_90a"} <= set(toolchain.targets)
    first, second = toolchain.self_test(), Cuda().self_test()
    assert first.version.startswith("nvcc ")
    assert first.fingerprint == second.fingerprint


@needs_nvcc
@pytest.mark.parametrize("target", ["cuda:sm_90", "cuda:sm_90a"])
def test_device_code_becomes_a_cubin_with_its_facts(target: str, tmp_path: Path) -> None:
    toolchain = Cuda()
    spec = spec_of("softmax_cuda", target=target, defines=(("THREADS", "512"),))
    ended = made(toolchain, spec, tmp_path)
    assert ended.code == 0, ended.log
    _, code = split_listing(ended.stdout)
    assert cubin.kernels(code) == {"softmax"}
    assert toolchain.missing(code, ["softmax"]) == ""
    assert 'extern "C" __global__ void softmaks' in toolchain.missing(code, ["softmaks"])
    # 512 floats of static shared memory: the chosen tunable became a macro.
    assert "shared=2048" in dict(toolchain.facts(spec, ended))["ptxas.softmax"]
    seen = from_facts(toolchain.facts(spec, ended))
    assert (seen.shared, seen.barriers, seen.global_atomics, seen.kernels) == (True, True, False, 1)
    task, plan, _ = asked(toolchain, spec)
    header, payload = package.read(toolchain.artifact(spec, task, plan, ended))
    assert payload == code
    assert header["abi"]["kind"] == "cubin"
    assert header["abi"]["target"] == target
    assert header["tunables"] == {"THREADS": 512}
    other = dataclasses.replace(ended, stdout=b"no code at all")
    with pytest.raises(Unusable, match="no device code"):
        toolchain.artifact(spec, task, plan, other)


@needs_nvcc
def test_an_error_names_line_and_text(tmp_path: Path) -> None:
    toolchain = Cuda()
    source = spec_of("softmax_cuda").source
    spec = spec_of("softmax_cuda", source.replace("expf(in[j]", "fast_expf(in[j]", 1))
    ended = made(toolchain, spec, tmp_path)
    messages = toolchain.diagnostics(spec, ended)
    verdict = toolchain.verdict(spec, ended, messages)
    assert verdict is not None
    line = next(at for at, raw in enumerate(spec.source.split("\n"), start=1) if "fast_expf" in raw)
    assert verdict.code is VerdictCode.COMPILE_ERROR
    assert verdict.text == f'kernel.cu:{line}: identifier "fast_expf" is undefined'


@needs_nvcc
def test_too_much_shared_memory_is_a_limit_and_not_an_error_of_the_language(tmp_path: Path) -> None:
    toolchain = Cuda()
    source = spec_of("softmax_cuda").source.replace("parts[THREADS]", "parts[THREADS * 100]")
    spec = spec_of("softmax_cuda", source)
    ended = made(toolchain, spec, tmp_path)
    verdict = toolchain.verdict(spec, ended, toolchain.diagnostics(spec, ended))
    assert verdict is not None
    assert verdict.code is VerdictCode.RESOURCE_LIMIT


@needs_nvcc
def test_the_host_form_becomes_a_library(tmp_path: Path) -> None:
    source = (
        "__global__ void fill(float *y) { y[threadIdx.x] = 1; }\n"
        'extern "C" __attribute__((visibility("default"))) int solve(float *y, void *stream) {\n'
        "    fill<<<1, 32, 0, (cudaStream_t)stream>>>(y);\n    return cudaGetLastError();\n}\n"
    )
    toolchain = Cuda()
    spec = spec_of("softmax_cuda", source)
    ended = made(toolchain, spec, tmp_path)
    assert ended.code == 0, ended.log
    assert "solve" in exported_symbols(split_listing(ended.stdout)[1])
    task, plan, _ = asked(toolchain, spec)
    assert plan is None
    with pytest.raises(Unusable, match="does not define softmax"):
        toolchain.artifact(spec, task, None, ended)
    header, _ = package.read(toolchain.artifact(spec, dataclasses.replace(task, entry="solve"), None, ended))
    assert header["abi"]["kind"] == HOST_FORM


def test_flags_defines_and_targets_outside_the_lists_are_refused() -> None:
    toolchain = Cuda()
    for wrong in (
        {"flags": ("-Xcompiler=-fplugin=x",)},
        {"flags": ("-I/etc",)},
        {"defines": (("THREADS", "333"),)},
        {"defines": (("A B", "1"),)},
        {"target": "cuda:sm_90;rm"},
    ):
        with pytest.raises(Refused):
            asked(toolchain, spec_of("softmax_cuda", **wrong))


def test_architectures_from_what_the_compiler_lists() -> None:
    assert architectures("sm_75\nsm_90\nsm_100 rubbish") == (
        "cuda:sm_75",
        "cuda:sm_90",
        "cuda:sm_90a",
        "cuda:sm_100",
        "cuda:sm_100a",
    )


def test_a_machine_without_compilers_says_what_to_install(tmp_path: Path) -> None:
    toolchain = Cuda(search=str(tmp_path), nvrtc="")
    if toolchain.targets:
        pytest.skip("libnvrtc is installed")
    with pytest.raises(NotInstalled, match="nvidia-cuda-nvrtc"):
        toolchain.self_test()


def test_nvrtc_compiles_when_it_is_there(tmp_path: Path) -> None:
    toolchain = Cuda(search=str(tmp_path))
    if not toolchain.targets:
        pytest.skip("no libnvrtc")
    assert toolchain.self_test().version.startswith("nvrtc ")
    spec = spec_of("softmax_cuda")
    ended = made(toolchain, spec, tmp_path)
    assert cubin.kernels(ended.stdout) == {"softmax"}
    with pytest.raises(Refused, match="needs nvcc"):
        asked(toolchain, spec_of("softmax_cuda", 'extern "C" int solve() { return 0; }'))


@needs_triton
@pytest.mark.parametrize("name", ["softmax_triton", "matmul_triton"])
def test_triton_kernels_become_cubins_without_a_device(name: str, tmp_path: Path) -> None:
    toolchain = Triton()
    spec = spec_of(name)
    task, plan, _ = asked(toolchain, spec)
    ended = made(toolchain, spec, tmp_path)
    assert ended.code == 0, ended.log
    (entry,) = split(ended.stdout)
    code = ended.stdout[entry.offset : entry.offset + entry.size]
    assert cubin.kernels(code) == {task.entry}
    assert entry.hidden == (0, 0)
    assert toolchain.missing(ended.stdout, [entry.key]) == ""
    assert toolchain.missing(ended.stdout, ["other"]) != ""
    header, payload = package.read(toolchain.artifact(spec, task, plan, ended))
    assert header["abi"]["kind"] == CUBIN_KIND
    place = header["entries"][entry.key]["module"]
    assert payload[place[0] : place[0] + 4] == b"\x7fELF"
    bound = bind(launchplan.parse(spec.source, task.parameters, "triton"), dict(task.cases[0].sizes), {}, 1 << 33)
    (launch,) = resolve(bound, header["entries"])["launches"]
    assert launch["kernel"] == entry.key
    assert launch["block"] == [entry.threads, 1, 1]
    with pytest.raises(Unusable):
        toolchain.artifact(spec, task, plan, dataclasses.replace(ended, stdout=b"{}\n"))


@needs_triton
def test_an_error_in_a_triton_kernel_names_its_line(tmp_path: Path) -> None:
    toolchain = Triton()
    task = load(pack(TASKS / "softmax_triton")).spec
    source = task.kernel.text.replace("tl.max(", "tl.highest(", 1)
    spec = spec_of("softmax_triton", source)
    ended = made(toolchain, spec, tmp_path)
    verdict = toolchain.verdict(spec, ended, toolchain.diagnostics(spec, ended))
    assert verdict is not None
    line = next(at for at, raw in enumerate(source.split("\n"), start=1) if "tl.highest(" in raw)
    assert verdict.code is VerdictCode.COMPILE_ERROR
    assert verdict.text.startswith(f"kernel.py:{line}: ")
    assert "highest" in verdict.text


@needs_triton
def test_the_interpreter_takes_the_source_as_it_is(tmp_path: Path) -> None:
    toolchain = Triton()
    if INTERPRETER not in toolchain.targets:
        pytest.skip("no numpy")
    spec = spec_of("softmax_triton", target=INTERPRETER)
    ended = made(toolchain, spec, tmp_path)
    assert ended.code == 0, ended.log
    (entry,) = split(ended.stdout)
    assert ended.stdout[entry.offset :].decode() == spec.source


@needs_triton
def test_triton_takes_no_flags_and_knows_itself() -> None:
    toolchain = Triton()
    with pytest.raises(Refused, match="takes no flags"):
        asked(toolchain, spec_of("softmax_triton", flags=("-O3",)))
    first = toolchain.self_test()
    assert first.version.startswith("triton ")
    assert first.fingerprint == Triton().self_test().fingerprint != digest_of(b"")
