"""Requests written by kio, an independent codec, are decoded to the messages they stand for."""

from __future__ import annotations

import datetime
import io
from typing import Any

import pytest
from fakekafka.protocol import admin, data
from fakekafka.protocol.fetch_session_epochs import EPOCH_MAX
from fakekafka.protocol.values import uuid_text
from fakekafka.protocol.versions import behaviour
from fakekafka.tests.support import (
    broker_parity,
    expected_group_requests,
    security_parity,
    transaction_messages,
)
from fakekafka.tests.support.examples import examples
from fakekafka.tests.support.expected_group_requests import indexes_of, ms, partitions_of
from fakekafka.wire.kafka.api import CodecAnswer, SplitRequest, UnknownElement
from fakekafka.wire.kafka.primitives import CompactReader, Reader
from fakekafka.wire.kafka.registry import CODEC_RANGES, CODECS
from fakekafka.wire.kafka.repetitions import collectors
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.index import load_request_schema
from kio.schema.index import api_key_map, schema_name_map
from kio.serial import entity_writer
from kio.static.primitive import Records, i32, i32Timedelta, i64

st.register_type_strategy(Records, st.binary(max_size=40).map(Records))


class NamesByHex:
    """Every id has a name made of its digits."""

    def topic_id(self, topic: str) -> bytes | None:
        return bytes.fromhex(topic)

    def topic_name(self, topic_id: bytes) -> str | None:
        return topic_id.hex()


def once(partitions: list[Any]) -> tuple[Any, ...]:
    """The last mention of each partition, where the first one was."""
    return tuple({p.topic_partition: p for p in partitions}.values())


def produce(e: Any) -> Any:
    return data.ProduceRequest(
        e.acks,
        ms(e.timeout),
        once([data.ProducePartition(tp, p.records) for tp, p in partitions_of(e.topic_data)]),
        e.transactional_id,
    )


def fetch(e: Any) -> Any:
    state = getattr(e, "replica_state", e)
    session_epoch = getattr(e, "session_epoch", -1)
    return data.FetchRequest(
        state.replica_id,
        ms(e.max_wait),
        e.min_bytes,
        e.max_bytes,
        once(
            [
                data.FetchPartition(
                    tp,
                    p.fetch_offset,
                    getattr(p, "log_start_offset", -1),
                    p.partition_max_bytes,
                    max(-1, getattr(p, "current_leader_epoch", -1)),
                    getattr(p, "last_fetched_epoch", -1),
                )
                for tp, p in partitions_of(e.topics)
            ]
        ),
        e.isolation_level,
        getattr(e, "session_id", 0),
        EPOCH_MAX if session_epoch < -1 else session_epoch,
        indexes_of(getattr(e, "forgotten_topics_data", ())) or (),
        getattr(e, "rack_id", ""),
        getattr(state, "replica_epoch", -1),
    )


def list_offsets(e: Any) -> Any:
    return data.ListOffsetsRequest(
        e.replica_id,
        tuple(
            data.ListOffsetsPartition(tp, p.timestamp, getattr(p, "current_leader_epoch", -1))
            for tp, p in partitions_of(e.topics)
        ),
        getattr(e, "isolation_level", 0),
    )


def metadata(e: Any) -> Any:
    topics = e.topics
    ids: tuple[str, ...] = ()
    if topics is None or (not topics and e.__version__ == 0):
        names = None
    else:
        ids = tuple(
            uuid_text(t.topic_id.bytes) for t in topics if getattr(t, "topic_id", None) is not None
        )
        named = [t for t in topics if getattr(t, "topic_id", None) is None]
        names = () if ids else tuple(t.name or "" for t in named)
    return data.MetadataRequest(
        names,
        getattr(e, "allow_auto_topic_creation", True),
        ids,
        getattr(e, "include_cluster_authorized_operations", False),
        getattr(e, "include_topic_authorized_operations", False),
    )


def create_topics(e: Any) -> Any:
    return admin.CreateTopicsRequest(
        tuple(
            admin.NewTopic(
                t.name,
                t.num_partitions,
                t.replication_factor,
                tuple((a.partition_index, a.broker_ids) for a in t.assignments),
                tuple((c.name, c.value) for c in t.configs),
            )
            for t in e.topics
        ),
        ms(e.timeout),
        e.validate_only,
    )


def delete_topics(e: Any) -> Any:
    if hasattr(e, "topic_names"):
        return admin.DeleteTopicsRequest(e.topic_names, ms(e.timeout))
    by_id = [(t.name, uuid_text(t.topic_id.bytes)) for t in e.topics if t.topic_id is not None]
    names = [t.name for t in e.topics if t.topic_id is None]
    return admin.DeleteTopicsRequest(
        tuple(name for name in names if name is not None),
        ms(e.timeout),
        tuple(topic_id for name, topic_id in by_id if name is None),
        names.count(None),
        tuple((name, topic_id) for name, topic_id in by_id if name is not None),
    )


def delete_records(e: Any) -> Any:
    offsets = {tp: p.offset for tp, p in partitions_of(e.topics)}
    return data.DeleteRecordsRequest(ms(e.timeout), tuple(offsets.items()))


def init_producer_id(e: Any) -> Any:
    return data.InitProducerIdRequest(
        e.transactional_id,
        ms(e.transaction_timeout),
        getattr(e, "producer_id", -1),
        getattr(e, "producer_epoch", -1),
    )


def offset_for_leader_epoch(e: Any) -> Any:
    return data.OffsetForLeaderEpochRequest(
        getattr(e, "replica_id", -1),
        tuple(
            data.OffsetForLeaderEpochPartition(tp, p.leader_epoch, p.current_leader_epoch)
            for tp, p in partitions_of(e.topics)
        ),
    )


def describe_configs(e: Any) -> Any:
    return admin.DescribeConfigsRequest(
        tuple(
            (admin.ConfigResource(r.resource_type, r.resource_name), r.configuration_keys)
            for r in e.resources
        ),
        e.include_synonyms,
        getattr(e, "include_documentation", False),
    )


def alter_configs(e: Any) -> Any:
    incremental = e.__api_key__ == 44
    return admin.AlterConfigsRequest(
        tuple(
            (
                admin.ConfigResource(r.resource_type, r.resource_name),
                tuple((c.name, getattr(c, "config_operation", 0), c.value) for c in r.configs),
            )
            for r in e.resources
        ),
        incremental,
        e.validate_only,
    )


def create_partitions(e: Any) -> Any:
    return admin.CreatePartitionsRequest(
        tuple(
            admin.NewPartitions(
                t.name,
                t.count,
                None if t.assignments is None else tuple(a.broker_ids for a in t.assignments),
            )
            for t in e.topics
        ),
        ms(e.timeout),
        e.validate_only,
    )


def elect_leaders(e: Any) -> Any:
    return admin.ElectLeadersRequest(
        getattr(e, "election_type", 0), indexes_of(e.topic_partitions), ms(e.timeout)
    )


def alter_reassignments(e: Any) -> Any:
    return admin.AlterPartitionReassignmentsRequest(
        tuple((tp, p.replicas) for tp, p in partitions_of(e.topics)), ms(e.timeout)
    )


def list_reassignments(e: Any) -> Any:
    return admin.ListPartitionReassignmentsRequest(indexes_of(e.topics), ms(e.timeout))


def describe_cluster(e: Any) -> Any:
    if getattr(e, "endpoint_type", 1) != 1:
        return CodecAnswer
    asked = e.include_cluster_authorized_operations
    return data.MetadataRequest((), False, include_cluster_authorized_operations=asked)


EXPECTED = {
    **security_parity.EXPECTED,
    **broker_parity.EXPECTED,
    **expected_group_requests.EXPECTED,
    0: produce,
    1: fetch,
    2: list_offsets,
    3: metadata,
    18: lambda e: CodecAnswer,
    19: create_topics,
    20: delete_topics,
    21: delete_records,
    22: init_producer_id,
    23: offset_for_leader_epoch,
    32: describe_configs,
    33: alter_configs,
    37: create_partitions,
    43: elect_leaders,
    44: alter_configs,
    45: alter_reassignments,
    46: list_reassignments,
    60: describe_cluster,
    **transaction_messages.EXPECTED,
}


ANSWERING = (1, 2, 3, 8, 9, 20, 43, 48)
"""APIs that are answered at once where a value has no meaning."""
COLLECTED = {1, 8}
"""APIs that some releases decode without what is named twice."""


def versions_of(key: int) -> list[int]:
    """The versions that both codecs speak."""
    api = CODECS[key]
    known = schema_name_map[api_key_map[key]]
    return [v for v in range(api.min_version, api.max_version + 1) if v in known]


KEYS_AND_VERSIONS = [(key, version) for key in CODEC_RANGES for version in versions_of(key)]


def test_every_api_is_compared() -> None:
    """A new API without a comparison here fails."""
    assert sorted(EXPECTED) == sorted(CODEC_RANGES)


@pytest.mark.hypothesis
@pytest.mark.parametrize(("key", "version"), KEYS_AND_VERSIONS)
def test_a_request_written_by_kio_is_decoded_to_its_last_byte(key: int, version: int) -> None:
    """Every field arrives where it belongs, at every version offered."""
    api = CODECS[key]
    schema = load_request_schema(key, version)
    write = entity_writer(schema)
    reader_class = CompactReader if version >= api.flexible_from else Reader
    assert schema.__flexible__ == reader_class.flexible

    @settings(max_examples=examples(8), database=None)
    @given(st.from_type(schema))
    def compare(entity: Any) -> None:
        buffer = io.BytesIO()
        write(buffer, entity)
        reader = reader_class(memoryview(buffer.getvalue()), 0, NamesByHex())
        try:
            request = api.decode(reader, version)
        except UnknownElement as error:
            request = error.request
        assert reader.at == reader.end
        if isinstance(request, SplitRequest) and request.whole is not None:
            request = request.whole
        if key in COLLECTED:
            request = collectors(behaviour("2.8"))[key](request, version)
        expected = EXPECTED[key](entity)
        if expected is CodecAnswer or key in ANSWERING:
            assert isinstance(request, CodecAnswer) or request == expected
        else:
            assert request == expected

    compare()


@pytest.mark.parametrize(
    ("session", "sent_on"),
    [((0, 0), (0, -1)), ((5, 0), (5, -1)), ((5, -1), (5, -1)), ((5, 3), (0, 3))],
)
def test_a_fetch_with_an_unresolved_topic_id_stays_outside_sessions(
    session: tuple[int, ...], sent_on: tuple[int, ...]
) -> None:
    """A session would hold the stand-in name after the id has become known (KIP-516)."""
    import uuid

    from kio.schema.fetch.v17.request import FetchPartition, FetchRequest, FetchTopic

    partition = FetchPartition(partition=i32(0), fetch_offset=i64(1), partition_max_bytes=i32(1))
    entity = FetchRequest(
        max_wait=i32Timedelta.parse(datetime.timedelta(0)),
        min_bytes=i32(0),
        session_id=i32(session[0]),
        session_epoch=i32(session[1]),
        topics=(FetchTopic(topic_id=uuid.uuid4(), partitions=(partition,)),),
        forgotten_topics_data=(),
    )
    buffer = io.BytesIO()
    entity_writer(FetchRequest)(buffer, entity)
    request = CODECS[1].decode(CompactReader(memoryview(buffer.getvalue())), 17)
    assert (request.session_id, request.session_epoch) == sent_on
    assert not request.partitions[0].topic_partition.topic[0].isalnum()
