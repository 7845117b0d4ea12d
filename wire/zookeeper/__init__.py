"""ZooKeeper's TCP protocol: listeners, connections, jute."""
