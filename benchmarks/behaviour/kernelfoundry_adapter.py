"""The released kernelfoundry's classifier; runs with the interpreter of its own environment (``kernelfoundry[algo]``).

Standard input: ``[[language, source], ...]``. Standard output, last line: for each kernel its levels of memory, compute
and parallelism.
"""

from __future__ import annotations

import json
import sys

from kernelfoundry.algorithm.evolve_database_optimization_aware import (  # type: ignore[import-not-found]
    OptimizationFeatureClassifier,
)

if __name__ == "__main__":
    found = [
        OptimizationFeatureClassifier.classify_from_code(source, language)[:3]
        for language, source in json.load(sys.stdin)
    ]
    sys.stdout.write(json.dumps(found) + "\n")
