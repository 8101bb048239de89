"""Product of two matrices: c[i, j] = sum over l of a[i, l] * b[l, j]."""

import torch

# Timed cases are checked too; the others are only checked. No size of "odd" is a multiple of a tile.
CASES = [
    {"name": "square", "m": 1024, "n": 1024, "k": 1024},
    {"name": "odd", "m": 517, "n": 301, "k": 1023},
    {"name": "thin", "m": 3, "n": 129, "k": 65, "timed": False},
    {"name": "single", "m": 1, "n": 1, "k": 1, "timed": False},
]


def make_inputs(case, generator):
    return {
        "a": torch.randn(case["m"], case["k"], generator=generator),
        "b": torch.randn(case["k"], case["n"], generator=generator),
    }


def reference(a, b):
    return a @ b
