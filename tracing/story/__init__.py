"""The story of a run, derived from its trace."""
