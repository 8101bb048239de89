"""Twice the input. One case holds denormal numbers only, which a kernel that flushes them to zero loses."""

from typing import Any

import torch

CASES = [
    {"name": "large", "n": 50021},
    {"name": "tiny", "n": 1003, "timed": False},
    {"name": "small", "n": 257, "timed": False},
    {"name": "one", "n": 1, "timed": False},
]


def make_inputs(case: dict[str, Any], generator: torch.Generator) -> dict[str, torch.Tensor]:
    x = torch.randn(case["n"], generator=generator)
    return {"x": x * 1e-39 if case["name"] == "tiny" else x}


def reference(x: torch.Tensor) -> torch.Tensor:
    return x * 2.0
