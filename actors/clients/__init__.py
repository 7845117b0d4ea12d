"""Modelled clients: producers and consumers that behave like Kafka's own."""
