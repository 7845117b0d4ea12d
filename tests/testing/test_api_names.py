"""Names of APIs as users write them."""

from __future__ import annotations

import pytest
from fakekafka.protocol.api_versions import API_NAMES
from fakekafka.testing.api_names import request_type
from fakekafka.wire.kafka.registry import CODEC_RANGES

WITHOUT_MESSAGE = {
    "AlterPartition",
    "ApiVersions",
    "ConsumerGroupDescribe",
    "ConsumerGroupHeartbeat",
    "DescribeCluster",
    "IncrementalAlterConfigs",
}
"""APIs that the codec answers itself or turns into messages of another name."""


@pytest.mark.parametrize("name", sorted(API_NAMES[key] for key in CODEC_RANGES))
def test_every_api_of_the_codec_has_a_request_class(name: str) -> None:
    """Every API of the codec has a request class, for ``ask`` and for injected errors."""
    if name not in WITHOUT_MESSAGE:
        assert request_type(name).__name__ == f"{name}Request"
