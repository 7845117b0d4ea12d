"""Committed offsets of consumer groups, kept in ``__consumer_offsets``."""
