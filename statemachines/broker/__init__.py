"""A broker's own dealings with ZooKeeper: its registration and dynamic configuration."""
