"""The nine questions on leader election, each answered by running it."""
