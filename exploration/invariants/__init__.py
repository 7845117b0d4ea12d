"""Invariants, which watch a run all along, and validations, which are asked at its end."""
