"""The wire contract: generated code under v1 and a few helpers."""
