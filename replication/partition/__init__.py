"""A hosted partition: its role, its replicas, its ISR, and what the broker knows of others."""
