"""The tables of a batch: written while it runs, read afterwards."""
