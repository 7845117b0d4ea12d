"""Descriptions of broker settings that are arguments of the cluster instead of a settings file."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from fakekafka import Cluster
from fakekafka.protocol.admin import BROKER_RESOURCE, ConfigResource, DescribeConfigsRequest


@pytest.mark.parametrize("kafka_version", ["1.1", "2.8", "3.9"])
def test_a_brokers_rack_is_described(kafka_version: str) -> None:
    """A broker's rack is a static value; a broker without a rack has none."""
    with Cluster(brokers=2, racks=["a", None], kafka_version=kafka_version) as cluster:
        told = {}
        for broker_id in (1, 2):
            resource = ConfigResource(BROKER_RESOURCE, str(broker_id))
            request = DescribeConfigsRequest(((resource, ("broker.rack",)),))
            response = cluster.call(partial(_ask, cluster, broker_id, request), 10000)
            (entry,) = response.results[0].entries
            told[broker_id] = entry.value, entry.source
        assert told == {1: ("a", 4), 2: (None, 5)}


async def _ask(cluster: Cluster, broker_id: int, request: DescribeConfigsRequest) -> Any:
    return await cluster.running.admin.ask(f"broker-{broker_id}", request, 5000)
