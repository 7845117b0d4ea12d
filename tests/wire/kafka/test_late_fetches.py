"""Broken Fetch requests of 0.10, which Scala code reads: null is empty, and some get no answer."""

from __future__ import annotations

import struct

import pytest
from fakekafka.protocol.data import FetchRequest
from fakekafka.protocol.errors import ClientError, ErrorCode
from fakekafka.wire.kafka.api import DROPPED, CodecAnswer
from fakekafka.wire.kafka.codec import Codec
from fakekafka.wire.kafka.topic_names import NULL_NAME

HEAD = struct.pack(">iii", -1, 1, 0)
PARTITION = struct.pack(">iqi", 0, 0, 100)
ONE = struct.pack(">i", 1)
NULL_ARRAY = struct.pack(">i", -1)
NAMELESS = HEAD + ONE + struct.pack(">h", -1) + ONE + PARTITION


def decoded(kafka_version: str, body: bytes) -> object:
    return Codec(kafka_version).decode(1, 0, memoryview(body))


def test_null_topics_are_none() -> None:
    request = decoded("0.10", HEAD + NULL_ARRAY)
    assert isinstance(request, FetchRequest)
    assert request.partitions == ()


def test_a_topic_without_a_name_is_an_unexpected_error() -> None:
    answer = decoded("0.10", NAMELESS)
    assert isinstance(answer, CodecAnswer)
    (result,) = answer.response.partitions
    assert (result.topic_partition.topic, result.error) == (
        NULL_NAME,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    )
    written = b"".join(Codec("0.10").encode(1, 0, answer.response))
    assert written[4:6] == b"\xff\xff"


@pytest.mark.parametrize("cut", [0, 3, len(HEAD) + 2, len(NAMELESS) - 1])
def test_a_request_that_ends_too_early_is_dropped(cut: int) -> None:
    """``Processor.run`` of 0.10 logs the exception; the connection stays open."""
    assert decoded("0.10", NAMELESS[:cut]) is DROPPED


@pytest.mark.parametrize("body", [HEAD + NULL_ARRAY, NAMELESS, HEAD])
def test_later_releases_close_the_connection(body: bytes) -> None:
    with pytest.raises(ClientError):
        decoded("1.1", body)
