"""Versions that kio has dropped (KIP-896) are compared with kafka-python's classes."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.protocol import admin, data, groups
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.records.legacy import OldMessages, build_message
from fakekafka.protocol.values import TopicPartition
from fakekafka.wire.kafka.codec import Codec

ORDERS_3 = TopicPartition("orders", 3)
TOPIC = {"name": "orders", "num_partitions": 4, "replication_factor": 2}
MESSAGES = build_message(0, 1, b"k", b"v", 8)
COMMIT = {
    "partition_index": 3,
    "committed_offset": 9,
    "commit_timestamp": 5,
    "committed_metadata": "x",
}
DISK_FAILED = ErrorCode.KAFKA_STORAGE_ERROR
PARTITION = {"partition_index": 3, "timestamp": -1, "max_num_offsets": 7}

REQUESTS: list[tuple[int, int, str, dict[str, Any], Any]] = [
    (
        2,
        0,
        "consumer.ListOffsetsRequest",
        {"replica_id": -1, "topics": [{"name": "orders", "partitions": [PARTITION]}]},
        data.ListOffsetsRequest(-1, (data.ListOffsetsPartition(ORDERS_3, -1, -1, 7),)),
    ),
    (
        8,
        1,
        "consumer.OffsetCommitRequest",
        {
            "group_id": "g",
            "generation_id_or_member_epoch": 4,
            "member_id": "m",
            "topics": [{"name": "orders", "partitions": [COMMIT]}],
        },
        groups.OffsetCommitRequest(
            "g", 4, "m", None, (groups.OffsetCommitPartition(ORDERS_3, 9, -1, "x", 5),)
        ),
    ),
    (
        19,
        0,
        "admin.CreateTopicsRequest",
        {"topics": [{**TOPIC, "assignments": [], "configs": []}], "timeout_ms": 5},
        admin.CreateTopicsRequest((admin.NewTopic("orders", 4, 2),), 5),
    ),
    (
        19,
        1,
        "admin.CreateTopicsRequest",
        {
            "topics": [
                {
                    "name": "orders",
                    "num_partitions": -1,
                    "replication_factor": -1,
                    "assignments": [{"partition_index": 0, "broker_ids": [2, 1]}],
                    "configs": [{"name": "retention.ms", "value": "1"}],
                }
            ],
            "timeout_ms": 5,
            "validate_only": True,
        },
        admin.CreateTopicsRequest(
            (admin.NewTopic("orders", -1, -1, ((0, (2, 1)),), (("retention.ms", "1"),)),),
            5,
            True,
        ),
    ),
    (
        20,
        0,
        "admin.DeleteTopicsRequest",
        {"topic_names": ["a", "b"], "timeout_ms": 5},
        admin.DeleteTopicsRequest(("a", "b"), 5),
    ),
    (
        23,
        1,
        "consumer.OffsetForLeaderEpochRequest",
        {"topics": [{"topic": "orders", "partitions": [{"partition": 3, "leader_epoch": 6}]}]},
        data.OffsetForLeaderEpochRequest(-1, (data.OffsetForLeaderEpochPartition(ORDERS_3, 6),)),
    ),
    (
        32,
        0,
        "admin.DescribeConfigsRequest",
        {
            "resources": [
                {"resource_type": 2, "resource_name": "orders", "configuration_keys": None}
            ]
        },
        admin.DescribeConfigsRequest(((admin.ConfigResource(2, "orders"), None),)),
    ),
]

REQUESTS += [
    (
        0,
        version,
        "producer.ProduceRequest",
        {
            "acks": -1,
            "timeout_ms": 9,
            "topic_data": [
                {"name": "orders", "partition_data": [{"index": 3, "records": MESSAGES}]}
            ],
        },
        data.ProduceRequest(-1, 9, (data.ProducePartition(ORDERS_3, MESSAGES),)),
    )
    for version in (0, 1, 2)
] + [
    (
        1,
        version,
        "consumer.FetchRequest",
        {
            "replica_id": -1,
            "max_wait_ms": 5,
            "min_bytes": 6,
            **({"max_bytes": 7} if version == 3 else {}),
            "topics": [
                {
                    "topic": "orders",
                    "partitions": [{"partition": 3, "fetch_offset": 40, "partition_max_bytes": 50}],
                }
            ],
        },
        data.FetchRequest(
            -1,
            5,
            6,
            7 if version == 3 else 2**31 - 1,
            (data.FetchPartition(ORDERS_3, 40, max_bytes=50),),
        ),
    )
    for version in (0, 1, 2, 3)
]

RESPONSES: list[tuple[int, int, str, Any, dict[str, Any]]] = [
    (
        2,
        0,
        "consumer.ListOffsetsResponse",
        data.ListOffsetsResponse(
            (data.ListOffsetsPartitionResponse(ORDERS_3, ErrorCode.NONE, -1, 12, 4, (12, 3)),)
        ),
        {
            "topics": [
                {
                    "name": "orders",
                    "partitions": [
                        {"partition_index": 3, "error_code": 0, "old_style_offsets": [12, 3]}
                    ],
                }
            ]
        },
    ),
    (
        19,
        0,
        "admin.CreateTopicsResponse",
        admin.CreateTopicsResponse(
            (admin.TopicResult("orders", ErrorCode.TOPIC_ALREADY_EXISTS, "it exists"),)
        ),
        {"topics": [{"name": "orders", "error_code": 36}]},
    ),
    (
        19,
        1,
        "admin.CreateTopicsResponse",
        admin.CreateTopicsResponse(
            (admin.TopicResult("orders", ErrorCode.TOPIC_ALREADY_EXISTS, "it exists"),)
        ),
        {"topics": [{"name": "orders", "error_code": 36, "error_message": "it exists"}]},
    ),
    (
        20,
        0,
        "admin.DeleteTopicsResponse",
        admin.DeleteTopicsResponse(
            (admin.TopicResult("orders", ErrorCode.TOPIC_DELETION_DISABLED),)
        ),
        {"responses": [{"name": "orders", "error_code": 42}]},
    ),
    (
        23,
        0,
        "consumer.OffsetForLeaderEpochResponse",
        data.OffsetForLeaderEpochResponse(
            (data.OffsetForLeaderEpochPartitionResponse(ORDERS_3, ErrorCode.NONE, 6, 99),)
        ),
        {
            "topics": [
                {
                    "topic": "orders",
                    "partitions": [{"error_code": 0, "partition": 3, "end_offset": 99}],
                }
            ]
        },
    ),
    (
        32,
        0,
        "admin.DescribeConfigsResponse",
        admin.DescribeConfigsResponse(
            (
                admin.DescribeConfigsResult(
                    admin.ConfigResource(2, "orders"),
                    ErrorCode.NONE,
                    None,
                    (admin.ConfigEntry("retention.ms", "1", 1, is_default=False),),
                ),
            )
        ),
        {
            "throttle_time_ms": 0,
            "results": [
                {
                    "error_code": 0,
                    "error_message": None,
                    "resource_type": 2,
                    "resource_name": "orders",
                    "configs": [
                        {
                            "name": "retention.ms",
                            "value": "1",
                            "read_only": False,
                            "is_default": False,
                            "is_sensitive": False,
                        }
                    ],
                }
            ],
        },
    ),
]

RESPONSES += [
    (
        0,
        version,
        "producer.ProduceResponse",
        data.ProduceResponse(
            (
                data.ProducePartitionResponse(ORDERS_3, ErrorCode.NONE, 12, 90, 4),
                data.ProducePartitionResponse(TopicPartition("orders", 4), DISK_FAILED),
            ),
            31,
        ),
        {
            **({"throttle_time_ms": 31} if version >= 1 else {}),
            "responses": [
                {
                    "name": "orders",
                    "partition_responses": [
                        {
                            "index": 3,
                            "error_code": 0,
                            "base_offset": 12,
                            **({"log_append_time_ms": 90} if version >= 2 else {}),
                        },
                        {"index": 4, "error_code": 6, "base_offset": -1},
                    ],
                }
            ],
        },
    )
    for version in (0, 1, 2)
] + [
    (
        1,
        version,
        "consumer.FetchResponse",
        data.FetchResponse(
            ErrorCode.NONE,
            0,
            (
                data.FetchPartitionResponse(
                    ORDERS_3, ErrorCode.NONE, 7, 6, 5, (OldMessages(MESSAGES, 0, 0),)
                ),
                data.FetchPartitionResponse(TopicPartition("orders", 4), DISK_FAILED),
            ),
            31,
        ),
        {
            **({"throttle_time_ms": 31} if version >= 1 else {}),
            "responses": [
                {
                    "topic": "orders",
                    "partitions": [
                        {
                            "partition_index": 3,
                            "error_code": 0,
                            "high_watermark": 7,
                            "records": MESSAGES,
                        },
                        {
                            "partition_index": 4,
                            "error_code": 6,
                            "high_watermark": -1,
                            "records": b"",
                        },
                    ],
                }
            ],
        },
    )
    for version in (0, 1, 2, 3)
]


def class_of(kafka_python: Any, path: str) -> Any:
    found = kafka_python.protocol
    for name in path.split("."):
        found = getattr(found, name)
    return found


def build(cls: Any, version: int, fields: dict[str, Any]) -> Any:
    """An object of kafka-python's with its nested structures."""
    values = {}
    for name, value in fields.items():
        nested = isinstance(value, list) and value and isinstance(value[0], dict)
        if nested:
            field = cls.fields[name]
            values[name] = [build(field.data_class, version, item) for item in value]
        else:
            values[name] = value
    return cls(version=version, **values)


@pytest.mark.parametrize(
    ("key", "version", "path", "fields", "expected"),
    REQUESTS,
    ids=[f"{path.split('.')[1]}-{version}" for _, version, path, _, _ in REQUESTS],
)
def test_an_old_request_is_decoded(
    kafka_python: Any, key: int, version: int, path: Any, fields: Any, expected: Any
) -> None:
    """Versions below those of KIP-896 where their content can be served."""
    body = bytes(build(class_of(kafka_python, path), version, fields).encode())
    assert Codec("3.9").decode(key, version, memoryview(body)) == expected


@pytest.mark.parametrize(
    ("key", "version", "path", "response", "expected"),
    RESPONSES,
    ids=[f"{path.split('.')[1]}-{version}" for _, version, path, _, _ in RESPONSES],
)
def test_an_old_response_is_read(
    kafka_python: Any, key: int, version: int, path: Any, response: Any, expected: Any
) -> None:
    """The old layouts, without the fields that came later."""
    body = b"".join(Codec("3.9").encode(key, version, response))
    read = class_of(kafka_python, path).decode(body, version=version)
    assert shown(read.to_dict(), expected) == expected


def shown(read: Any, expected: Any) -> Any:
    """What was read, cut to the fields expected."""
    if isinstance(expected, dict):
        return {name: shown(read[name], value) for name, value in expected.items()}
    if isinstance(expected, list):
        assert len(read) == len(expected)
        return [shown(item, value) for item, value in zip(read, expected, strict=True)]
    if isinstance(expected, bytes) and read == expected.decode(errors="backslashreplace"):
        return expected  # kafka-python shows bytes as text
    return read
