"""Modelled clients: producers and consumers as Kafka's own behave."""
