"""Runtimes, the network, and the actors: brokers, fetchers, controllers, ZooKeeper servers."""
