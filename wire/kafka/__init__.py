"""Kafka's TCP protocol: listeners, connections, and the codec with one file per API key."""
