"""The APIs, a module for each family: the mapping from Kafka's fields to the actors' messages.

A module defines an ``Api`` for each key; ``wire.kafka.registry`` lists the keys of each module, and
imports it on the first request. The table of ``wire.kafka.messages`` defines which fields are
encoded in which versions.
"""
