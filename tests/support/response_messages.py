"""Random responses for every API: strategies for the messages that a backend answers with."""

from __future__ import annotations

from typing import Any

from fakekafka.protocol import admin, data, groups
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.records.batch import RecordBatch
from fakekafka.protocol.values import BrokerInfo, EndPoint, TopicPartition, uuid_text
from fakekafka.tests.support import broker_parity, security_parity, transaction_messages
from hypothesis import strategies as st

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
    groups.OffsetFetchResponse,
    errors,
    some(st.builds(groups.CommittedOffset, topic_partitions, errors, int64s, int32s, texts)),
)
blobs = st.binary(max_size=150)
described_groups = st.builds(
    groups.DescribedGroup,
    errors,
    texts,
    texts,
    texts,
    texts,
    some(st.builds(groups.DescribedMember, texts, nullable_texts, texts, texts, blobs, blobs), 3),
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
    8: st.builds(groups.OffsetCommitResponse, some(st.tuples(topic_partitions, errors))),
    9: offset_fetches,
    10: st.builds(
        data.FindCoordinatorResponse,
        st.lists(
            st.builds(data.Coordinator, texts, errors, int32s, texts, int32s, nullable_texts),
            min_size=1,
            max_size=3,
        ).map(tuple),
    ),
    11: st.builds(
        groups.JoinGroupResponse,
        errors,
        texts,
        int32s,
        nullable_texts,
        nullable_texts,
        texts,
        some(st.builds(groups.JoinGroupMember, texts, nullable_texts, blobs)),
        st.booleans(),
    ),
    12: st.builds(groups.HeartbeatResponse, errors),
    13: st.builds(
        groups.LeaveGroupResponse,
        errors | st.just(ErrorCode.NONE),
        some(st.builds(groups.LeftMember, texts, nullable_texts, errors)),
    ),
    14: st.builds(groups.SyncGroupResponse, errors, nullable_texts, nullable_texts, blobs),
    15: st.builds(groups.DescribeGroupsResponse, some(described_groups)),
    16: st.builds(
        groups.ListGroupsResponse,
        errors,
        some(st.builds(groups.ListedGroup, texts, texts, texts, texts)),
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
    42: st.builds(groups.DeleteGroupsResponse, some(st.tuples(texts, errors))),
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
    47: st.builds(groups.OffsetDeleteResponse, errors, some(st.tuples(topic_partitions, errors))),
    60: metadata_responses,
    **security_parity.RESPONSES,
}
RESPONSES[44] = RESPONSES[33]
RESPONSES.update(broker_parity.RESPONSES)
RESPONSES.update(transaction_messages.RESPONSES)
