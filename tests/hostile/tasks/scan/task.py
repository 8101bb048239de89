"""Inclusive prefix sums of int32 in int64: exact, so that no tolerance hides anything."""

from typing import Any

import torch

CASES = [
    {"name": "long", "n": 30011},
    {"name": "short", "n": 1001, "timed": False},
    {"name": "one", "n": 1, "timed": False},
]


def make_inputs(case: dict[str, Any], generator: torch.Generator) -> dict[str, torch.Tensor]:
    return {"x": torch.randint(-(2**31), 2**31, (case["n"],), generator=generator, dtype=torch.int32)}


def reference(x: torch.Tensor) -> torch.Tensor:
    return torch.cumsum(x, dim=0, dtype=torch.int64)
