"""ZooKeeper as pure cores: znode tree, sessions, one-shot watches, transactions, a client that
survives connection loss and session expiry, and a server ensemble with leader election. Nothing
here knows of Kafka, actors or sockets.
"""
