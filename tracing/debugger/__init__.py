"""Stopping a run at certain events: breakpoints, invariants, and the check of new events."""
