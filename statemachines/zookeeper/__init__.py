"""What the controller and the brokers read from and write to ZooKeeper (``KafkaZkClient``)."""
