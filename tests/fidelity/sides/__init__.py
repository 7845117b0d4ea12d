"""The sides on which a scenario can run: a simulation, an embedded cluster with sockets, brokers
of Kafka."""
