"""A raw client: every field of Kafka's messages, and connections without retries."""
