"""The follower's side: fetchers, their sessions with leaders, and who copies what."""
