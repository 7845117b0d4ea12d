"""Exploration: histories of a cluster from a seed, and the promises that they have to keep."""
