"""Targets: what is built for a seed, what may happen to it, and how it is healed and judged."""
