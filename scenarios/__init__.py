"""Scenarios, which are read from files, run in virtual time, and judged."""
