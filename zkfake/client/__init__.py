"""A ZooKeeper client that finds a server over a network, with its handlers and watches."""
