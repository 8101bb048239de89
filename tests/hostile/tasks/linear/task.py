"""relu(x @ w + bias) with odd sizes; bias and the positive part both matter."""

from typing import Any

import torch

CASES = [
    {"name": "wide", "m": 37, "k": 129, "n": 45},
    {"name": "deep", "m": 13, "k": 301, "n": 5, "timed": False},
    {"name": "slim", "m": 1, "k": 7, "n": 1, "timed": False},
]


def make_inputs(case: dict[str, Any], generator: torch.Generator) -> dict[str, torch.Tensor]:
    m, k, n = case["m"], case["k"], case["n"]
    return {
        "x": torch.randn(m, k, generator=generator),
        "w": torch.randn(k, n, generator=generator),
        # Of the size of the products, so that leaving it out shows in every element; never below what keeps
        # the smallest case alive: an output of one zero would prove nothing.
        "bias": torch.rand(n, generator=generator).mul_(20.0).add_(8.0),
    }


def reference(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return torch.relu(x @ w + bias)
