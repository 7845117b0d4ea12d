"""OffsetFetch at a broker that is not the group's coordinator, by request version."""

from __future__ import annotations

from typing import Any, cast

import pytest
from fakekafka import Simulation
from fakekafka.protocol.data import RequestContext
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.groups import OffsetFetchRequest
from fakekafka.protocol.values import TopicPartition
from fakekafka.wire.kafka.codec import Codec
from fakekafka.wire.kafka.tcp_listener import TcpGateway

ORDERS = TopicPartition("orders", 0)


@pytest.mark.parametrize(
    ("release", "api_version", "error", "topics"),
    [
        ("3.9", 1, ErrorCode.NONE, 0),
        ("3.9", 2, ErrorCode.NOT_COORDINATOR, 0),
        ("2.8", 1, ErrorCode.NOT_COORDINATOR, 1),
        ("2.8", 2, ErrorCode.NOT_COORDINATOR, 0),
    ],
)
def test_version_1_omits_the_group_error_since_3_5(
    release: str, api_version: int, error: ErrorCode, topics: int
) -> None:
    """Since 3.5 version 1 omits the group's error; until 3.4 each requested partition had it."""
    request = OffsetFetchRequest("group", (ORDERS,))
    with Simulation(1, seed=1, kafka_version=release) as simulation:
        answers: list[Any] = []
        TcpGateway(cast(Any, simulation.runtime), release).submit(
            1, "tcp", request, RequestContext("client", api_version), answers.append
        )
        simulation.run_for(100)
    (answer,) = answers
    assert (answer.error, answer.partitions) == (error, ())
    written = b"".join(Codec(release).encode(9, api_version, answer, request))
    assert int.from_bytes(written[:4], "big") == topics
