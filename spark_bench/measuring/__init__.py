"""Measures of a run, and the bounds within which it has to end."""
