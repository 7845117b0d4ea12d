"""Twelve kinds of programs, with faults; each run must depend on the seed alone."""
