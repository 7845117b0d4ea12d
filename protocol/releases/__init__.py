"""The releases of Kafka, and a flag for each difference between them."""
