"""The candidate's side of a check on Triton's interpreter. Runs inside the run box, on its own; nothing is timed.

Started as ``python -I -B triton_child.py FD`` by an interpreter that has torch, numpy and triton, with ``child.py`` and
``confine.py`` in the same folder; orders and answers are those of ``child.py``. The payload (kind ``triton-source``) is
one line of JSON and the candidate's module, which is imported here: its code runs, so the box is all that holds it.
``load`` carries ``types``: ``{"arg": {NUMBER: dtype}, "scratch": [dtype, ...]}`` of what pointers lead to; ``map``
carries ``plan``: bytes of scratch buffers and launches in numbers, with ``constants`` for compile-time arguments.
"""

from __future__ import annotations

import ctypes
import importlib
import linecache
import os
import socket
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

try:
    from kfd_worker.harness import child, confine
except ImportError:  # in the box the files lie beside each other and nothing is installed
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import child  # type: ignore[import-not-found,no-redef]
    import confine  # type: ignore[import-not-found,no-redef]

__all__ = ["EXIT_NO_INTERPRETER", "TritonChild"]

EXIT_NO_INTERPRETER = 71
"""Exit code when torch, numpy or triton is missing or broken: nothing about a candidate."""

_MAX_LAUNCHES = 16
_MAX_SCRATCH = 16
_GARBAGE = 0xA5
_FILE = "kernel.py"
_DTYPES = ("float32", "float64", "int32", "int64", "uint8", "bool", "float16", "bfloat16")


class TritonChild(child.Child):
    """State of one run box with Triton's interpreter. Raises ImportError without one."""

    def __init__(self, channel: socket.socket) -> None:
        super().__init__(channel)
        # Before any module with kernels is there: Triton looks once.
        os.environ["TRITON_INTERPRET"] = "1"
        for name in ("numpy", "triton", "triton.language"):
            importlib.import_module(name)
        self._torch: Any = importlib.import_module("torch")
        self._module: ModuleType | None = None
        self._types: Mapping[str, Any] = {}
        self._scratch: dict[int, list[Any]] = {}

    def _obey(self, order: dict[str, object], fds: list[int]) -> None:
        if order["do"] != "load":
            super()._obey(order, fds)
            return
        if order["kind"] != "triton-source":
            raise ValueError(f"the interpreter takes no {order['kind']}")
        types: Any = order["types"]
        unknown = [name for name in (*types["arg"].values(), *types["scratch"]) if name not in _DTYPES]
        if unknown:
            raise ValueError(f"{unknown[0]} is no dtype")
        with open(str(order["path"]), "rb") as file:
            # The first line is for the launcher.
            source = file.read().partition(b"\n")[2].decode()
        self._types = types
        self._module = _imported(source)
        self._function = self._run  # type: ignore[assignment]
        self.answer(child.LOADED, int(str(order["nonce"])))

    def _map(self, order: dict[str, object], fds: list[int]) -> None:
        """Map buffers as ``child.py`` does, then see them as tensors and find every kernel."""
        number = int(str(order["map"]))
        plan: Any = order["plan"]
        if len(plan["launches"]) > _MAX_LAUNCHES or len(plan["scratch"]) > _MAX_SCRATCH:
            raise ValueError("more launches or scratch buffers than a plan may have")
        super()._map(order, fds)
        scratch = [
            self._torch.full((max(1, size),), _GARBAGE, dtype=self._torch.uint8).view(self._dtype(dtype))
            for size, dtype in zip(plan["scratch"], self._types["scratch"], strict=True)
        ]
        self._scratch[number] = scratch
        raw: Any = order["sets"]
        sets = []
        for given, values in zip(raw, self._sets[number], strict=True):
            handles = [self._handle(k, one, value) for k, (one, value) in enumerate(zip(given, values, strict=True))]
            sets.append(([self._launch(one, handles, scratch) for one in plan["launches"]], scratch))
        self._sets[number] = sets  # type: ignore[assignment]

    def _dtype(self, name: str) -> Any:
        return getattr(self._torch, name)

    def _handle(self, number: int, given: list[Any], value: Any) -> Any:
        """One of the task's arguments as a kernel is given it: a flat tensor over the judge's memory, or a number."""
        if given[0] != "array":
            return value.value
        _, _, _, pages, start, _ = given
        size = pages * child.PAGE - start
        name = self._types["arg"].get(str(number))
        if name is None:
            # No launch passes it on.
            return None
        dtype = self._dtype(name)
        memory = (ctypes.c_ubyte * size).from_address(value.value)
        return self._torch.frombuffer(memory, dtype=dtype, count=size // dtype.itemsize)

    def _launch(
        self, launch: dict[str, Any], handles: list[Any], scratch: list[Any]
    ) -> tuple[Any, tuple[int, ...], list[Any], dict[str, int]]:
        name = str(launch["kernel"])
        kernel = getattr(self._module, name, None)
        if kernel is None or not hasattr(kernel, "__getitem__"):
            raise ValueError(f"there is no function {name} with @triton.jit")
        arguments = []
        for kind, *rest in launch["args"]:
            if kind == "scalar":
                arguments.append(rest[1])
            else:
                arguments.append((handles if kind == "arg" else scratch)[rest[0]])
        return kernel, tuple(launch["grid"]), arguments, dict(launch.get("constants", {}))

    def _run(self, launches: list[Any], scratch: list[Any]) -> int:
        """One call: every launch in order; 0, or 1 when a kernel raised, with its last words on standard error."""
        for buffer in scratch:
            buffer.view(self._torch.uint8).fill_(_GARBAGE)
        for kernel, grid, arguments, constants in launches:
            try:
                kernel[grid](*arguments, **constants)
            except Exception as error:  # noqa: BLE001 - foreign code: whatever it is, it is its own failure
                cause = error.__cause__ or error
                sys.stderr.write(f"{type(cause).__name__}: {cause}\n"[:2000])
                return 1
        return 0


def _imported(source: str) -> ModuleType:
    """The candidate's module. Raises whatever its top level raises."""
    module = ModuleType("kernel")
    module.__file__ = _FILE
    sys.modules["kernel"] = module
    # The interpreter reads a kernel's own text, which lies in no file of that name.
    linecache.cache[_FILE] = (len(source), None, source.splitlines(keepends=True), _FILE)
    exec(compile(source, _FILE, "exec"), module.__dict__)  # noqa: S102 - this box is made for it
    return module


def main() -> None:
    """Serve the judge on the inherited descriptor, confined before any foreign code is loaded."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    try:
        served = TritonChild(channel)
    except Exception as error:  # noqa: BLE001 - a package that is broken breaks in many ways
        sys.stderr.write(f"no Triton interpreter: {type(error).__name__}: {error}\n"[:2000])
        sys.exit(EXIT_NO_INTERPRETER)
    refused = confine.confine()
    if refused:
        sys.exit(refused)
    served.serve()


if __name__ == "__main__":
    main()
