"""A hosted partition: its role, its replicas and its ISR; and the broker's metadata cache."""
