"""ACLs, quotas and credentials of users, which brokers store in ZooKeeper."""
