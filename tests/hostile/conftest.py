"""A cluster of one broker, and the modules beside."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakekafka import Cluster

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(1) as cluster:
        cluster.create_topic("x", partitions=4)
        yield cluster
