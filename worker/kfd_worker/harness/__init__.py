"""The candidate's side of a run: standard library only, trusted with nothing."""
