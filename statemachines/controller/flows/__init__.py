"""Reactions of the controller to changes: one module per kind of change."""
