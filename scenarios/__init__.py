"""Scenarios: read from files, run in virtual time, judged."""
