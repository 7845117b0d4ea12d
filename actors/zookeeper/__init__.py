"""The actors of a ZooKeeper ensemble."""
