"""The client through which the controller and the brokers use ZooKeeper (``KafkaZkClient``)."""
