"""Kafka's TCP protocol: listeners, connections, and the codec with a module per family of APIs."""
