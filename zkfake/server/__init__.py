"""ZooKeeper servers: sessions, roles, quorum, and the storage that outlives a server."""
