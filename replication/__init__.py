"""A broker's replicas: logs, partitions, leaders and followers, and what waits for them."""
