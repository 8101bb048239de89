"""The trusted side of a run: reference, seeds, expected values, comparison and clock."""
