"""Triton kernels ahead of time, in a build box: the only place where a candidate's Python module is imported.

``python -I triton_compile.py ORDER SOURCE``: ORDER is JSON ``{"capability": 90, "shown": PATH, "kernels": [{"key",
"name", "types": [...], "constants": {...}, "warps", "stages"}]}``, where ``types`` are the positional arguments of the
launch plan and ``capability`` 0 asks for the interpreter. No device is needed. Out comes, on standard output, one line
of JSON and the cubins behind each other; for the interpreter, the line and the source. Messages go to standard error as
``file:line:column: error: text``. What comes out is the candidate's word: ``toolchains/triton.py`` bounds it.

A kernel's parameters are its arguments without the compile-time ones, in order, then the pointers that Triton adds for
scratch memory (``global_scratch`` and ``profile_scratch``; null when of no size).
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
import traceback
from types import ModuleType
from typing import Any

__all__ = ["Unusable", "main", "signature"]

_MAX_TEXT = 600
_UNUSABLE = 126


class Unusable(Exception):
    """A kernel that the launch plan cannot start; with the line of the source, 0 when no line is to blame."""

    def __init__(self, line: int, text: str) -> None:
        super().__init__(text)
        self.line = line


def signature(names: list[str], types: list[str], constants: dict[str, int], line: int) -> dict[str, str]:
    """Types by argument name for the compiler. Raises Unusable when plan and kernel do not fit."""
    unknown = [name for name in constants if name not in names]
    if unknown:
        raise Unusable(line, f"the launch plan gives {unknown[0]}, and the kernel has no such argument")
    open_ = [name for name in names if name not in constants]
    if len(open_) != len(types):
        text = f"the kernel takes {len(open_)} arguments ({', '.join(open_)}) besides those that the launch plan names"
        raise Unusable(line, f"{text}, the launch plan gives {len(types)}")
    by_name = dict(zip(open_, types, strict=True))
    return {name: by_name.get(name, "constexpr") for name in names}


def _import(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location("kernel", path)
    if spec is None or spec.loader is None:
        raise Unusable(0, "the kernel file cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules["kernel"] = module
    spec.loader.exec_module(module)
    return module


def _function(module: ModuleType, name: str) -> Any:
    found = getattr(module, name, None)
    if found is None or not hasattr(found, "arg_names"):
        raise Unusable(0, f"there is no function {name} with @triton.jit")
    if hasattr(found, "configs"):
        raise Unusable(0, f"{name} is autotuned; declare the numbers in a [TUNE] comment instead")
    return found


def _start(function: Any) -> int:
    """Line of the ``def`` in the file: Triton counts from there, and its own number is that of the first decorator."""
    first = int(getattr(function, "starting_line_number", 0) or 0)
    lines = getattr(function, "raw_src", None) or ()
    return first + next((at for at, line in enumerate(lines) if line.lstrip().startswith("def ")), 0)


def _compiled(job: dict[str, Any], function: Any, capability: int) -> tuple[dict[str, Any], bytes]:
    """What the run side must know of a kernel, and its cubin."""
    triton: Any = importlib.import_module("triton")
    target = importlib.import_module("triton.backends.compiler").GPUTarget("cuda", capability, 32)
    names = list(function.arg_names)
    types = signature(names, job["types"], job["constants"], _start(function))
    # Every array begins at a multiple of 64 bytes: 16 lets whole vectors be loaded.
    pointers = [index for index, name in enumerate(names) if types[name].startswith("*")]
    source = importlib.import_module("triton.compiler").ASTSource(
        fn=function,
        signature=types,
        constexprs=dict(job["constants"]),
        attrs={(index,): [["tt.divisibility", 16]] for index in pointers},
    )
    # Said, because what it is when nobody says changes from one version to the next.
    options = {"num_warps": job["warps"], "num_stages": job["stages"], "enable_fp_fusion": True}
    made = triton.compile(source, target=target, options=options)
    told = made.metadata
    if getattr(told, "num_ctas", 1) != 1:
        raise Unusable(_start(function), "kernels of several thread block clusters cannot be launched")
    entry = {
        "key": job["key"],
        "symbol": told.name,
        "threads": 32 * told.num_warps,
        "shared": told.shared,
        # In the order in which Triton appends them.
        "hidden": [
            getattr(told, f"{kind}_scratch_size")
            for kind in ("global", "profile")
            if hasattr(told, f"{kind}_scratch_size")
        ],
    }
    return entry, made.asm["cubin"]


def _tell(shown: str, line: int, column: int, text: str) -> None:
    first = " ".join(text.split())[:_MAX_TEXT] or "unknown error"
    sys.stderr.write(f"{shown}:{line}:{column}: error: {first}\n")


def _explain(shown: str, path: str, error: BaseException, start: int) -> None:
    """One message: at the innermost line of the candidate's own file, or where Triton says."""
    node = getattr(error, "node", None)
    if node is not None and start:
        cause = error.__cause__
        text = (
            getattr(error, "error_message", None) or (str(cause) if cause else "") or str(error).strip().split("\n")[-1]
        )
        _tell(shown, start + node.lineno - 1, node.col_offset + 1, text)
        return
    if isinstance(error, Unusable):
        _tell(shown, error.line, 1, str(error))
        return
    if isinstance(error, SyntaxError):
        _tell(shown, error.lineno or 0, error.offset or 0, f"{type(error).__name__}: {error.msg}")
        return
    lines = [frame.lineno or 0 for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    _tell(shown, lines[-1] if lines else 0, 1, f"{type(error).__name__}: {error}")


def _work(order: dict[str, Any], path: str) -> tuple[int, dict[str, Any], list[bytes]]:
    """Exit code, header and pieces of the payload."""
    capability, shown = order["capability"], order["shown"]
    entries: list[dict[str, Any]] = []
    pieces: list[bytes] = []
    start = 0
    try:
        module = _import(path)
        for job in order["kernels"]:
            start = 0
            function = _function(module, job["name"])
            start = _start(function)
            if not capability:
                signature(list(function.arg_names), job["types"], job["constants"], start)
                entries.append({"key": job["key"], "symbol": job["name"], "threads": 1, "shared": 0, "hidden": []})
                continue
            entry, code = _compiled(job, function, capability)
            entries.append({**entry, "size": len(code)})
            pieces.append(code)
    except BaseException as error:  # noqa: BLE001 - foreign code: SystemExit and KeyboardInterrupt are messages as well
        _explain(shown, path, error, start)
        return 1, {}, []
    if not capability:
        with open(path, "rb") as file:
            pieces.append(file.read())
    return 0, {"entries": entries}, pieces


def main(arguments: list[str]) -> int:
    """Compile; the exit code."""
    order = json.loads(arguments[0])
    # What the module prints must not get into the payload by accident.
    payload = os.dup(1)
    os.dup2(2, 1)
    os.environ.setdefault("TRITON_CACHE_DIR", os.path.join(os.environ.get("TMPDIR", "/tmp"), "triton"))
    if not order["capability"]:
        os.environ["TRITON_INTERPRET"] = "1"
    if importlib.util.find_spec("triton") is None:
        sys.stderr.write("triton is missing: pip install 'kfd[triton]'\n")
        return _UNUSABLE
    code, header, pieces = _work(order, arguments[1])
    if code == 0:
        with os.fdopen(payload, "wb") as out:
            out.write(json.dumps(header, sort_keys=True).encode() + b"\n" + b"".join(pieces))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
