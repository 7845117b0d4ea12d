"""A served cluster."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fakekafka import Cluster
from fakekafka.control.server import ControlServer
from fakekafka.tests.support.served import Served


@pytest.fixture(scope="module")
def served_cluster() -> Iterator[Served]:
    with Cluster(3, config={"log.dirs": "a,b"}) as cluster:
        server = ControlServer(cluster)
        yield Served(cluster, server)
        server.close()


@pytest.fixture
def served(served_cluster: Served) -> Iterator[Served]:
    """A served cluster with the topic orders, emptied afterwards."""
    served_cluster.cluster.create_topic("orders", assignment={0: [1, 2, 3], 1: [2, 3, 1]})
    yield served_cluster
    served_cluster.ask("POST", "/reset")
