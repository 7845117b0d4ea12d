"""The scenarios, by what they are about."""
