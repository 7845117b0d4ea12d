"""The control plane's decision logic: the controller with its state machines, Kafka's ZooKeeper
client, the admin APIs, dynamic configuration, and the stores of ACLs, quotas and credentials.

Nothing here depends on actors or sockets: ZooKeeper is reached through ``KafkaZkClient`` and
brokers through the small ``BrokerChannels`` interface.
"""
