"""Figures that docs/benchmarks.md reports; each command prints one JSON object a line and exits 0 if all bars hold."""
