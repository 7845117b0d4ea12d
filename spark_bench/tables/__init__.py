"""The tables of a batch, which are written while it runs and can be read at any time."""
