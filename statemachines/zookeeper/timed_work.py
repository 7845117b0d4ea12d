"""Work of the controller and its ZooKeeper client that a cost model may take time for."""

from __future__ import annotations

from collections.abc import Callable

Work = Callable[[str, int], object]
"""Told of a kind of work and its amount; whoever keeps the time decides what it costs."""

LOGGED_PARTITIONS = "logged partitions"
"""Partitions written into a line of the log."""
ZOOKEEPER_ANSWERS = "zookeeper answers"
"""Answers of ZooKeeper that are looked at once all of a batch have come."""


def ignore_work(_kind: str, _amount: int) -> None:
    """Work costs nothing."""
