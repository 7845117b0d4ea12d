"""Kafka itself as the judge: scenarios that run on real brokers and here, and their recordings."""
