"""Suites, the plan of a batch, and one run of it."""
