"""Values that brokers before 2.2 refuse while they parse a request, closing the connection."""

from __future__ import annotations

from struct import pack

import pytest
from fakekafka.protocol.admin import ConfigResource, DescribeConfigsRequest
from fakekafka.protocol.data import FindCoordinatorRequest, ProducePartition, ProduceRequest
from fakekafka.protocol.errors import ClientError
from fakekafka.protocol.security.acls import DescribeAclsRequest
from fakekafka.protocol.versions import behaviour
from fakekafka.tests.support.replica_cluster import TP, encode
from fakekafka.wire.kafka.api import CodecAnswer
from fakekafka.wire.kafka.codec import Codec
from fakekafka.wire.kafka.parse_checks import parse_checks

BATCH = encode("a")
CHECKS = parse_checks(behaviour("1.1"))


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
    """Brokers of 1.1 refuse such values, as in ``ProduceRequest.validateRecords`` or
    ``IsolationLevel.forId``.
    """
    with pytest.raises(ClientError):
        CHECKS[key](request_of_client, version)


@pytest.mark.parametrize(
    ("version", "records"),
    [(3, BATCH), (3, BATCH + BATCH[:20]), (2, BATCH + BATCH)],
    ids=["one batch", "a torn one behind it", "an old version"],
)
def test_a_good_value_passes(version: int, records: bytes) -> None:
    """A torn batch at the end is not counted, and before version 3 nothing is checked."""
    CHECKS[0](_produce(records), version)


@pytest.mark.parametrize("field", ["type", "pattern", "operation", "permission"])
def test_an_acl_of_the_unknown_kind_closes_the_connection(field: str) -> None:
    """Since 2.0 the number 0 closes the connection, and other unknown numbers are answered."""

    def describe(number: int) -> memoryview:
        numbers = {"type": 2, "pattern": 3, "operation": 3, "permission": 3, field: number}
        names = b"\xff\xff"
        body = pack(">b2sb2s2sbb", numbers["type"], names, numbers["pattern"], names, names,
                    numbers["operation"], numbers["permission"])  # fmt: skip
        return memoryview(body)

    codec = Codec("3.9")
    with pytest.raises(ClientError, match="kind UNKNOWN"):
        codec.decode(29, 1, describe(0))
    assert isinstance(codec.decode(29, 1, describe(99)), DescribeAclsRequest)


def test_old_releases_take_acls_of_the_unknown_kind() -> None:
    """Brokers of 1.1 answer requests with ACLs of the kind UNKNOWN."""
    body = memoryview(pack(">b2s2s2sbb", 0, b"\xff\xff", b"\xff\xff", b"\xff\xff", 3, 3))
    assert isinstance(Codec("1.1").decode(29, 0, body), DescribeAclsRequest)
    with pytest.raises(ClientError):
        Codec("2.8").decode(29, 0, body)


@pytest.mark.parametrize(("kafka_version", "is_refused"), [("1.1", True), ("2.8", False)])
def test_only_old_releases_close_the_connection(kafka_version: str, is_refused: bool) -> None:
    """Later releases answer FindCoordinator of an unknown type with INVALID_REQUEST."""
    body = memoryview(b"\x00\x01g\x09")
    codec = Codec(kafka_version)
    if is_refused:
        with pytest.raises(ClientError, match="type 9"):
            codec.decode(10, 1, body)
    else:
        assert codec.decode(10, 1, body).key_type == 9
