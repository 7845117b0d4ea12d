"""The story of a run, told from its trace."""
