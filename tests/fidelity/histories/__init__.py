"""Random histories that run on a simulation and on Kafka, compared step by step."""
