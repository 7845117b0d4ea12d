"""Traces of runs: the recorder that every message passes, the ``.fktrace`` file, its readers and
queries (show, grep, why, watch, diff, verify), and the story of a failover derived from a trace.
"""
