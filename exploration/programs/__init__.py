"""Exploration of a user's own test: faults on its cluster and on its programs."""
