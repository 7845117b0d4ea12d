"""The disk of a broker, in memory or as a data directory in Kafka's on-disk format."""
