"""Labelled kernels and what the behaviour classifier makes of them."""
