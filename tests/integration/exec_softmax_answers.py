"""The recorded answers of tasks/softmax_rows as a tree, and the command that writes them.

``python -m tests.integration.exec_softmax_answers`` writes ``tasks/softmax_rows/recorded`` afresh. The
folder must be written again whenever the kernel changes (``exec_recordings``).
"""

from __future__ import annotations

from tests.integration.exec_recordings import TASKS, Reply, fenced, files_of, patch, write
from tests.integration.exec_softmax_blocks import (
    HANGING,
    INTRINSICS,
    NOT_COMPILING,
    OVERFLOWING,
    PARALLEL,
    SHORT_POLYNOMIAL,
    SLOW,
    UNHUNG,
    fused,
    vector,
)

__all__ = ["FOLDER", "recordings", "tree"]

FOLDER = TASKS / "softmax_rows"

README = """\
Recorded answers, found by parent digest, operator and number of the ask. They were written by hand to go
through every way an answer can end: kernels that do not compile, are wrong, hang, crash, change nothing, are
slower, and three generations that are faster. `python -m tests.integration.exec_softmax_answers` writes them.
"""

DYNAMIC = "    #pragma omp parallel for schedule(dynamic, 8)\n"
SMALL = (
    "    // Small inputs are done before a second thread has woken up.\n"
    "    #pragma omp parallel for schedule(static) if (rows * cols > 32768)\n"
)
LOOP = "    for (int64_t i = 0; i < rows; ++i) {\n"


def rewrite(says: str, block: str, ends: str, *then: Reply) -> Reply:
    return fenced("cpp", "rewrite", says, block, ends, *then)


def repair(says: str, block: str, *then: Reply, ends: str = "faster") -> Reply:
    return fenced("cpp", "repair", says, block, ends, *then)


def _threads(ends: str = "faster", *then: Reply, pragma: str = PARALLEL) -> Reply:
    says = "The rows are independent, so the outer loop can be shared among threads without any locking."
    return patch(says, [(LOOP, pragma + LOOP)], ends, *then)


def _vectors(name: str, pragma: str = "", *then: Reply, chains: bool = False) -> Reply:
    says = (
        "Nearly all the time goes into the scalar `std::exp`. A polynomial after range reduction has neither calls "
        "nor branches, so that eight elements are done at once. Its error is below 2e-7, far inside the tolerance. "
        "The tail runs through the same code with one lane in use."
    )
    return rewrite(says, vector(pragma, chains=chains, name=name), "faster", *then)


def _unrolled(name: str, pragma: str = SMALL) -> Reply:
    return rewrite(
        "What is left is latency: the maximum is one long chain and so is the polynomial. Four chains of maxima and "
        "two polynomials at once fill the pipelines. Threads are only woken when there is enough to do.",
        vector(pragma, chains=True, name=name),
        "faster",
        patch(
            "The threshold for threads is a guess; a lower one helps the middle sizes.",
            [(SMALL, SMALL.replace("32768", "16384"))] if pragma == SMALL else [(PARALLEL, SMALL)],
            "faster",
        ),
        rewrite(
            "Rows handed out dynamically even out a busy core.",
            vector(DYNAMIC, chains=True, name=f"{name}_row"),
            "faster",
        ),
    )


def _third(name: str) -> list[Reply]:
    """What is recorded for a kernel that has vectors and no threads."""
    return [
        _unrolled(f"{name}_unrolled"),
        _threads("faster", _unrolled(f"{name}_shared", PARALLEL), _threads_nothing()),
        rewrite(
            "A shorter polynomial saves four operations for each element.",
            vector(polynomial=SHORT_POLYNOMIAL, name=f"{name}_short"),
            "incorrect",
            repair(
                "The cubic is off by 1e-4; the tolerance needs the full polynomial, so speed must come from threads.",
                vector(PARALLEL, name=f"{name}_full"),
                _unrolled(f"{name}_mended"),
            ),
        ),
    ]


def _threads_nothing() -> Reply:
    return patch(
        "Static scheduling is right here; the comment should say so.",
        [(PARALLEL, "    // Static: all rows cost the same.\n" + PARALLEL)],
        "refused",
    )


def _second(name: str) -> list[Reply]:
    """What is recorded for a kernel that computes each exponential once, in scalar code."""
    return [
        _vectors(name, "", *_third(name)),
        rewrite(
            "AVX2 intrinsics give full control over the registers.",
            INTRINSICS.replace("most", f"most_{name}"),
            "compile_error",
            repair(
                "Intrinsics need a header that cannot be included inside a function file like this, and one machine's "
                "registers only. GCC's vector types need neither.",
                vector(PARALLEL, name=f"{name}_portable"),
                _unrolled(f"{name}_repaired"),
            ),
        ),
    ]


def tree() -> list[Reply]:
    """Answers to asks about the initial kernel, with everything below them."""
    # The first asks meet every way to fail, so that a short campaign shows them.
    return [
        rewrite(
            "The kernel computes every exponential twice: once for the sum, once for the result. Keeping the first in "
            "the output array halves the work, and multiplying by the reciprocal replaces a division for each element.",
            fused(),
            "faster",
            *_second("softmax_row"),
            _threads("faster", _vectors("shared_row", PARALLEL, _unrolled("shared_unrolled"))),
            patch(
                "The last element of the loop for the sum needs no special case, so the bound can be tightened.",
                [
                    (
                        "        double sum = 0.0;\n        for (int64_t j = 0; j < cols; ++j) {\n",
                        "        double sum = 0.0;\n        for (int64_t j = 0; j < cols - 1; ++j) {\n",
                    )
                ],
                "incorrect",
                repair(
                    "The bound left the last column out. All columns are needed; threads share the rows.",
                    fused(DYNAMIC),
                    *_second("mended_row"),
                ),
            ),
        ),
        rewrite(
            "All threads should start on their rows at once to share the cache. A barrier of our own does that.",
            HANGING,
            "timeout",
            repair(
                "The barrier waited for 64 threads where there are fewer. OpenMP needs no barrier here.",
                UNHUNG,
                *_second("team_row"),
            ),
        ),
        rewrite(
            "Rows are independent: share them among threads, compute each exponential once, and use the fast variant.",
            NOT_COMPILING,
            "compile_error",
            repair(
                "There is no `std::fast_exp`; `std::exp` on floats is what the standard has.",
                fused(PARALLEL, "highest"),
                *_second("threaded_row"),
            ),
        ),
        rewrite(
            "Subtracting the maximum costs a whole pass over the row. For inputs of moderate size it can be left out.",
            OVERFLOWING,
            "incorrect",
            repair(
                "Rows may lie far from zero, where `exp` overflows: the maximum must be subtracted after all.",
                fused(largest="top"),
                *_second("top_row"),
            ),
        ),
        rewrite(
            "Accuracy first: in `double` throughout, the result is right to the last digit.",
            SLOW,
            "slower",
            rewrite(
                "That precision is not asked for and costs twice the time. Float vectors are accurate enough.",
                vector(name="plain_row"),
                "faster",
                *_third("plain_row"),
            ),
        ),
        patch(
            "A buffer on the stack keeps the exponentials in the first-level cache.",
            [
                ("        double sum = 0.0;\n", "        double sum = 0.0;\n        float kept[1024];\n"),
                (
                    "            sum += std::exp(x[i * cols + j] - largest);\n",
                    "            kept[j] = std::exp(x[i * cols + j] - largest);\n            sum += kept[j];\n",
                ),
                (
                    "            y[i * cols + j] = std::exp(x[i * cols + j] - largest) / static_cast<float>(sum);\n",
                    "            y[i * cols + j] = kept[j] / static_cast<float>(sum);\n",
                ),
            ],
            "runtime_error",
            repair(
                "Rows are longer than the buffer of 1024, which overran the stack. The output itself is the buffer.",
                fused(SMALL),
                *_second("buffer_row"),
            ),
        ),
        patch(
            "The loop reads well as it is; I only make the intent clearer.",
            [("        double sum = 0.0;\n", "        double sum = 0.0;  // of the exponentials\n")],
            "refused",
        ),
        patch(
            "Each exponential is computed twice. Store it when the sum is formed.",
            [
                (
                    "            sum += std::exp(x[i * cols + j] - largest);\n",
                    "            y[i * cols + j] = std::exp(x[i * cols + j] - largest);\n"
                    "            sum += y[i * cols + j];\n",
                ),
                (
                    "            y[i * cols + j] = std::exp(x[i * cols + j] - largest) / static_cast<float>(sum);\n",
                    "            y[i * cols + j] /= static_cast<float>(sum);\n",
                ),
            ],
            "faster",
            *_second("stored_row"),
            _threads("faster", _vectors("stored_shared", PARALLEL, _unrolled("stored_unrolled"))),
        ),
        _threads(
            "faster",
            rewrite(
                "Compute each exponential once and keep the threads.",
                fused(SMALL, "peak"),
                "faster",
                *_second("peak_row"),
            ),
            _vectors("direct_row", PARALLEL, _unrolled("direct_unrolled")),
        ),
    ]


def recordings() -> dict[str, str]:
    """Files of the ``recorded`` folder by name inside the task. Raises ValueError when two answers collide."""
    return files_of(FOLDER.name, tree(), README)


if __name__ == "__main__":
    write([(FOLDER.name, recordings())])
