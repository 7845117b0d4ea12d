"""Flows, which handle the controller's events: one module per kind of change."""
