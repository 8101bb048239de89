"""Where a task's random numbers come from when the judge calls its ``make_inputs``.

The task's own code decides what an input is: it sorts, masks, normalises and scales what it draws, and an honest
kernel may rely on all of that. So the judge never changes an input; it only answers the *draws* inside
``make_inputs`` (``torch.randn``, ``torch.rand``, ``normal_``, ``uniform_`` and their like) itself:

- for timed calls from two secret pools, each read at a secret place: ``p[i:] + q[j:]`` has exactly the
  distribution that was asked for, costs one pass over memory, and never comes twice (2**38 pairs of places);
- for the value families of the check with other distributions: a heavy tail, large numbers, ties, and so on.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

__all__ = ["FAMILIES", "Draws", "Family", "Pools", "Served"]

Served = Callable[[torch.Tensor, bool], None]
"""Fills a float tensor with unit draws: normal when the flag is set, else uniform on [0, 1)."""

_LEAST = 4096
"""Smaller draws are made as the task asked for them; they cost nothing."""
_SEGMENT = 1 << 19
_BELOW_ONE = 1.0 - 2.0**-24


class Pools:
    """Secret random numbers, drawn once for a job and read at secret places ever after."""

    def __init__(self, seed: int) -> None:
        self._generator = torch.Generator().manual_seed(seed)
        self._dice = random.Random(seed ^ 0x9E3779B97F4A7C15)
        self._length = 0
        self._normal: tuple[torch.Tensor, torch.Tensor] | None = None
        self._uniform: tuple[torch.Tensor, torch.Tensor] | None = None

    def _grow(self, count: int) -> None:
        wanted = min(2 * _SEGMENT, 2 << max(16, (count - 1).bit_length()))
        if wanted > self._length:
            self._length = wanted
            self._normal = self._uniform = None

    def _pair(self, normal: bool) -> tuple[torch.Tensor, torch.Tensor]:
        if normal and self._normal is None:
            # Two variances of one half make one of one.
            left, right = (torch.randn(self._length, generator=self._generator).mul_(0.5**0.5) for _ in range(2))
            self._normal = (left, right)
        if not normal and self._uniform is None:
            left, right = (torch.rand(self._length, generator=self._generator) for _ in range(2))
            self._uniform = (left, right)
        made = self._normal if normal else self._uniform
        assert made is not None
        return made

    def fill(self, out: torch.Tensor, normal: bool) -> None:
        """Fill a contiguous float32 tensor with unit draws that have never been served before."""
        flat = out.view(-1)
        self._grow(flat.numel())
        left, right = self._pair(normal)
        step = self._length // 2
        for at in range(0, flat.numel(), step):
            part = flat[at : at + step]
            count = part.numel()
            i, j = (self._dice.randrange(self._length - count + 1) for _ in range(2))
            torch.add(left[i : i + count], right[j : j + count], out=part)
            if not normal:
                part.frac_()


class Family:
    """One of the check's distributions. ``served`` tells how many draws it has answered."""

    def __init__(self, name: str, seed: int) -> None:
        self.name = name
        self.served = 0
        self._generator = torch.Generator().manual_seed(seed)
        self._shape = FAMILIES[name]

    def fill(self, out: torch.Tensor, normal: bool) -> None:
        """Fill a float tensor with the family's unit draws."""
        self.served += 1
        made = self._shape(out.numel(), self._generator, normal)
        out.copy_(made.view(out.shape))


def _pick(values: Sequence[float], count: int, generator: torch.Generator) -> torch.Tensor:
    return torch.tensor(values)[torch.randint(len(values), (count,), generator=generator)]


def _uniform(count: int, generator: torch.Generator, normal: bool) -> torch.Tensor:
    made = torch.rand(count, generator=generator)
    return made.mul_(2.0).sub_(1.0) if normal else made


def _heavy(count: int, generator: torch.Generator, normal: bool) -> torch.Tensor:
    if not normal:
        return torch.rand(count, generator=generator).pow_(8.0)
    tail = torch.randn(count, generator=generator).mul_(1.5).exp_()
    return torch.randn(count, generator=generator).mul_(tail).clamp_(-1e4, 1e4)


def _large(count: int, generator: torch.Generator, normal: bool) -> torch.Tensor:
    if normal:
        return torch.randn(count, generator=generator).mul_(1e4)
    return torch.rand(count, generator=generator).pow_(8.0).neg_().add_(1.0).clamp_(0.0, _BELOW_ONE)


def _ties(count: int, generator: torch.Generator, normal: bool) -> torch.Tensor:
    # Zeros of both signs, a denormal, and a greatest value that comes often.
    values = (0.0, -0.0, 1e-40, 1.0, -1.0, 0.5, 2.0, 2.0) if normal else (0.0, 0.0, 1e-40, 0.25, 0.5, _BELOW_ONE)
    return _pick(values, count, generator)


def _integers(count: int, generator: torch.Generator, normal: bool) -> torch.Tensor:
    return _pick((-2.0, -1.0, 0.0, 1.0, 2.0) if normal else (0.0, 0.5), count, generator)


FAMILIES: dict[str, Callable[[int, torch.Generator, bool], torch.Tensor]] = {
    "uniform": _uniform,
    "heavy tail": _heavy,
    "large": _large,
    "ties": _ties,
    "integers": _integers,
}
"""Value families beside the task's own (evaluation notes, 5.2), as shapes of unit draws."""


class Draws(TorchFunctionMode):
    """While active, random draws of floats are answered by a filler (``Pools.fill``, ``Family.fill``).

    Draws it does not know are left alone: the task's generator is seeded all the same.
    """

    def __init__(self, fill: Served, *, least: int = _LEAST, dtypes: Sequence[torch.dtype] = (torch.float32,)) -> None:
        super().__init__()
        self._fill = fill
        self._least = least
        self._dtypes = frozenset(dtypes)

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Answer a draw, or let the call through."""
        given = dict(kwargs or {})
        answer = _ANSWERS.get(func)
        made = answer(self, args, given) if answer is not None else None
        return func(*args, **given) if made is None else made

    # Each of these gives None for what it does not serve.

    def _unit(self, size: Sequence[int], given: Mapping[str, Any], normal: bool) -> torch.Tensor | None:
        dtype = given.get("dtype") or torch.get_default_dtype()
        plain = not (set(given) - {"generator", "dtype", "device", "requires_grad", "size"})
        if not plain or str(given.get("device") or "cpu") != "cpu" or given.get("requires_grad"):
            return None
        return self._filled(torch.empty(tuple(size), dtype=dtype), normal)

    def _filled(self, out: torch.Tensor, normal: bool) -> torch.Tensor | None:
        if out.dtype not in self._dtypes or out.numel() < self._least or not out.is_contiguous():
            return None
        if out.device.type != "cpu":
            return None
        self._fill(out, normal)
        return out

    def factory(self, args: tuple[Any, ...], given: Mapping[str, Any], normal: bool) -> torch.Tensor | None:
        """``torch.randn(2, 3)``, ``torch.randn((2, 3))``, ``torch.randn(size=(2, 3))``."""
        size = args if args else given.get("size", ())
        if len(size) == 1 and isinstance(size[0], Sequence):
            size = size[0]
        if not all(isinstance(extent, int) for extent in size):
            return None
        return self._unit(size, given, normal)

    def like(self, args: tuple[Any, ...], given: Mapping[str, Any], normal: bool) -> torch.Tensor | None:
        """``torch.randn_like(x)``."""
        if len(args) != 1 or given or not isinstance(args[0], torch.Tensor):
            return None
        return self._filled(torch.empty(args[0].shape, dtype=args[0].dtype, device=args[0].device), normal)

    def normal(self, args: tuple[Any, ...], given: Mapping[str, Any]) -> torch.Tensor | None:
        """``torch.normal(0.0, 1.0, (2, 3))``; means and deviations that are tensors are left alone."""
        values = dict(zip(("mean", "std", "size"), args, strict=False)) | {
            name: given[name] for name in ("mean", "std", "size") if name in given
        }
        if set(values) != {"mean", "std", "size"} or any(isinstance(one, torch.Tensor) for one in values.values()):
            return None
        rest = {name: value for name, value in given.items() if name not in values}
        made = self._unit(values["size"], rest, True)
        return None if made is None else made.mul_(values["std"]).add_(values["mean"])

    def in_place(self, args: tuple[Any, ...], given: Mapping[str, Any], normal: bool) -> torch.Tensor | None:
        """``x.normal_(mean, std)`` and ``x.uniform_(low, high)``."""
        first, second = ("mean", "std") if normal else ("from", "to")
        values = dict(zip((first, second), args[1:], strict=False)) | {
            name: given[name] for name in (first, second) if name in given
        }
        if set(given) - {first, second, "generator"} or any(isinstance(one, torch.Tensor) for one in values.values()):
            return None
        made = self._filled(args[0], normal)
        if made is None:
            return None
        low, high = values.get(first, 0.0), values.get(second, 1.0)
        return made.mul_(high).add_(low) if normal else made.mul_(high - low).add_(low)


_ANSWERS: dict[Any, Callable[[Draws, tuple[Any, ...], Mapping[str, Any]], torch.Tensor | None]] = {
    torch.randn: lambda draws, args, given: draws.factory(args, given, True),
    torch.rand: lambda draws, args, given: draws.factory(args, given, False),
    torch.randn_like: lambda draws, args, given: draws.like(args, given, True),
    torch.rand_like: lambda draws, args, given: draws.like(args, given, False),
    torch.normal: lambda draws, args, given: draws.normal(args, given),
    torch.Tensor.normal_: lambda draws, args, given: draws.in_place(args, given, True),
    torch.Tensor.uniform_: lambda draws, args, given: draws.in_place(args, given, False),
}
