"""Traces of runs: the recorder that every message passes, the ``.fktrace`` file, its readers and
questions (show, grep, why, watch, diff, verify), and the story of a failover told from it.
"""
