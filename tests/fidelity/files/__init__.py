"""Log directories carried between Kafka's brokers and ours, and read by Kafka's own tools."""
