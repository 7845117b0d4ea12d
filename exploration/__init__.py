"""Fault exploration: histories of a cluster, drawn from seeds, and the promises that must hold."""
