"""The follower's side: fetchers, their sessions with leaders, and the partitions of each."""
