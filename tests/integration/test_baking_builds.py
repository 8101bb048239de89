"""A baked point is the same machine code as its template built with the point's macros, and needs none itself."""

from __future__ import annotations

import itertools
import subprocess
from pathlib import Path

from kfd.tasks.baking import baked
from kfd.tasks.tunables import parse

TEMPLATE = """// [TUNE] TILE in {16, 8, 32}; UNROLL in {4, 1, 2}; where TILE * UNROLL <= 64
// [TUNE] BIAS in {0, -3}
#ifndef TILE
#define TILE 16
#endif
#ifndef UNROLL
#define UNROLL 4
#endif
#ifndef BIAS
#define BIAS 0
#endif
extern "C" int solve(const float *x, float *y, long n) {
    for (long i = 0; i + TILE <= n; i += TILE)
        for (long j = 0; j < TILE; j += UNROLL)
            for (long k = 0; k < UNROLL; ++k) y[i + j + k] = x[i + j + k] * UNROLL + BIAS;
    return 0;
}
"""


def assembly(folder: Path, text: str, values: dict[str, int]) -> str:
    """What g++ makes of a text; its own name is in none of it."""
    (folder / "kernel.cpp").write_text(text, encoding="utf-8")
    macros = [f"-D{name}={value}" for name, value in values.items()]
    command = ["g++", "-std=c++17", "-O1", "-Wall", "-Werror", *macros, "-S", "kernel.cpp", "-o", "-"]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=60).stdout


def test_a_baked_point_is_built_as_its_template_with_the_points_macros(tmp_path: Path) -> None:
    made = set()
    for tile, unroll, bias in itertools.product((16, 32), (1, 2), (0, -3)):
        values = {"TILE": tile, "UNROLL": unroll, "BIAS": bias}
        alone = baked(TEMPLATE, values, macros=True)
        code = assembly(tmp_path, alone, {})
        assert code == assembly(tmp_path, TEMPLATE, values), values
        # Device forms get their macros from the declaration: its defaults are the point.
        declared = baked(TEMPLATE, values, macros=False)
        assert parse(declared).choose({}) == values
        assert code == assembly(tmp_path, declared, parse(declared).choose({})), values
        made.add(code)
    assert len(made) == 8


def test_the_template_alone_is_its_declared_defaults(tmp_path: Path) -> None:
    assert assembly(tmp_path, TEMPLATE, {}) == assembly(tmp_path, TEMPLATE, parse(TEMPLATE).choose({}))
