"""A client of our own: the fields of every message of Kafka, and connections that hide nothing."""
