"""ZooKeeper clients: one that finds a server over a network, one that needs none."""
