"""The feed of a served cluster's events, which looks and listeners tell."""
