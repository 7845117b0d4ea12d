"""What differs between the releases of Kafka: which there are, and a flag for each difference."""
