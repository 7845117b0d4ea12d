"""The controller's memory, and the state machines of partitions and replicas that work on it."""
