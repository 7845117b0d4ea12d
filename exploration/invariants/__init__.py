"""Invariants, which are checked throughout a run, and validations, which are checked at its end."""
