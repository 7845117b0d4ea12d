"""ZooKeeper as pure cores: znode tree, sessions, one-shot watches, transactions, a client that
survives connection loss and session expiry, and a server ensemble with leader election. This
package knows nothing of Kafka, actors or sockets.
"""
