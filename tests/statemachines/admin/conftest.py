"""Fixtures for tests of the admin APIs."""

from __future__ import annotations

import pytest
from fakekafka.tests.support.controller_cluster import ControllerCluster


@pytest.fixture
def cluster() -> ControllerCluster:
    """Return a cluster of brokers 1, 2 and 3 of release 2.8."""
    return ControllerCluster([1, 2, 3])
