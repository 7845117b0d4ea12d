"""fakekafka: an Apache Kafka cluster of the ZooKeeper era inside one Python process."""

from __future__ import annotations

__version__ = "0.1.0"
