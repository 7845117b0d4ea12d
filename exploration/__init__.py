"""Exploration: histories of a cluster from a seed, and judges of what became of it."""
