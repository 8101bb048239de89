"""Root mean square normalisation: y[i, j] = weight[j] * x[i, j] / sqrt(mean over k of x[i, k]^2 + epsilon)."""

import torch

# Timed cases are checked too; the others are only checked. Odd sizes leave a tail for every width.
CASES = [
    {"name": "wide", "rows": 67, "cols": 4097},
    {"name": "square", "rows": 509, "cols": 511},
    {"name": "narrow", "rows": 1037, "cols": 13, "timed": False},
    {"name": "single", "rows": 1, "cols": 1, "timed": False},
    {"name": "column", "rows": 517, "cols": 1, "timed": False},
]


def make_inputs(case, generator):
    x = torch.randn(case["rows"], case["cols"], generator=generator)
    # Rows of different sizes: a kernel that normalises over the wrong row shows here.
    scale = torch.rand(case["rows"], 1, generator=generator).mul_(8.0).add_(0.25)
    weight = torch.randn(case["cols"], generator=generator)
    # Of the size of the squares, so that leaving it out shows.
    return {"x": x.mul_(scale), "weight": weight, "epsilon": 0.5}


def reference(x, weight, epsilon):
    return x * torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + epsilon) * weight
