"""Boxes: process trees that see only what they are given and end as a whole."""
