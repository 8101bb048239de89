"""Compilers: what to run in a build box and how to read what came out."""
