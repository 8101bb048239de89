"""The search measured on landscapes whose optimum is known: ``python -m benchmarks.search``."""
