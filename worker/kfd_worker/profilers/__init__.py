"""Profiles as evidence: what a tool measured, one named bottleneck, a short text for the prompt."""
