"""ZooKeeper servers: sessions, roles, quorum, and what outlives a server."""
