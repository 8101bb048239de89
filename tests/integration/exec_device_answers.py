"""Recorded answers of the device-form tasks for OpenCL and SYCL, and the command that writes them.

``python -m tests.integration.exec_device_answers`` writes the ``recorded`` folders afresh. A folder must be
written again whenever its kernel changes (``exec_recordings``).
"""

from __future__ import annotations

from collections.abc import Callable

from tests.integration.exec_device_blocks import Language, matmul, softmax
from tests.integration.exec_recordings import Reply, fenced, files_of, patch, write

__all__ = ["TREES", "recordings"]

README = """\
Recorded answers, found by parent digest, operator and number of the ask. They were written by hand: kernels that do not
compile, whose launch plan is wrong, that are incorrect, that crash, and two generations that are faster.
`python -m tests.integration.exec_device_answers` writes them.
"""


def rewrite(language: Language, says: str, block: str, ends: str, *then: Reply, operator: str = "rewrite") -> Reply:
    """An answer with a whole block."""
    return fenced(language.fence, operator, says, block, ends, *then)


def _softmax_groups(language: Language, tag: str) -> list[Reply]:
    """What is recorded for a kernel that gives each row to one work-item and computes each exponential once."""
    return [
        rewrite(
            language,
            "A group for each row lets neighbouring work-items read neighbouring elements, so that the compiler makes "
            "vectors of them; maximum and sum are reduced in local memory.",
            softmax.group(language, tag, 32),
            "faster",
            rewrite(
                language,
                "Wider groups leave less to the serial reduction for each element.",
                softmax.group(language, f"{tag}_wide", 64),
                "faster",
            ),
            rewrite(
                language,
                "Two kernels: the sums once, then every element by itself. The scratch buffer carries the sums.",
                softmax.split(language, f"{tag}_split", 32),
                "faster",
            ),
        ),
        rewrite(
            language,
            "The maximum and the sum in one pass over the row: the sum is scaled when the maximum grows.",
            softmax.online(language, tag, 32),
            "faster",
            rewrite(language, "A wider group.", softmax.online(language, f"{tag}_wide", 64), "faster"),
        ),
        rewrite(
            language,
            "Groups of 16 match the vector width of the CPU.",
            softmax.group(language, f"{tag}_narrow", 16),
            "faster",
        ),
    ]


def softmax_tree(language: Language) -> list[Reply]:
    """Answers to asks about the initial softmax kernel, with everything below them."""
    initial, fused = softmax.initial_exp(language), softmax.fused(language, "row")
    return [
        rewrite(
            language,
            "Each exponential is computed twice. Keeping the first in the output halves the work.",
            fused,
            "faster",
            *_softmax_groups(language, "fused"),
        ),
        rewrite(
            language,
            "Each row is done by a group that reads it side by side.",
            softmax.group(language, "direct", 32, undeclared=True),
            "compile_error",
            rewrite(
                language,
                "The reduction used a name that was never declared.",
                softmax.group(language, "direct", 32),
                "faster",
                *_softmax_groups(language, "mended"),
                operator="repair",
            ),
        ),
        rewrite(
            language,
            "A group for each row; the number of columns is passed as well.",
            softmax.group(language, "planned", 32, argument_short=True),
            "compile_error",
            rewrite(
                language,
                "The launch plan left an argument out.",
                softmax.group(language, "replanned", 32),
                "faster",
                operator="repair",
            ),
        ),
        rewrite(
            language,
            "For inputs of moderate size the maximum can be left out, which saves a pass.",
            softmax.fused(language, "bare", maximum=False),
            "incorrect",
            rewrite(
                language,
                "Rows far from zero overflow: the maximum must be subtracted.",
                softmax.fused(language, "kept"),
                "faster",
                *_softmax_groups(language, "kept"),
                operator="repair",
            ),
        ),
        patch(
            "The results can be written one element further, where the cache line begins.",
            [(initial, initial.replace("out[j] =", "out[j + 1024] ="))],
            "runtime_error",
            rewrite(
                language,
                "That lay behind the end of the array.",
                softmax.fused(language, "inside"),
                "faster",
                *_softmax_groups(language, "inside"),
                operator="repair",
            ),
        ),
        patch(
            "The loop reads well as it is; I only make the intent clearer.",
            [("    double sum = 0.0;\n", "    double sum = 0.0;  // of the exponentials\n")],
            "refused",
        ),
    ]


def _matmul_tiles(language: Language, tag: str) -> list[Reply]:
    """What is recorded for a matrix product whose inner loop runs over columns."""
    return [
        rewrite(
            language,
            "Tiles of both matrices in local memory are read once for a whole group.",
            matmul.tiled(language, tag, 16),
            "faster",
            rewrite(
                language,
                "Smaller tiles fit the first-level cache.",
                matmul.tiled(language, f"{tag}_s", 8),
                "slower" if language.name == "opencl" else "faster",
            ),
        ),
        rewrite(
            language,
            "Four rows at once use each row of b four times.",
            matmul.rows(language, tag, 4),
            "faster",
            rewrite(language, "Eight rows.", matmul.rows(language, f"{tag}_wide", 8), "faster"),
        ),
        rewrite(language, "Two rows are enough.", matmul.rows(language, f"{tag}_two", 2), "faster"),
    ]


def matmul_tree(language: Language) -> list[Reply]:
    """Answers to asks about the initial matrix product, with everything below them."""
    return [
        rewrite(
            language,
            "A work-item for each element: neighbours read neighbouring columns of b, which makes vectors of them.",
            matmul.elements(language, "element", 32),
            "faster",
            *_matmul_tiles(language, "element"),
        ),
        rewrite(
            language,
            "Tiles in local memory.",
            matmul.tiled(language, "early", 16, undeclared=True),
            "compile_error",
            rewrite(
                language,
                "The tile of b had another name.",
                matmul.tiled(language, "early", 16),
                "faster",
                *_matmul_tiles(language, "mended"),
                operator="repair",
            ),
        ),
        rewrite(
            language,
            "The last product of each sum is so small that it can be left out.",
            matmul.elements(language, "short", 32, last=False),
            "incorrect",
            rewrite(
                language,
                "Every product counts.",
                matmul.elements(language, "whole", 16),
                "faster",
                *_matmul_tiles(language, "whole"),
                operator="repair",
            ),
        ),
        rewrite(
            language,
            "Several rows for each work-item.",
            matmul.rows(language, "first", 4),
            "faster",
            rewrite(language, "Eight rows.", matmul.rows(language, "first_wide", 8), "faster"),
        ),
        patch(
            "A tile of one more row saves the check at the edge.",
            [("        c[i * n + j] = sum;\n", "        c[i * n + j + 1024] = sum;\n")],
            "runtime_error",
            rewrite(
                language,
                "That lay behind the end of the array.",
                matmul.elements(language, "inside", 32),
                "faster",
                *_matmul_tiles(language, "inside"),
                operator="repair",
            ),
        ),
        patch(
            "The loop reads well as it is; I only make the intent clearer.",
            [("        float sum = 0.0f;\n", "        float sum = 0.0f;  // of the products\n")],
            "refused",
        ),
    ]


OPENCL, SYCL = Language(name="opencl"), Language(name="sycl")
TREES: dict[str, Callable[[], list[Reply]]] = {
    "softmax_opencl": lambda: softmax_tree(OPENCL),
    "softmax_sycl": lambda: softmax_tree(SYCL),
    "matmul_opencl": lambda: matmul_tree(OPENCL),
    "matmul_sycl": lambda: matmul_tree(SYCL),
}


def recordings(task: str) -> dict[str, str]:
    """Files of a task's ``recorded`` folder by name inside the task. Raises ValueError when two answers collide."""
    return files_of(task, TREES[task](), README)


if __name__ == "__main__":
    write((task, recordings(task)) for task in TREES)
