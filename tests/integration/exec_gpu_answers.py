"""Recorded answers of the CUDA and Triton tasks, and the command that writes them.

``python -m tests.integration.exec_gpu_answers`` writes the ``recorded`` folders afresh. A folder must be
written again whenever its kernel changes (``exec_recordings``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.integration.exec_gpu_blocks import matmul_cuda, matmul_triton, softmax_cuda, softmax_triton
from tests.integration.exec_recordings import Reply, fenced, files_of, patch, write

__all__ = ["TREES", "recordings"]

README = """\
Recorded answers, found by parent digest, operator and number of the ask. They were written by hand: a kernel that does
not compile, some that are incorrect or crash, one that changes nothing, and two generations that are faster.
`python -m tests.integration.exec_gpu_answers` writes them.
"""


def _tree(
    fence: str,
    good: tuple[tuple[str, str], ...],
    bad: Mapping[str, tuple[str, str]],
    noop: tuple[str, str],
) -> list[Reply]:
    """Answers about the initial kernel: (text, block) of good ones, of bad ones by their end, and an edit in vain."""
    (first, one), (second, two), (third, three), (fourth, four) = good
    faster = fenced(fence, "rewrite", first, one, "faster", fenced(fence, "rewrite", second, two, "faster"))
    replies = [faster]
    mended = [(second, two), (third, three), (fourth, four)]
    for number, (ends, (says, block)) in enumerate(bad.items()):
        text, repaired = mended[number % len(mended)]
        verdict = ends.partition(" ")[0]
        repair = fenced(fence, "repair", f"That was wrong, as the message says. {text}", repaired, "faster")
        replies.append(fenced(fence, "rewrite", says, block, verdict, repair))
    replies.append(fenced(fence, "rewrite", fourth, four, "faster"))
    replies.append(patch("The kernel reads well as it is; I only make the intent clearer.", [noop], "refused"))
    return replies


def _softmax_cuda() -> list[Reply]:
    line = "    float sum = 0.0f;\n"
    return _tree(
        "cpp",
        (
            ("Reducing with warp shuffles leaves two barriers instead of nine.", softmax_cuda("shuffled")),
            ("One pass for maximum and sum together saves a read of the row.", softmax_cuda("once", "online")),
            ("Wider blocks hide more latency on long rows.", softmax_cuda("wide", "online", threads="512, 1024")),
            ("The row fits into shared memory, so it is read once.", softmax_cuda("kept", "kept")),
        ),
        {
            "compile_error": ("A fast exponential saves time.", softmax_cuda("fast", wrong="undeclared")),
            "incorrect": ("For moderate inputs the maximum can go.", softmax_cuda("bare", wrong="maximum")),
            "runtime_error": ("Results go where the cache line begins.", softmax_cuda("far", wrong="beyond")),
        },
        (line, "    float sum = 0.0f;  // of the exponentials\n"),
    )


def _matmul_cuda() -> list[Reply]:
    line = "    float sum = 0.0f;\n"
    return _tree(
        "cpp",
        (
            ("Four by four values a thread: each load from shared memory is used four times.", matmul_cuda("tile")),
            ("Eight by eight values a thread need a quarter of the loads.", matmul_cuda("large", 8)),
            ("A smaller tile keeps more blocks in flight.", matmul_cuda("small", 2)),
            ("Six by six values leave registers for more warps.", matmul_cuda("middle", 6)),
        ),
        {
            "compile_error": ("The right tile is as wide as the left.", matmul_cuda("width", wrong="undeclared")),
            "incorrect": ("The last step of the sum hardly counts.", matmul_cuda("short", wrong="short")),
            "incorrect (TF32)": ("Ten bits of mantissa are enough.", matmul_cuda("cut", wrong="cut")),
            "runtime_error": ("The result begins at the next page.", matmul_cuda("far", wrong="beyond")),
        },
        (line, "    float sum = 0.0f;  // of the products\n"),
    )


def _softmax_triton() -> list[Reply]:
    line = "    top = tl.max(largest, axis=0)\n"
    return _tree(
        "python",
        (
            ("One pass for maximum and sum together saves a read of the row.", softmax_triton("peak")),
            ("A whole row in registers is read once.", softmax_triton("values", "whole")),
            ("Sixteen warps share the row.", softmax_triton("numbers", "whole", warps=16)),
            ("Shorter blocks waste less on narrow rows.", softmax_triton("summit", block=1024, warps=4)),
        ),
        {
            "compile_error": ("A fast exponential saves time.", softmax_triton("fast", wrong="undeclared")),
            "incorrect": ("For moderate inputs the maximum can go.", softmax_triton("bare", "whole", wrong="maximum")),
            "incorrect (mask)": ("Without masks the stores are wider.", softmax_triton("open", wrong="beyond")),
        },
        (line, line + "\n"),
    )


def _matmul_triton() -> list[Reply]:
    line = "    total = tl.zeros((TILE, TILE), tl.float32)\n"
    return _tree(
        "python",
        (
            ("Larger tiles use each loaded value more often.", matmul_triton("sums")),
            ("Eight warps share a tile of 64.", matmul_triton("wide", warps=8)),
            ("Tiles of 128 halve the traffic again.", matmul_triton("large", 128, warps=8)),
            ("Small tiles fill the device better here.", matmul_triton("small", 32)),
        ),
        {
            "compile_error": ("There is a product for this.", matmul_triton("made", wrong="undeclared")),
            "incorrect": ("TF32 runs on the matrix units.", matmul_triton("cut", wrong="cut")),
            "incorrect (mask)": ("Without a mask the stores are wider.", matmul_triton("open", wrong="beyond")),
            "incorrect (short)": ("The last step of the sum hardly counts.", matmul_triton("short", wrong="short")),
        },
        (line, line + "\n"),
    )


TREES: dict[str, Callable[[], list[Reply]]] = {
    "softmax_cuda": _softmax_cuda,
    "matmul_cuda": _matmul_cuda,
    "softmax_triton": _softmax_triton,
    "matmul_triton": _matmul_triton,
}


def recordings(task: str) -> dict[str, str]:
    """Files of a task's ``recorded`` folder by name inside the task. Raises ValueError when two answers collide."""
    return files_of(task, TREES[task](), README)


if __name__ == "__main__":
    write((task, recordings(task)) for task in TREES)
