"""APIs by the names that users write."""

from __future__ import annotations

import pytest
from fakekafka.testing.api_names import request_type
from fakekafka.wire.kafka.registry import APIS

WITHOUT_MESSAGE = {
    "AlterPartition",
    "ApiVersions",
    "ConsumerGroupDescribe",
    "ConsumerGroupHeartbeat",
    "DescribeCluster",
    "IncrementalAlterConfigs",
}
"""The codec answers some of them itself, and turns the others into messages of another name."""


@pytest.mark.parametrize("name", sorted(api.name for api in APIS.values()))
def test_what_a_client_asks_can_be_named(name: str) -> None:
    """So it can be asked for by ``ask``, and errors can be injected into it."""
    if name not in WITHOUT_MESSAGE:
        assert request_type(name).__name__ == f"{name}Request"
