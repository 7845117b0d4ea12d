"""Handles: what users hold of the parts of a running cluster."""
