"""A broker's replicas: logs, partitions, leaders and followers, and the requests that wait."""
