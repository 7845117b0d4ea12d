"""Fixture of a cluster with one broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fakekafka import Cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(1) as cluster:
        cluster.create_topic("x", partitions=4)
        yield cluster
