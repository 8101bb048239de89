"""Levels that the classifier reads from labelled kernels: ``python -m benchmarks.behaviour [--kernelfoundry PYTHON]``.

A level counts when it is exactly the label's. Figures are over the whole corpus; the note tells both halves (the
classifier was tuned on one of them, chosen by the hash of the path), each language, what a classifier would
reach that always answers the commonest level, and the confusion. Beside it, on the languages that it knows, the
classifier of the released ``kernelfoundry`` package, in its own environment.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmarks.behaviour.corpus import AXES, CORPUS, LANGUAGES, Kernel, fingerprint, is_tuning, kernels
from benchmarks.figures import Figure, report
from kfd.prompting.features import behaviour

BARS = {"memory": 0.90, "algorithm": 0.75, "parallelism": 0.90}
ADAPTER = Path(__file__).with_name("kernelfoundry_adapter.py")
Levels = tuple[int, int, int]


def share(asked: Sequence[Kernel], found: dict[str, Levels], axis: int) -> float:
    """Share of kernels whose level on an axis is the label's; 0 of none."""
    right = sum(found[kernel.path][axis] == kernel.levels[axis] for kernel in asked)
    return right / max(1, len(asked))


def confusion(asked: Sequence[Kernel], found: dict[str, Levels], axis: int) -> str:
    """Mistakes as ``label>answer:count``, the commonest first."""
    wrong = Counter(
        (kernel.levels[axis], found[kernel.path][axis])
        for kernel in asked
        if kernel.levels[axis] != found[kernel.path][axis]
    )
    return " ".join(f"{label}>{answer}:{count}" for (label, answer), count in wrong.most_common())


def figures(asked: Sequence[Kernel], found: dict[str, Levels], prefix: str, bars: dict[str, float]) -> list[Figure]:
    """One figure an axis."""
    made = []
    tuning = [kernel for kernel in asked if is_tuning(kernel.path)]
    held = [kernel for kernel in asked if not is_tuning(kernel.path)]
    for axis, name in enumerate(AXES):
        common = Counter(kernel.levels[axis] for kernel in asked).most_common(1)[0][1] / len(asked)
        languages = [
            f"{language} {share([kernel for kernel in asked if kernel.language == language], found, axis):.3f}"
            for language in LANGUAGES
            if any(kernel.language == language for kernel in asked)
        ]
        note = (
            f"tuned half {share(tuning, found, axis):.3f} of {len(tuning)}, other half {share(held, found, axis):.3f}"
            f" of {len(held)}; {', '.join(languages)}; commonest level {common:.3f};"
            f" label>answer {confusion(asked, found, axis) or 'none wrong'}"
        )
        value = round(share(asked, found, axis), 4)
        figure = f"{prefix}.{name}"
        made.append(Figure(figure=figure, value=value, unit="share", bar=bars.get(name), n=len(asked), note=note))
    return made


def released(python: Path, asked: Sequence[Kernel]) -> dict[str, Levels]:
    """What kernelfoundry says. Raises RuntimeError with its message when it cannot be asked."""
    question = json.dumps([[kernel.language, kernel.text] for kernel in asked])
    try:
        done = subprocess.run(
            [str(python), str(ADAPTER)], input=question, capture_output=True, text=True, timeout=300, check=False
        )
    except OSError as error:
        raise RuntimeError(str(error)) from error
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "it failed")
    answers = json.loads(done.stdout.splitlines()[-1])
    return {kernel.path: (levels[0], levels[1], levels[2]) for kernel, levels in zip(asked, answers, strict=True)}


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernelfoundry", type=Path, help="interpreter of an environment with kernelfoundry[algo]")
    parser.add_argument("--wrong", choices=("tuning", "all"), help="list mistakes on standard error, with their paths")
    options = parser.parse_args()
    asked = kernels()
    found = {kernel.path: behaviour(kernel.text, kernel.language) for kernel in asked}
    frozen = (CORPUS / "FROZEN").read_text().strip()
    made = figures(asked, found, "behaviour", BARS)
    same = fingerprint() == frozen
    made.append(
        Figure(
            figure="behaviour.frozen", value=float(same), unit="bool", bar=1.0, n=len(asked), note=f"SHA-256 {frozen}"
        )
    )
    for kernel in asked:
        listed = options.wrong == "all" or (options.wrong == "tuning" and is_tuning(kernel.path))
        if listed and found[kernel.path] != kernel.levels:
            sys.stderr.write(f"{kernel.path}: label {kernel.levels}, answer {found[kernel.path]}\n")
    theirs = [kernel for kernel in asked if kernel.language != "cpp"]  # it has no table for C++
    if options.kernelfoundry is None:
        sys.stderr.write("no figure of kernelfoundry: give --kernelfoundry PYTHON\n")
    else:
        try:
            made += figures(theirs, released(options.kernelfoundry, theirs), "behaviour.kernelfoundry", {})
        except RuntimeError as error:
            sys.stderr.write(f"no figure of kernelfoundry: {error}\n")
    return report(made)


if __name__ == "__main__":
    sys.exit(main())
