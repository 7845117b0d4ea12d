"""What brokers before 2.2 refuse while they parse a request: the connection closes."""

from __future__ import annotations

import pytest
from fakekafka.protocol.admin import ConfigResource, DescribeConfigsRequest
from fakekafka.protocol.data import (
    FindCoordinatorRequest,
    ProducePartition,
    ProduceRequest,
)
from fakekafka.protocol.errors import ClientError
from fakekafka.tests.support.replica_cluster import TP, encode
from fakekafka.wire.kafka.api import CodecAnswer
from fakekafka.wire.kafka.codec import Codec
from fakekafka.wire.kafka.parse_checks import PARSE_CHECKS

BATCH = encode("a")


def _produce(records: bytes | None) -> ProduceRequest:
    return ProduceRequest(-1, 1000, (ProducePartition(TP, records),))


@pytest.mark.parametrize(
    ("key", "version", "request_of_client"),
    [
        (0, 3, _produce(BATCH[:-3])),
        (0, 3, _produce(BATCH + BATCH)),
        (0, 3, _produce(b"x")),
        (0, 2, _produce(None)),
        (1, 4, CodecAnswer(None)),  # the codec answers unknown isolation levels of later releases
        (10, 1, FindCoordinatorRequest(("g",), 2)),
        (32, 0, DescribeConfigsRequest(((ConfigResource(-1, "t"), None),))),
    ],
)
def test_a_wrong_value_is_refused(key: int, version: int, request_of_client: object) -> None:
    """As by ``ProduceRequest.validateRecords``, ``IsolationLevel.forId`` and so on of Kafka 1.1."""
    with pytest.raises(ClientError):
        PARSE_CHECKS[key](request_of_client, version)


@pytest.mark.parametrize(
    ("version", "records"),
    [(3, BATCH), (3, BATCH + BATCH[:20]), (2, BATCH + BATCH)],
    ids=["one batch", "a torn one behind it", "an old version"],
)
def test_a_good_value_passes(version: int, records: bytes) -> None:
    """A torn batch at the end counts for none; before version 3 nothing is looked at."""
    PARSE_CHECKS[0](_produce(records), version)


@pytest.mark.parametrize(("kafka_version", "is_refused"), [("1.1", True), ("2.8", False)])
def test_only_old_releases_close_the_connection(kafka_version: str, is_refused: bool) -> None:
    """Later ones answer FindCoordinator of an unknown type with INVALID_REQUEST."""
    body = memoryview(b"\x00\x01g\x09")
    codec = Codec(kafka_version)
    if is_refused:
        with pytest.raises(ClientError, match="type 9"):
            codec.decode(10, 1, body)
    else:
        assert codec.decode(10, 1, body).key_type == 9
