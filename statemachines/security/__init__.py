"""Users, what they may do and how much of it, as brokers keep it in ZooKeeper."""
