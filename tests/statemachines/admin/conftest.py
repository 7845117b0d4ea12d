"""Controllers to administer topics with."""

from __future__ import annotations

import pytest
from fakekafka.tests.support.controller_cluster import ControllerCluster


@pytest.fixture
def cluster() -> ControllerCluster:
    """Brokers 1, 2 and 3 of 2.8."""
    return ControllerCluster([1, 2, 3])
