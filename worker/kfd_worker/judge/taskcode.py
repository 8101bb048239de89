"""The task's own code: inputs, reference, oracle. Trusted to be honest, not to be right."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from kfd.base.digest import Digest, digest_of
from kfd.base.expr import evaluate
from kfd.base.instant import Span
from kfd.base.work import CHECKED_ONLY
from kfd.tasks import load, unpack
from kfd.tasks.spec import Case, Parameter, Role, TaskSpec
from kfd_worker.judge.arena import DTYPES, ArraySpec
from kfd_worker.judge.faults import ReferenceFault

__all__ = ["LoadedTask", "Values", "draw_seed"]

Values = dict[str, Any]
"""Inputs by parameter name: tensors and, for scalars, numbers."""

_ON_GPU = ("cuda", "triton")
_MODULE = "kfd_task"


def draw_seed(secret: bytes, *purpose: object) -> int:
    """A generator's seed for one purpose: nobody who lacks the secret can tell it."""
    text = "/".join(map(str, purpose)).encode()
    return int.from_bytes(hashlib.sha256(secret + b"\0" + text).digest()[:8], "little") & ((1 << 63) - 1)


class LoadedTask:
    """One task, its module imported. Kept warm between the jobs of the task."""

    def __init__(self, archive: bytes, scratch: Path, threads: int = 1) -> None:
        self.threads = threads
        """Threads of the reference; all else that the judge computes uses one."""
        self.own_cpu_ns: Span = 0
        """CPU time that the reference has used so far, its double-precision runs included."""
        self.digest: Digest = digest_of(archive)
        try:
            self.spec: TaskSpec = load(archive).spec
        except Exception as error:
            raise ReferenceFault(f"the task archive cannot be read: {error}") from error
        self._folder = Path(tempfile.mkdtemp(prefix="task-", dir=scratch))
        unpack(archive, self._folder / "files")
        self._module = self._import(self._folder / "files")
        self._make_inputs = self._function("make_inputs")
        self._reference = self._function("reference")

    def _import(self, folder: Path) -> ModuleType:
        spec = importlib.util.spec_from_file_location(_MODULE, folder / "task.py")
        if spec is None or spec.loader is None:
            raise ReferenceFault("task.py cannot be imported")
        module = importlib.util.module_from_spec(spec)
        sys.modules[_MODULE] = module
        sys.path.insert(0, str(folder))
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            raise ReferenceFault(f"task.py cannot be imported: {type(error).__name__}: {error}") from error
        finally:
            sys.path.remove(str(folder))
        return module

    def _function(self, name: str) -> Callable[..., Any]:
        function = getattr(self._module, name, None)
        if not callable(function):
            raise ReferenceFault(f"task.py has no function {name}")
        return function  # type: ignore[no-any-return]

    def close(self) -> None:
        """Forget the task, its files and whatever its code imported from them."""
        for name, module in list(sys.modules.items()):
            where = getattr(module, "__file__", None) or ""
            if name == _MODULE or where.startswith(str(self._folder)):
                del sys.modules[name]
        with contextlib.suppress(OSError):
            shutil.rmtree(self._folder)

    # Shapes.

    def arrays(self, case: Case, role: Role) -> list[ArraySpec]:
        """Array arguments of one role, with the case's shapes, in the interface's order."""
        sizes = dict(case.sizes)
        found = []
        for parameter in self.spec.parameters:
            if parameter.role is role:
                shape = tuple(evaluate(text, sizes) for text in parameter.shape)
                found.append(ArraySpec(parameter.name, parameter.dtype, shape))
        return found

    def outputs(self) -> list[Parameter]:
        """Output arguments in order."""
        return [parameter for parameter in self.spec.parameters if parameter.role is Role.OUT]

    # Values.

    def inputs(self, case: Case, seed: int, draws: AbstractContextManager[Any] | None = None) -> Values:
        """Fresh inputs of a case: exactly what the interface names. Raises ReferenceFault.

        While ``draws`` (a ``Draws``) is given, it answers the random draws that it knows.
        """
        generator = torch.Generator().manual_seed(seed)
        # A task that does not use its generator gets secret numbers all the same.
        torch.default_generator.manual_seed(seed)
        random.seed(seed)
        described = {"name": case.name, **dict(case.sizes), "timed": case.timed}
        try:
            with torch.no_grad(), draws or contextlib.nullcontext():
                made = self._make_inputs(described, generator)
        except Exception as error:
            raise ReferenceFault(f"make_inputs fails for case {case.name}: {type(error).__name__}: {error}") from error
        if not isinstance(made, Mapping):
            raise ReferenceFault(f"make_inputs must give a dict by argument name, not a {type(made).__name__}")
        values: Values = {}
        for array in self.arrays(case, Role.IN):
            tensor = made.get(array.name)
            self._check_tensor(case, array, tensor)
            values[array.name] = tensor
        for parameter in self.spec.parameters:
            if parameter.role is Role.SCALAR:
                if parameter.name not in made:
                    raise ReferenceFault(f"make_inputs gives no {parameter.name} for case {case.name}")
                number = made[parameter.name]
                values[parameter.name] = number.item() if isinstance(number, torch.Tensor) else number
        return values

    def _check_tensor(self, case: Case, array: ArraySpec, tensor: object) -> None:
        if not isinstance(tensor, torch.Tensor):
            raise ReferenceFault(f"make_inputs gives no tensor {array.name} for case {case.name}")
        if tensor.dtype != DTYPES[array.dtype] or tuple(tensor.shape) != array.shape:
            raise ReferenceFault(
                f"make_inputs gives {array.name} as {tensor.dtype} {tuple(tensor.shape)} for case {case.name}; "
                f"the interface says {array.dtype} {array.shape}"
            )

    @contextlib.contextmanager
    def at_full_width(self) -> Iterator[None]:
        """For the reference's own work: its threads, and its CPU time counted apart."""
        torch.set_num_threads(self.threads)
        began = time.process_time_ns()
        try:
            yield
        finally:
            self.own_cpu_ns += time.process_time_ns() - began
            torch.set_num_threads(1)

    @property
    def on_gpu(self) -> bool:
        """Whether the reference runs on an NVIDIA device, beside the kernels that it is compared with."""
        return self.spec.toolchain in _ON_GPU and self.spec.targets[0] != CHECKED_ONLY

    def reference(self, case: Case, values: Values) -> list[torch.Tensor]:
        """The reference's outputs on given inputs, on the host, in the interface's order. Raises ReferenceFault."""
        if not self.on_gpu:
            return self.compute(case, values)
        near = {name: one.cuda() if isinstance(one, torch.Tensor) else one for name, one in values.items()}
        return [tensor.cpu() for tensor in self.compute(case, near)]

    def compute(self, case: Case, values: Values) -> list[torch.Tensor]:
        """The reference's outputs where its inputs are, in the interface's order. Raises ReferenceFault."""
        try:
            with torch.no_grad():
                made = self._reference(**values)
        except Exception as error:
            raise ReferenceFault(
                f"the reference fails for case {case.name}: {type(error).__name__}: {error}"
            ) from error
        return self._ordered(case, made)

    def oracle(self, case: Case, values: Values) -> list[torch.Tensor]:
        """The reference in double precision on the inputs as rounded, rounded to float32 where outputs are no wider.

        Integers stay integers.
        """
        wide = {
            name: value.double() if isinstance(value, torch.Tensor) and value.dtype.is_floating_point else value
            for name, value in values.items()
        }
        with self.at_full_width():
            made = self.reference(case, wide)
        return [
            # A float32 output is right to within 1e-5 or worse, and rounding the oracle to float32 moves it by 6e-8.
            tensor.float() if tensor.dtype is torch.float64 and parameter.dtype != "float64" else tensor
            for tensor, parameter in zip(made, self.outputs(), strict=True)
        ]

    def _ordered(self, case: Case, made: object) -> list[torch.Tensor]:
        outputs = self.outputs()
        if isinstance(made, torch.Tensor):
            made = (made,)
        if isinstance(made, Mapping):
            made = tuple(made.get(parameter.name) for parameter in outputs)
        if not isinstance(made, tuple | list) or len(made) != len(outputs):
            raise ReferenceFault(f"the reference must give {len(outputs)} outputs for case {case.name}")
        found: list[torch.Tensor] = []
        for array, tensor in zip(self.arrays(case, Role.OUT), made, strict=True):
            if not isinstance(tensor, torch.Tensor) or tuple(tensor.shape) != array.shape:
                what = tuple(tensor.shape) if isinstance(tensor, torch.Tensor) else type(tensor).__name__
                raise ReferenceFault(
                    f"the reference gives {what} for {array.name} in case {case.name}; the interface says {array.shape}"
                )
            found.append(tensor)
        return found
