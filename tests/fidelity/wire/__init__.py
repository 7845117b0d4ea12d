"""Requests of every API in every version, right and wrong in each field, and Kafka's responses."""
