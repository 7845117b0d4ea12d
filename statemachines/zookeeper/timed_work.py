"""Kinds of work of the controller and its ZooKeeper client that a cost model may charge for."""

from __future__ import annotations

from collections.abc import Callable

Work = Callable[[str, int], object]
"""Called with a kind of work and its amount; the cost model decides how much time it takes."""

LOGGED_PARTITIONS = "logged partitions"
"""Kind of work: partitions whose leadership the controller logs."""
ZOOKEEPER_ANSWERS = "zookeeper answers"
"""Kind of work: answers of ZooKeeper, processed once a batch is complete."""


def ignore_work(_kind: str, _amount: int) -> None:
    """Charge nothing for work."""
