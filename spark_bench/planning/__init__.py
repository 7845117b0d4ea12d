"""Suites, the plan of a batch, and carrying out one of its runs."""
