"""The recorded kernels of the tasks that ship as programs with the verdict they must get."""

from __future__ import annotations

from tests.gpu.programs import Program
from tests.integration.exec_gpu_blocks import matmul_cuda, matmul_triton, softmax_cuda, softmax_triton

__all__ = ["PROGRAMS"]


def _program(name: str, task: str, block: str, expect: str = "ok") -> Program:
    return Program(name=f"answer_{name}", task=task, block=block, expect=frozenset(expect.split()))


PROGRAMS: tuple[Program, ...] = (
    _program("warps", "softmax_cuda", softmax_cuda("shuffled")),
    _program("online", "softmax_cuda", softmax_cuda("wide", "online", threads="512, 1024")),
    _program("kept", "softmax_cuda", softmax_cuda("kept", "kept")),
    _program("undeclared", "softmax_cuda", softmax_cuda("fast", wrong="undeclared"), "compile_error"),
    _program("maximum", "softmax_cuda", softmax_cuda("bare", wrong="maximum"), "incorrect"),
    _program("beyond", "softmax_cuda", softmax_cuda("far", wrong="beyond"), "runtime_error"),
    _program("tile_4", "matmul_cuda", matmul_cuda("tile")),
    _program("tile_8", "matmul_cuda", matmul_cuda("large", 8)),
    _program("tile_6", "matmul_cuda", matmul_cuda("middle", 6)),
    _program("short", "matmul_cuda", matmul_cuda("short", wrong="short"), "incorrect"),
    _program("cut", "matmul_cuda", matmul_cuda("cut", wrong="cut"), "incorrect"),
    _program("beyond", "matmul_cuda", matmul_cuda("far", wrong="beyond"), "runtime_error"),
    _program("online", "softmax_triton", softmax_triton("peak")),
    _program("whole", "softmax_triton", softmax_triton("values", "whole")),
    _program("maximum", "softmax_triton", softmax_triton("bare", "whole", wrong="maximum"), "incorrect"),
    _program("open", "softmax_triton", softmax_triton("open", wrong="beyond"), "incorrect"),
    _program("tile_64", "matmul_triton", matmul_triton("sums")),
    _program("tile_128", "matmul_triton", matmul_triton("large", 128, warps=8)),
    _program("cut", "matmul_triton", matmul_triton("cut", wrong="cut"), "incorrect"),
    _program("open", "matmul_triton", matmul_triton("open", wrong="beyond"), "incorrect"),
)
