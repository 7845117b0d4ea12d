"""The controller's decision logic: its memory of the cluster, the partition and replica state
machines, topic deletion, reassignment and the batches of requests that tell the brokers.

Nothing here knows of actors or sockets: ZooKeeper is reached through ``KafkaZkClient`` and
brokers through the small ``BrokerChannels`` interface.
"""
