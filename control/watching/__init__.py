"""What happens in a served cluster: what looks and listeners tell, and the feed of it."""
