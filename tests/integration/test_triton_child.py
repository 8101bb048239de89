"""Triton's interpreter behind the judge's protocol: kernels of a real module compute, fail and are kept in bounds."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from kfd.tasks import launchplan, load, pack  # noqa: E402
from kfd.tasks.launchbind import bind  # noqa: E402
from kfd.tasks.spec import TaskSpec  # noqa: E402
from kfd_worker.harness import child, triton_child  # noqa: E402
from tests.integration.device_rig import TASKS, Buffers  # noqa: E402

MISSING = [name for name in ("numpy", "triton") if importlib.util.find_spec(name) is None]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(MISSING), reason=f"Triton's interpreter needs {' and '.join(MISSING)}"),
]
SIZES = {"rows": 5, "cols": 37}
HEAD = "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef softmax(x, y, cols, BLOCK: tl.constexpr):\n"


class Rig:
    """One child with a kernel's text in it."""

    def __init__(self, folder: Path, source: str) -> None:
        (folder / "payload").write_bytes(b"{}\n" + source.encode())
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._ours.settimeout(100)
        with theirs:
            fd = theirs.fileno()
            os.set_inheritable(fd, True)
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-B", triton_child.__file__, str(fd)],
                pass_fds=(fd,),
                env={"PATH": "/usr/bin:/bin", "HOME": str(folder)},
                stderr=subprocess.PIPE,
            )
        self._nonce = 0
        self.ready = self._receive()[1]
        types = {"arg": {"0": "float32", "1": "float32"}, "scratch": []}
        order = {"do": "load", "path": str(folder / "payload"), "kind": "triton-source", "options": [], "types": types}
        self.loaded = self.order(order)

    def close(self) -> str:
        """Hang up; what was said on standard error."""
        self._ours.close()
        self.process.kill()
        return self.process.communicate()[1].decode(errors="replace")

    def _receive(self) -> tuple[Any, ...]:
        data = self._ours.recv(child.ANSWER.size + 1)
        assert data, f"the child is gone: {self.close()}"
        return child.ANSWER.unpack(data)

    def order(self, order: Mapping[str, Any], fds: tuple[int, ...] = ()) -> tuple[int, int, str]:
        """(kind, status, text) of the answer."""
        self._nonce += 1
        socket.send_fds(self._ours, [b"J" + json.dumps({**order, "nonce": self._nonce}).encode()], list(fds))
        _, kind, nonce, status, _, text = self._receive()
        assert nonce == self._nonce
        return kind, status, text.rstrip(b"\0").decode()

    def call(self) -> int:
        """Status of one call on set 0; -1 when the child is gone."""
        self._nonce += 1
        self._ours.send(child.CALL.pack(b"C", 0, 1, 1, self._nonce) + b"\0\0")
        data = self._ours.recv(child.ANSWER.size + 1)
        return int(child.ANSWER.unpack(data)[3]) if data else -1


def plan_of(spec: TaskSpec, source: str) -> dict[str, Any]:
    plan = launchplan.parse(source, spec.parameters, "triton")
    return bind(plan, SIZES, {}, 1 << 30).order()


@pytest.fixture(scope="module")
def spec() -> TaskSpec:
    return load(pack(TASKS / "softmax_triton")).spec


@pytest.fixture
def buffers(spec: TaskSpec) -> Iterator[Buffers]:
    shape = (SIZES["rows"], SIZES["cols"])
    x = torch.randn(shape, generator=torch.Generator().manual_seed(7))
    made = Buffers(spec, [{"x": x}], {"x": shape, "y": shape})
    made.given = x  # type: ignore[attr-defined]
    yield made
    made.close()


def started(folder: Path, spec: TaskSpec, source: str, buffers: Buffers) -> Rig:
    rig = Rig(folder, source)
    assert rig.loaded == (child.LOADED, 0, "")
    order = {"do": "map", "map": 1, "sets": buffers.sets, "plan": plan_of(spec, spec.kernel.text)}
    kind, status, text = rig.order(order, (buffers.fd,))
    assert (kind, status) == (child.MAPPED, 0), text
    return rig


def test_the_shipped_kernel_computes_the_reference(tmp_path: Path, spec: TaskSpec, buffers: Buffers) -> None:
    rig = started(tmp_path, spec, spec.kernel.text, buffers)
    try:
        assert rig.call() == 0, rig.close()
        expected = torch.softmax(buffers.given.double(), dim=-1)  # type: ignore[attr-defined]
        assert (buffers.outputs[0]["y"].double() - expected).abs().max() < 1e-6
        buffers.outputs[0]["y"].fill_(float("nan"))
        assert rig.call() == 0
        assert not buffers.outputs[0]["y"].isnan().any()
    finally:
        rig.close()


def test_a_kernel_that_raises_is_a_status_with_its_words(tmp_path: Path, spec: TaskSpec, buffers: Buffers) -> None:
    rig = started(tmp_path, spec, HEAD + "    tl.store(y + nothing, 1.0)\n", buffers)
    assert rig.call() == 1
    assert "nothing" in rig.close()


def test_a_kernel_that_writes_its_input_is_ended(tmp_path: Path, spec: TaskSpec, buffers: Buffers) -> None:
    rig = started(tmp_path, spec, HEAD + "    tl.store(x, 1.0)\n", buffers)
    assert rig.call() == -1
    rig.process.wait(10)
    assert rig.process.returncode == -11
    rig.close()


def test_a_module_that_starts_a_process_is_ended(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="the child is gone"):
        Rig(tmp_path, "import os\nos.fork()\n")


@pytest.mark.parametrize(
    ("source", "text"),
    [("def f(:\n", "SyntaxError"), ("raise KeyError('a')\n", "KeyError"), ("import nothing_there\n", "nothing_there")],
)
def test_a_module_that_cannot_be_imported_is_told(tmp_path: Path, source: str, text: str) -> None:
    rig = Rig(tmp_path, source)
    kind, status, said = rig.loaded
    rig.close()
    assert (kind, status) == (child.FAILED, 1)
    assert text in said


def test_a_plan_for_a_kernel_that_is_not_there_is_told(tmp_path: Path, spec: TaskSpec, buffers: Buffers) -> None:
    rig = Rig(tmp_path, "softmax = 3\n")
    order = {"do": "map", "map": 1, "sets": buffers.sets, "plan": plan_of(spec, spec.kernel.text)}
    kind, _, text = rig.order(order, (buffers.fd,))
    rig.close()
    assert kind == child.FAILED
    assert "there is no function softmax with @triton.jit" in text
