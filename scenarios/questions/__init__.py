"""Nine questions about leader election, each answered by a simulation."""
