"""Handles: objects with which users control the parts of a running cluster."""
