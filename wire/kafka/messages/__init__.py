"""Kafka's messages: the table of their fields, and what reads and writes them by it."""
