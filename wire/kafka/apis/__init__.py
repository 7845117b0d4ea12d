"""The APIs, a module for each family: which of Kafka's fields become what of the actors' messages.

A module defines an ``Api`` for each key; ``wire.kafka.registry`` knows which ones, and imports the
module on the first request. What is encoded, and since which version, stands in the table of
``wire.kafka.messages``.
"""
