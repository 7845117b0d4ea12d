"""Handlers of a broker's requests: one module per group of APIs."""
