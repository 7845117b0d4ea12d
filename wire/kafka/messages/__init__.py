"""Kafka's messages: the table of their fields, and the readers and writers generated from it."""
