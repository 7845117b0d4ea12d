"""Queries on a recorded run: events, places, causes, and the state at a moment."""
