"""Access of the controller and the brokers to ZooKeeper (``KafkaZkClient``)."""
