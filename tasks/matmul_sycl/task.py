"""Product of two matrices: c[i, j] = sum over l of a[i, l] * b[l, j]."""

import torch

# Timed cases are checked too; the others are only checked. Odd sizes leave a tail for every tile.
CASES = [
    {"name": "square", "m": 256, "n": 256, "k": 256},
    {"name": "odd", "m": 193, "n": 321, "k": 255},
    {"name": "thin", "m": 7, "n": 130, "k": 65, "timed": False},
    {"name": "vector", "m": 67, "n": 1, "k": 33, "timed": False},
    {"name": "single", "m": 1, "n": 1, "k": 1, "timed": False},
]


def make_inputs(case, generator):
    return {
        "a": torch.randn(case["m"], case["k"], generator=generator),
        "b": torch.randn(case["k"], case["n"], generator=generator),
    }


def reference(a, b):
    return a @ b
