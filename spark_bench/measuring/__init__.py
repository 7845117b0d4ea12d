"""Measurements of a run, and the budget within which it has to end."""
