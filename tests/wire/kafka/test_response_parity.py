"""Responses are read by kio, an independent codec, field by field and written back byte by byte."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import io
import uuid
from typing import Any

import pytest
from fakekafka.protocol import admin, data, groups
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.values import TopicPartition
from fakekafka.tests.support.examples import examples
from fakekafka.tests.support.response_messages import RESPONSES, some
from fakekafka.tests.support.response_trees import TREES, TopicIds
from fakekafka.wire.kafka.api import SplitRequest
from fakekafka.wire.kafka.apis.api_60_describe_cluster import WrongEndpointType
from fakekafka.wire.kafka.codec import Codec
from fakekafka.wire.kafka.registry import CODEC_RANGES, CODECS
from hypothesis import given, settings
from kio.index import load_response_schema
from kio.schema.index import api_key_map, schema_name_map
from kio.serial import entity_reader, entity_writer


def plain(value: Any) -> Any:
    """A value of kio's as plain numbers, strings and bytes."""
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, datetime.timedelta):
        return round(value.total_seconds() * 1000)
    if isinstance(value, datetime.datetime):
        return round(value.timestamp() * 1000)
    if isinstance(value, uuid.UUID):
        return value.bytes
    return value


def assert_matches(entity: Any, tree: Any, where: str) -> None:
    """Every field that the entity of this version has is as the tree says."""
    for field in dataclasses.fields(entity):
        value, expected = getattr(entity, field.name), tree[field.name]
        path = f"{where}.{field.name}"
        if dataclasses.is_dataclass(value):
            assert_matches(value, expected, path)
        elif isinstance(value, tuple):
            assert len(value) == len(expected), path
            for index, item in enumerate(value):
                if dataclasses.is_dataclass(item):
                    assert_matches(item, expected[index], f"{path}[{index}]")
                else:
                    assert plain(item) == expected[index], path
        elif value is None and isinstance(expected, bytes):
            assert expected == bytes(16), path
        elif value is None and field.metadata.get("kafka_type") == "datetime_i64":
            assert expected == -1, path
        else:
            assert plain(value) == expected, path


def versions_of(key: int) -> list[int]:
    api = CODECS[key]
    known = schema_name_map[api_key_map[key]]
    return [v for v in range(api.min_version, api.max_version + 1) if v in known]


KEYS_AND_VERSIONS = [(key, v) for key in CODEC_RANGES if key != 18 for v in versions_of(key)]


HOT = (0, 1, 3)
"""APIs with encoders that take short cuts: more examples."""


def test_every_api_is_compared() -> None:
    """A new API without a comparison here fails; ApiVersions has its own tests."""
    assert sorted([*RESPONSES, 18]) == sorted(CODEC_RANGES)
    assert sorted([*TREES, 18]) == sorted(CODEC_RANGES)


def body_of(codec: Codec, key: int, version: int, response: Any, request: Any = None) -> bytes:
    return b"".join(codec.encode(key, version, response, request))


@pytest.mark.hypothesis
@pytest.mark.parametrize(("key", "version"), KEYS_AND_VERSIONS)
def test_a_response_is_read_by_kio_and_written_back_to_the_same_bytes(
    key: int, version: int
) -> None:
    """Every field is where it belongs and the encoding is the canonical one."""
    codec = Codec("3.9", TopicIds())
    schema = load_response_schema(key, version)
    read, write = entity_reader(schema), entity_writer(schema)
    strategy = RESPONSES[key]
    batched = key == 9 and version >= 8
    if batched:
        strategy = some(strategy, 3)

    @settings(max_examples=examples(30 if key in HOT else 8), database=None)
    @given(strategy)
    def compare(response: Any) -> None:
        request = None
        if batched:
            asked = [groups.OffsetFetchRequest(f"group-{n}", None) for n in range(len(response))]
            request = SplitRequest(tuple(asked))
        elif key == 9 and version == 1:
            response = dataclasses.replace(response, error=ErrorCode.NONE)
        body = body_of(codec, key, version, response, request)
        entity, size = read(body, 0)
        assert size == len(body)
        assert_matches(entity, TREES[key](response, version), api_key_map[key])
        buffer = io.BytesIO()
        write(buffer, entity)
        assert buffer.getvalue() == body

    compare()


def test_an_unresolved_topic_id_is_answered_with_itself_and_unknown_topic_id() -> None:
    """Fetch 13 and later carry ids only (KIP-516); the backend knows the stand-in name not."""
    from fakekafka.wire.kafka.topic_names import resolved_name

    names = TopicIds()
    topic_id = bytes(range(16))
    stand_in = TopicPartition(resolved_name(names, topic_id), 0)
    response = data.FetchResponse(
        ErrorCode.NONE,
        0,
        (data.FetchPartitionResponse(stand_in, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),),
    )
    body = body_of(Codec("3.9", names), 1, 13, response)
    entity: Any
    entity, _ = entity_reader(load_response_schema(1, 13))(body, 0)
    (topic,) = entity.responses
    assert topic.topic_id.bytes == topic_id
    assert topic.partitions[0].error_code.value == 100


@pytest.mark.parametrize("version", [8, 10, 11])
def test_authorized_operations_are_all_of_them_when_asked_and_nobody_decides(version: int) -> None:
    """DP 15.4: Int.Min when not asked; without an authorizer every operation is allowed."""
    topic = data.MetadataTopic(ErrorCode.NONE, "orders", False, ())
    response = data.MetadataResponse((), "c", -1, (topic,))
    request = data.MetadataRequest(
        (), include_cluster_authorized_operations=True, include_topic_authorized_operations=True
    )
    body = body_of(Codec("3.9"), 3, version, response, request)
    entity: Any
    entity, _ = entity_reader(load_response_schema(3, version))(body, 0)
    assert entity.topics[0].topic_authorized_operations == 3576
    if version <= 10:
        assert entity.cluster_authorized_operations == 8096


def test_a_group_error_reaches_clients_of_offset_fetch_1_in_every_partition() -> None:
    """Version 1 has no field for the error of the group."""
    asked = (TopicPartition("a", 0), TopicPartition("a", 1))
    response = groups.OffsetFetchResponse(ErrorCode.NOT_COORDINATOR, ())
    body = body_of(Codec("3.9"), 9, 1, response, groups.OffsetFetchRequest("g", asked))
    entity: Any
    entity, _ = entity_reader(load_response_schema(9, 1))(body, 0)
    assert [p.error_code.value for p in entity.topics[0].partitions] == [16, 16]


def test_an_election_error_reaches_clients_of_version_0_in_every_partition() -> None:
    """Version 0 of ElectLeaders has no field for the error of all."""
    asked = (TopicPartition("a", 0), TopicPartition("b", 1))
    response = admin.ElectLeadersResponse(ErrorCode.NOT_CONTROLLER)
    body = body_of(Codec("3.9"), 43, 0, response, admin.ElectLeadersRequest(0, asked))
    entity: Any
    entity, _ = entity_reader(load_response_schema(43, 0))(body, 0)
    results = entity.replica_election_results
    assert [t.partition_result[0].error_code.value for t in results] == [41, 41]


def test_describe_cluster_of_controllers_is_refused() -> None:
    """KIP-919: a broker answers MISMATCHED_ENDPOINT_TYPE to who asks it for controllers."""
    codec = Codec("3.9")
    answer = codec.decode(60, 1, memoryview(b"\0\2\0"))
    assert answer.response == WrongEndpointType(2)
    entity: Any
    entity, _ = entity_reader(load_response_schema(60, 1))(
        body_of(codec, 60, 1, answer.response), 0
    )
    assert entity.error_code.value == 114
    assert "CONTROLLER" in entity.error_message


def test_a_partition_with_hundreds_of_replicas_is_written_too() -> None:
    """Counts that need two bytes of a varint."""
    many = tuple(range(300))
    partition = data.MetadataPartition(ErrorCode.NONE, 0, 1, 2, many, many[:150], ())
    topic = data.MetadataTopic(ErrorCode.NONE, "wide", False, (partition,))
    body = body_of(Codec("3.9"), 3, 12, data.MetadataResponse((), "c", -1, (topic,)))
    entity: Any
    entity, _ = entity_reader(load_response_schema(3, 12))(body, 0)
    (read,) = entity.topics[0].partitions
    assert (read.replica_nodes, len(read.isr_nodes)) == (many, 150)
