"""Twelve programs of different kinds with their faults: each run must hang on the seed alone."""
