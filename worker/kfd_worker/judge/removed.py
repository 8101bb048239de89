"""The reference with one of its operations left out: an answer that a comparison must not take (evaluation notes, 5.1).

An operation is a call of torch that gives a tensor of the shape and type of one of its arguments and says something
else than it: left out, that argument takes the place of the result. Copies and changes of layout that keep every value
where it is are none, nor is what makes a new tensor (``zeros_like``), nor what changes less than ``MATERIAL`` of its
result (a small number added against division by zero): nobody could see them missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

__all__ = ["MATERIAL", "Without", "operations"]

MATERIAL = 1e-3
"""Relative L2 change below which an operation is too small to be missed."""
_MOST = 32
_PLAIN = frozenset(
    {"clone", "contiguous", "cpu", "cuda", "detach", "to", "view", "reshape", "requires_grad_", "copy_", "__get__"}
)


class Without(TorchFunctionMode):
    """While active, the operation with this number (from 0, in order of execution) is left out.

    ``names`` are the operations met so far; number -1 leaves none out.
    """

    def __init__(self, number: int = -1) -> None:
        super().__init__()
        self._number = number
        self.names: list[str] = []

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run the call, or give its argument instead of its result."""
        given = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        tensors = [one for one in (*args, *given.values()) if isinstance(one, torch.Tensor)]
        if name in _PLAIN or name.endswith("_like") or not tensors:
            return func(*args, **given)
        # An operation in place has changed its argument when it returns.
        before = [one.clone() for one in tensors] if name.endswith("_") and not name.endswith("__") else tensors
        made = func(*args, **given)
        if not isinstance(made, torch.Tensor):
            return made
        old = next((one for one in before if _alike(one, made)), None)
        if old is None or not _says_something(old, made):
            return made
        self.names.append(name)
        if len(self.names) - 1 != self._number:
            return made
        if before is not tensors:
            return made.copy_(old)
        return old.clone()


def _alike(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.shape == other.shape and one.dtype == other.dtype and one.device == other.device


def _says_something(old: torch.Tensor, made: torch.Tensor) -> bool:
    if not made.dtype.is_floating_point:
        return not torch.equal(old, made)
    change, whole = (float(torch.linalg.vector_norm(one.double())) for one in (made - old, made))
    # What is not finite says something.
    return not change <= MATERIAL * whole


def operations(run: Callable[[], object]) -> list[str]:
    """Names of the operations that ``run`` performs and that can be left out, at most 32. Raises what it raises."""
    watch = Without()
    with watch:
        run()
    return watch.names[:_MOST]
