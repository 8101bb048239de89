"""Softmax over the rows of a matrix, small enough for many programs."""

from typing import Any

import torch

CASES = [
    {"name": "wide", "rows": 37, "cols": 1021},
    {"name": "narrow", "rows": 61, "cols": 13, "timed": False},
    {"name": "single", "rows": 1, "cols": 1, "timed": False},
    {"name": "column", "rows": 129, "cols": 1, "timed": False},
]


def make_inputs(case: dict[str, Any], generator: torch.Generator) -> dict[str, torch.Tensor]:
    x = torch.randn(case["rows"], case["cols"], generator=generator)
    shift = torch.randint(-60, 90, (case["rows"], 1), generator=generator)
    return {"x": x.mul_(3.0).add_(shift)}


def reference(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, dim=-1)
