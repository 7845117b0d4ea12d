"""Parts of scenario files that many tests need."""

ORDERS_ON_THREE_BROKERS = """\
[cluster]
brokers = 3
[cluster.config]
zookeeper.session.timeout.ms = 6000
[cluster.topics.orders]
assignment = [[1, 2, 3]]"""
