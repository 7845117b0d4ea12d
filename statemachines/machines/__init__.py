"""The controller's context, and the state machines of partitions and replicas that act on it."""
