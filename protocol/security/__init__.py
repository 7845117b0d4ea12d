"""Clients and what they may do: values and messages."""
