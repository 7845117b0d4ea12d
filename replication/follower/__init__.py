"""What a follower does: fetchers, their sessions with leaders, and who copies what."""
