"""Exploration of a user's own test, with faults of its cluster and of its programs."""
