"""Responses are read by kio, an independent codec, field by field and written back byte by byte."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import io
import uuid
from typing import Any

import pytest
from fakekafka.protocol import admin, data
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.record_batch import RecordBatch
from fakekafka.protocol.values import BrokerInfo, EndPoint, TopicPartition
from fakekafka.wire.api import Batch
from fakekafka.wire.apis.api_60_describe_cluster import WrongEndpointType
from fakekafka.wire.codec import Codec
from fakekafka.wire.registry import APIS
from fakekafka.wire.topic_names import uuid_bytes, uuid_text
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.index import load_response_schema
from kio.schema.index import api_key_map, schema_name_map
from kio.serial import entity_reader, entity_writer

NOT_ASKED = -(2**31)
int16s = st.integers(-(2**15), 2**15 - 1)
int32s = st.integers(-(2**31), 2**31 - 1)
int64s = st.integers(-(2**63), 2**63 - 1)
times = st.one_of(st.just(-1), st.integers(0, 4_000_000_000_000))
errors = st.sampled_from(sorted(ErrorCode))
texts = st.text(max_size=12)
nullable_texts = st.none() | st.text(max_size=150)
topics = st.sampled_from(["orders", "a", "b.c", "très-long" * 20])
topic_partitions = st.builds(TopicPartition, topics, int32s)
nodes = st.lists(int32s, max_size=4).map(tuple)
uuids = st.just("") | st.binary(min_size=16, max_size=16).map(uuid_text)


def some(strategy: Any, size: int = 5) -> Any:
    return st.lists(strategy, max_size=size).map(tuple)


brokers = some(
    st.builds(
        lambda node, host, port, rack: BrokerInfo(node, (EndPoint(host, port),), rack),
        int32s,
        texts,
        int32s,
        nullable_texts,
    ),
    3,
)
leaders = st.none() | st.tuples(st.integers(0, 2**31 - 1), int32s)
configs = st.builds(
    admin.ConfigEntry,
    texts,
    nullable_texts,
    st.integers(0, 6),
    st.booleans(),
    st.booleans(),
    st.integers(0, 9),
    st.booleans(),
    some(st.tuples(texts, nullable_texts, st.integers(0, 6)), 2),
    nullable_texts,
)
resources = st.builds(admin.ConfigResource, st.integers(-128, 127), texts)
topic_results = st.builds(
    admin.TopicResult,
    texts.filter(bool),
    errors,
    nullable_texts,
    uuids,
    int32s,
    int16s,
    some(st.tuples(texts, nullable_texts), 2),
    some(configs, 2),
)
partition_errors = some(st.tuples(topic_partitions, errors, nullable_texts))
metadata_responses = st.builds(
    data.MetadataResponse,
    brokers,
    texts,
    int32s,
    some(
        st.builds(
            data.MetadataTopic,
            errors,
            topics,
            st.booleans(),
            some(
                st.builds(
                    data.MetadataPartition, errors, int32s, int32s, int32s, nodes, nodes, nodes
                )
            ),
            uuids,
            st.none() | int32s,
        )
    ),
    st.none() | int32s,
)
offset_fetches = st.builds(
    data.OffsetFetchResponse,
    errors,
    some(st.builds(data.CommittedOffset, topic_partitions, errors, int64s, int32s, texts)),
)
batches = st.builds(RecordBatch, st.binary(min_size=61, max_size=400), st.just(0), st.just(0))

RESPONSES: dict[int, Any] = {
    0: st.builds(
        data.ProduceResponse,
        some(
            st.builds(
                data.ProducePartitionResponse,
                topic_partitions,
                errors | st.just(ErrorCode.NONE),
                int64s,
                times,
                int64s,
                some(st.tuples(int32s, texts), 2),
                nullable_texts,
                leaders,
            )
        ),
        st.integers(0, 1000),
        brokers,
    ),
    1: st.builds(
        data.FetchResponse,
        errors,
        int32s,
        some(
            st.builds(
                data.FetchPartitionResponse,
                topic_partitions,
                errors | st.just(ErrorCode.NONE),
                int64s,
                int64s,
                int64s,
                some(batches, 3),
                st.none() | some(st.builds(data.AbortedTransaction, int64s, int64s), 2),
                int32s,
                st.none() | st.builds(data.EpochEndOffset, st.integers(0, 9), st.integers(0, 99)),
                leaders,
            )
        ),
        st.integers(0, 1000),
        brokers,
    ),
    2: st.builds(
        data.ListOffsetsResponse,
        some(
            st.builds(
                data.ListOffsetsPartitionResponse,
                topic_partitions,
                errors,
                int64s,
                int64s,
                int32s,
            )
        ),
    ),
    3: metadata_responses,
    8: st.builds(data.OffsetCommitResponse, some(st.tuples(topic_partitions, errors))),
    9: offset_fetches,
    10: st.builds(
        data.FindCoordinatorResponse,
        st.lists(
            st.builds(data.Coordinator, texts, errors, int32s, texts, int32s, nullable_texts),
            min_size=1,
            max_size=3,
        ).map(tuple),
    ),
    19: st.builds(admin.CreateTopicsResponse, some(topic_results)),
    20: st.builds(admin.DeleteTopicsResponse, some(topic_results)),
    21: st.builds(data.DeleteRecordsResponse, some(st.tuples(topic_partitions, errors, int64s))),
    22: st.builds(data.InitProducerIdResponse, errors, int64s, int16s),
    23: st.builds(
        data.OffsetForLeaderEpochResponse,
        some(
            st.builds(
                data.OffsetForLeaderEpochPartitionResponse,
                topic_partitions,
                errors,
                int32s,
                int64s,
            )
        ),
    ),
    32: st.builds(
        admin.DescribeConfigsResponse,
        some(
            st.builds(admin.DescribeConfigsResult, resources, errors, nullable_texts, some(configs))
        ),
    ),
    33: st.builds(admin.AlterConfigsResponse, some(st.tuples(resources, errors, nullable_texts))),
    37: st.builds(admin.CreatePartitionsResponse, some(topic_results)),
    43: st.builds(admin.ElectLeadersResponse, errors, partition_errors),
    45: st.builds(
        admin.AlterPartitionReassignmentsResponse, errors, partition_errors, nullable_texts
    ),
    46: st.builds(
        admin.ListPartitionReassignmentsResponse,
        errors,
        some(st.builds(admin.OngoingReassignment, topic_partitions, nodes, nodes, nodes)),
        nullable_texts,
    ),
    60: metadata_responses,
}
RESPONSES[44] = RESPONSES[33]

# Trees of fields by kio's names, of which a version shows those it has.


def grouped(results: Any, tp_of: Any, tree: Any, name: str, inner: str, version: int) -> Any:
    groups: dict[str, list[Any]] = {}
    for result in results:
        groups.setdefault(tp_of(result).topic, []).append(tree(result, version))
    return [
        {name: topic, "topic_id": TopicIds().topic_id(topic), inner: trees}
        for topic, trees in groups.items()
    ]


def endpoint_trees(brokers: Any) -> Any:
    return [
        {
            "node_id": b.id,
            "broker_id": b.id,
            "host": b.endpoints[0].host,
            "port": b.endpoints[0].port,
            "rack": b.rack,
        }
        for b in brokers
    ]


def leader_tree(leader: Any) -> Any:
    leader_id, epoch = leader or (-1, -1)
    return {"leader_id": leader_id, "leader_epoch": epoch}


def produce_partition(p: Any, version: int) -> Any:
    error = p.error
    if error == 56 and version <= 3:
        error = 6
    return {
        "index": p.topic_partition.partition,
        "error_code": 47 if error == 90 else error,
        "base_offset": p.base_offset,
        "log_append_time": p.log_append_time_ms,
        "log_start_offset": p.log_start_offset,
        "record_errors": [
            {"batch_index": index, "batch_index_error_message": text}
            for index, text in p.record_errors
        ],
        "error_message": p.error_message,
        "current_leader": leader_tree(p.current_leader),
    }


def produce(r: Any, version: int) -> Any:
    plain = [
        p
        if p.error or p.record_errors or version < 8
        else dataclasses.replace(p, error_message=None, current_leader=None)
        for p in r.partitions
    ]
    return {
        "responses": grouped(
            plain,
            lambda p: p.topic_partition,
            produce_partition,
            "name",
            "partition_responses",
            version,
        ),
        "throttle_time": r.throttle_time_ms,
        "node_endpoints": endpoint_trees(r.node_endpoints),
    }


def fetch_partition(p: Any, version: int) -> Any:
    diverging = p.diverging_epoch or data.EpochEndOffset(-1, -1)
    aborted = p.aborted_transactions
    return {
        "partition_index": p.topic_partition.partition,
        "error_code": 6 if p.error == 56 and version <= 5 else p.error,
        "high_watermark": p.high_watermark,
        "last_stable_offset": p.last_stable_offset,
        "log_start_offset": p.log_start_offset,
        "aborted_transactions": aborted
        if aborted is None
        else [{"producer_id": a.producer_id, "first_offset": a.first_offset} for a in aborted],
        "preferred_read_replica": p.preferred_read_replica,
        "records": b"".join(batch.data for batch in p.records),
        "diverging_epoch": {
            "epoch": diverging.leader_epoch,
            "end_offset": diverging.end_offset,
        },
        "current_leader": leader_tree(p.current_leader),
        "snapshot_id": {"end_offset": -1, "epoch": -1},
    }


def fetch(r: Any, version: int) -> Any:
    return {
        "throttle_time": r.throttle_time_ms,
        "error_code": r.error,
        "session_id": r.session_id,
        "responses": grouped(
            r.partitions,
            lambda p: p.topic_partition,
            fetch_partition,
            "topic",
            "partitions",
            version,
        ),
        "node_endpoints": endpoint_trees(r.node_endpoints),
    }


def list_offsets_partition(p: Any, version: int) -> Any:
    return {
        "partition_index": p.topic_partition.partition,
        "error_code": 5 if p.error == 78 and version < 5 else p.error,
        "timestamp": p.timestamp,
        "offset": p.offset,
        "leader_epoch": p.leader_epoch,
    }


def list_offsets(r: Any, version: int) -> Any:
    trees = grouped(
        r.partitions,
        lambda p: p.topic_partition,
        list_offsets_partition,
        "name",
        "partitions",
        version,
    )
    return {"throttle_time": 0, "topics": trees}


def metadata_partition(p: Any, version: int) -> Any:
    alive = [
        [node for node in nodes if version or node not in p.offline_replicas]
        for nodes in (p.replicas, p.isr)
    ]
    error = p.error
    if version < 6 and error == 72:
        error = 5
    if version == 0 and error == 0 and p.offline_replicas:
        error = 9
    return {
        "error_code": error,
        "partition_index": p.partition,
        "leader_id": p.leader,
        "leader_epoch": p.leader_epoch,
        "replica_nodes": alive[0],
        "isr_nodes": alive[1],
        "offline_replicas": list(p.offline_replicas),
    }


def metadata(r: Any, version: int) -> Any:
    return {
        "throttle_time": 0,
        "brokers": endpoint_trees(r.brokers),
        "cluster_id": r.cluster_id,
        "controller_id": r.controller_id,
        "topics": [
            {
                "error_code": t.error,
                "name": t.name,
                "topic_id": uuid_bytes(t.topic_id),
                "is_internal": t.is_internal,
                "partitions": [metadata_partition(p, version) for p in t.partitions],
                "topic_authorized_operations": NOT_ASKED,
            }
            for t in r.topics
        ],
        "cluster_authorized_operations": NOT_ASKED,
        "error_code": 0,
        "error_message": None,
        "endpoint_type": 1,
    }


def offset_commit(r: Any, version: int) -> Any:
    trees = grouped(
        r.partitions,
        lambda p: p[0],
        lambda p, _: {"partition_index": p[0].partition, "error_code": p[1]},
        "name",
        "partitions",
        version,
    )
    return {"throttle_time": 0, "topics": trees}


def committed(p: Any, version: int) -> Any:
    return {
        "partition_index": p.topic_partition.partition,
        "committed_offset": p.offset,
        "committed_leader_epoch": p.leader_epoch,
        "metadata": p.metadata,
        "error_code": p.error,
    }


def offset_fetch(r: Any, version: int) -> Any:
    def tree(response: Any) -> Any:
        partitions = response.partitions
        return grouped(
            partitions, lambda p: p.topic_partition, committed, "name", "partitions", version
        )

    if isinstance(r, tuple):
        groups = [
            {"group_id": f"group-{n}", "topics": tree(g), "error_code": g.error}
            for n, g in enumerate(r)
        ]
        return {"throttle_time": 0, "groups": groups}
    return {"throttle_time": 0, "topics": tree(r), "error_code": r.error}


def find_coordinator(r: Any, version: int) -> Any:
    trees = [
        {
            "key": c.key,
            "error_code": c.error,
            "error_message": c.error_message,
            "node_id": c.node_id,
            "host": c.host,
            "port": c.port,
        }
        for c in r.coordinators
    ]
    return {"throttle_time": 0, "coordinators": trees, **trees[0]}


def topic_result(t: Any, version: int) -> Any:
    entries = t.config_entries or [admin.ConfigEntry(name, value, 1) for name, value in t.config]
    return {
        "name": t.name,
        "topic_id": uuid_bytes(t.topic_id),
        "error_code": t.error,
        "error_message": t.error_message,
        "num_partitions": t.partitions,
        "replication_factor": t.replication_factor,
        "configs": [
            {
                "name": c.name,
                "value": c.value,
                "read_only": c.read_only,
                "config_source": c.source,
                "is_sensitive": c.is_sensitive,
            }
            for c in entries
        ],
        "topic_config_error_code": 0,
    }


def topic_results_tree(r: Any, version: int) -> Any:
    trees = [topic_result(t, version) for t in r.topics]
    return {"throttle_time": 0, "topics": trees, "results": trees}


def delete_topics(r: Any, version: int) -> Any:
    trees = [topic_result(t, version) for t in r.topics]
    for tree in trees:
        if version < 3 and tree["error_code"] == 73:
            tree["error_code"] = 42
    return {"throttle_time": 0, "responses": trees}


def delete_records(r: Any, version: int) -> Any:
    trees = grouped(
        r.partitions,
        lambda p: p[0],
        lambda p, _: {
            "partition_index": p[0].partition,
            "low_watermark": p[2],
            "error_code": p[1],
        },
        "name",
        "partitions",
        version,
    )
    return {"throttle_time": 0, "topics": trees}


def init_producer_id(r: Any, version: int) -> Any:
    return {
        "throttle_time": 0,
        "error_code": 47 if r.error == 90 and version < 4 else r.error,
        "producer_id": r.producer_id,
        "producer_epoch": r.producer_epoch,
    }


def offset_for_leader_epoch(r: Any, version: int) -> Any:
    trees = grouped(
        r.partitions,
        lambda p: p.topic_partition,
        lambda p, _: {
            "error_code": p.error,
            "partition": p.topic_partition.partition,
            "leader_epoch": p.leader_epoch,
            "end_offset": p.end_offset,
        },
        "topic",
        "partitions",
        version,
    )
    return {"throttle_time": 0, "topics": trees}


def resource_tree(resource: Any, error: Any, message: Any) -> Any:
    return {
        "error_code": error,
        "error_message": message,
        "resource_type": resource.type,
        "resource_name": resource.name,
    }


def describe_configs(r: Any, version: int) -> Any:
    def entry(c: Any) -> Any:
        return {
            "name": c.name,
            "value": None if c.is_sensitive else c.value,
            "read_only": c.read_only,
            "config_source": c.source,
            "is_sensitive": c.is_sensitive,
            "synonyms": [
                {"name": name, "value": None if c.is_sensitive else value, "source": source}
                for name, value, source in c.synonyms
            ],
            "config_type": c.config_type,
            "documentation": c.documentation,
        }

    trees = [
        {
            **resource_tree(result.resource, result.error, result.error_message),
            "configs": [entry(c) for c in result.entries],
        }
        for result in r.results
    ]
    return {"throttle_time": 0, "results": trees}


def alter_configs(r: Any, version: int) -> Any:
    return {"throttle_time": 0, "responses": [resource_tree(*result) for result in r.results]}


def partition_error(p: Any, version: int) -> Any:
    return {
        "partition_id": p[0].partition,
        "partition_index": p[0].partition,
        "error_code": p[1],
        "error_message": p[2],
    }


def elect_leaders(r: Any, version: int) -> Any:
    trees = grouped(
        r.partitions, lambda p: p[0], partition_error, "topic", "partition_result", version
    )
    return {"throttle_time": 0, "error_code": r.error, "replica_election_results": trees}


def alter_reassignments(r: Any, version: int) -> Any:
    trees = grouped(r.partitions, lambda p: p[0], partition_error, "name", "partitions", version)
    return {
        "throttle_time": 0,
        "error_code": r.error,
        "error_message": r.error_message,
        "responses": trees,
    }


def list_reassignments(r: Any, version: int) -> Any:
    trees = grouped(
        r.reassignments,
        lambda o: o.topic_partition,
        lambda o, _: {
            "partition_index": o.topic_partition.partition,
            "replicas": list(o.replicas),
            "adding_replicas": list(o.adding),
            "removing_replicas": list(o.removing),
        },
        "name",
        "partitions",
        version,
    )
    return {
        "throttle_time": 0,
        "error_code": r.error,
        "error_message": r.error_message,
        "topics": trees,
    }


TREES: dict[int, Any] = {
    0: produce,
    1: fetch,
    2: list_offsets,
    3: metadata,
    8: offset_commit,
    9: offset_fetch,
    10: find_coordinator,
    19: topic_results_tree,
    20: delete_topics,
    21: delete_records,
    22: init_producer_id,
    23: offset_for_leader_epoch,
    32: describe_configs,
    33: alter_configs,
    37: topic_results_tree,
    43: elect_leaders,
    44: alter_configs,
    45: alter_reassignments,
    46: list_reassignments,
    60: metadata,
}


class TopicIds:
    """Ids made from names."""

    def topic_id(self, topic: str) -> bytes:
        return topic.encode().ljust(16, b".")[:16]

    def topic_name(self, topic_id: bytes) -> str | None:
        return None


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
    api = APIS[key]
    known = schema_name_map[api_key_map[key]]
    return [v for v in range(api.min_version, api.max_version + 1) if v in known]


KEYS_AND_VERSIONS = [(key, version) for key in RESPONSES for version in versions_of(key)]


def test_every_api_is_compared():
    """A new API without a comparison here fails; ApiVersions has its own tests."""
    assert sorted([*RESPONSES, 18]) == sorted(APIS)
    assert sorted(TREES) == sorted(RESPONSES)


def body_of(codec: Codec, key: int, version: int, response: Any, request: Any = None) -> bytes:
    return b"".join(codec.encode(key, version, response, request))


@pytest.mark.parametrize(("key", "version"), KEYS_AND_VERSIONS)
def test_a_response_is_read_by_kio_and_written_back_to_the_same_bytes(key, version):
    """Every field is where it belongs and the encoding is the canonical one."""
    codec = Codec("3.9", TopicIds())
    schema = load_response_schema(key, version)
    read, write = entity_reader(schema), entity_writer(schema)
    strategy = RESPONSES[key]
    batched = key == 9 and version >= 8
    if batched:
        strategy = some(strategy, 3)

    @settings(max_examples=8, database=None)
    @given(strategy)
    def compare(response: Any) -> None:
        request = None
        if batched:
            asked = [data.OffsetFetchRequest(f"group-{n}", None) for n in range(len(response))]
            request = Batch(tuple(asked))
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


def test_an_unresolved_topic_id_is_answered_with_itself_and_unknown_topic_id():
    """Fetch 13 and later carry ids only (KIP-516); the backend knows the stand-in name not."""
    from fakekafka.wire.topic_names import resolved_name

    topic_id = bytes(range(16))
    stand_in = TopicPartition(resolved_name(TopicIds(), topic_id), 0)
    response = data.FetchResponse(
        ErrorCode.NONE,
        0,
        (data.FetchPartitionResponse(stand_in, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),),
    )
    body = body_of(Codec("3.9", TopicIds()), 1, 13, response)
    entity, _ = entity_reader(load_response_schema(1, 13))(body, 0)
    (topic,) = entity.responses
    assert topic.topic_id.bytes == topic_id
    assert topic.partitions[0].error_code.value == 100


@pytest.mark.parametrize("version", [8, 10, 11])
def test_authorized_operations_are_all_of_them_when_asked_and_nobody_decides(version):
    """DP 15.4: Int.Min when not asked; without an authorizer every operation is allowed."""
    topic = data.MetadataTopic(ErrorCode.NONE, "orders", False, ())
    response = data.MetadataResponse((), "c", -1, (topic,))
    request = data.MetadataRequest(
        (), include_cluster_authorized_operations=True, include_topic_authorized_operations=True
    )
    body = body_of(Codec("3.9"), 3, version, response, request)
    entity, _ = entity_reader(load_response_schema(3, version))(body, 0)
    assert entity.topics[0].topic_authorized_operations == 3576
    if version <= 10:
        assert entity.cluster_authorized_operations == 8096


def test_a_group_error_reaches_clients_of_offset_fetch_1_in_every_partition():
    """Version 1 has no field for the error of the group."""
    asked = (TopicPartition("a", 0), TopicPartition("a", 1))
    response = data.OffsetFetchResponse(ErrorCode.NOT_COORDINATOR, ())
    body = body_of(Codec("3.9"), 9, 1, response, data.OffsetFetchRequest("g", asked))
    entity, _ = entity_reader(load_response_schema(9, 1))(body, 0)
    assert [p.error_code.value for p in entity.topics[0].partitions] == [16, 16]


def test_an_election_error_reaches_clients_of_version_0_in_every_partition():
    """Version 0 of ElectLeaders has no field for the error of all."""
    asked = (TopicPartition("a", 0), TopicPartition("b", 1))
    response = admin.ElectLeadersResponse(ErrorCode.NOT_CONTROLLER)
    body = body_of(Codec("3.9"), 43, 0, response, admin.ElectLeadersRequest(0, asked))
    entity, _ = entity_reader(load_response_schema(43, 0))(body, 0)
    results = entity.replica_election_results
    assert [t.partition_result[0].error_code.value for t in results] == [41, 41]


def test_describe_cluster_of_controllers_is_refused():
    """KIP-919: a broker answers MISMATCHED_ENDPOINT_TYPE to who asks it for controllers."""
    codec = Codec("3.9")
    answer = codec.decode(60, 1, memoryview(b"\0\2\0"))
    assert answer.response == WrongEndpointType(2)
    entity, _ = entity_reader(load_response_schema(60, 1))(
        body_of(codec, 60, 1, answer.response), 0
    )
    assert entity.error_code.value == 114
    assert "CONTROLLER" in entity.error_message


def test_a_partition_with_hundreds_of_replicas_is_written_too():
    """Counts that need two bytes of a varint."""
    many = tuple(range(300))
    partition = data.MetadataPartition(ErrorCode.NONE, 0, 1, 2, many, many[:150], ())
    topic = data.MetadataTopic(ErrorCode.NONE, "wide", False, (partition,))
    body = body_of(Codec("3.9"), 3, 12, data.MetadataResponse((), "c", -1, (topic,)))
    entity, _ = entity_reader(load_response_schema(3, 12))(body, 0)
    (read,) = entity.topics[0].partitions
    assert (read.replica_nodes, len(read.isr_nodes)) == (many, 150)
