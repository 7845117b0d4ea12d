"""The control plane's decision logic: the controller with its state machines, Kafka's ZooKeeper
client, the admin APIs, brokers' dynamic configuration, and the stores of ACLs, quotas and users.

Nothing here depends on actors or sockets: ZooKeeper is reached through ``KafkaZkClient`` and
brokers through the small ``BrokerChannels`` interface.
"""
