"""Random histories that run on a simulation and on Kafka, step by step beside each other."""
