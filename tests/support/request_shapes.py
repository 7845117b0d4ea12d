"""Requests of every API we serve, as large as wanted, written by hand.

Arrays of every kind: many topics, many partitions of one, one partition or topic again and again,
names that collide, configurations, lists within lists. Those of groups and transactions are in
``coordinator_shapes``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from fakekafka.tests.support.coordinator_shapes import coordinator_shapes
from fakekafka.tests.support.request_fields import (
    NAMES,
    PARTITION_KINDS,
    Shape,
    array,
    compact,
    compact_array,
    compact_partitions,
    int8,
    int16,
    int32,
    int64,
    partitions,
    string,
    varint,
)


def shapes() -> Iterator[Shape]:
    """All of them."""
    for kind in PARTITION_KINDS:
        yield from _of_partitions(kind)
    for kind, name in NAMES.items():
        yield from _of_names(kind, name)
        yield _update_features(kind, name)
        yield _find_coordinator(kind, name)
    yield from _others()
    yield from _between_brokers()
    yield from _security()
    yield from coordinator_shapes()


def _of_partitions(kind: str) -> Iterator[Shape]:
    def shape(
        name: str,
        key: int,
        version: int,
        before: bytes,
        entry: Callable[[int], bytes],
        after: bytes = b"",
    ) -> Shape:
        return Shape(
            f"{name}: {kind}",
            key,
            version,
            lambda size: before + partitions(kind, size, entry) + after,
        )

    fetch = int32(-1) + int32(0) + int32(1) + int32(1000) + int8(0)
    yield shape("Produce", 0, 3, int16(-1) + int16(1) + int32(1000), lambda n: int32(n) + int32(0))
    yield shape("Fetch", 1, 4, fetch, lambda n: int32(n) + int64(0) + int32(100))
    yield shape(
        "Fetch in a session",
        1,
        7,
        fetch + int32(0) + int32(0),
        lambda n: int32(n) + int64(0) + int64(0) + int32(100),
        array([]),
    )
    yield shape("ListOffsets", 2, 1, int32(-1), lambda n: int32(n) + int64(-1))
    yield shape("ListOffsets v0", 2, 0, int32(-1), lambda n: int32(n) + int64(-1) + int32(5))
    yield shape(
        "OffsetCommit",
        8,
        2,
        string("g") + int32(-1) + string("") + int64(-1),
        lambda n: int32(n) + int64(5) + string(""),
    )
    yield shape("OffsetFetch", 9, 1, string("g"), int32)
    yield shape("DeleteRecords", 21, 0, b"", lambda n: int32(n) + int64(0), int32(100))
    yield shape("OffsetForLeaderEpoch", 23, 2, b"", lambda n: int32(n) + int32(0) + int32(0))
    yield shape("ElectLeaders", 43, 0, b"", int32, int32(200))
    yield shape("DescribeLogDirs", 35, 1, b"", int32)
    moved = int32(1) + string("/elsewhere")
    yield shape("AlterReplicaLogDirs", 34, 1, moved, int32)


def _between_brokers() -> Iterator[Shape]:
    """From a broker that is not there."""
    broker = int32(9) + int64(5)

    def partition(number: int, isr: Iterable[int]) -> bytes:
        members = compact_array(int32(member) for member in isr)
        return int32(number) + int32(0) + members + b"\0" + int32(0) + b"\0"

    def alter(kind: str) -> Shape:
        return Shape(
            f"AlterPartition: {kind}", 56, 1,
            lambda size: broker
            + compact_partitions(kind, size, lambda number: partition(number, [1])) + b"\0",
            True,
        )  # fmt: skip

    yield from map(alter, PARTITION_KINDS)
    yield Shape(
        "AlterPartition with a long ISR", 56, 1,
        lambda size: broker
        + compact_partitions("topics", 1, lambda number: partition(number, range(size))) + b"\0",
        True,
    )  # fmt: skip
    yield Shape("AllocateProducerIds", 67, 0, lambda size: broker + b"\0", True)


def _of_names(kind: str, name: Callable[[int], str]) -> Iterator[Shape]:
    def shape(
        title: str,
        key: int,
        version: int,
        entry: Callable[[int], bytes],
        after: bytes = b"",
        before: bytes = b"",
    ) -> Shape:
        return Shape(
            f"{title}: {kind}",
            key,
            version,
            lambda size: before + array(entry(index) for index in range(size)) + after,
        )

    one_config = array([string("retention.ms") + string("1")])
    one_change = array([string("retention.ms") + int8(0) + string("1")])
    yield shape("Metadata", 3, 4, lambda i: string(name(i)), b"\0")
    yield shape("Metadata of bad names", 3, 4, lambda i: string("bad!" + name(i)), b"\1")
    yield shape(
        "CreateTopics",
        19,
        1,
        lambda i: string(name(i)) + int32(1) + int16(1) + array([]) + array([]),
        int32(0) + b"\1",
    )
    yield shape(
        "CreateTopics with configs",
        19,
        1,
        lambda i: string(name(i)) + string("1"),
        int32(0) + b"\1",
        int32(1) + string("new") + int32(1) + int16(1) + array([]),
    )
    yield shape("DeleteTopics", 20, 1, lambda i: string(name(i)), int32(0))
    yield shape("DescribeConfigs", 32, 0, lambda i: int8(2) + string(name(i)) + int32(-1))
    yield shape(
        "DescribeConfigs by name",
        32,
        0,
        lambda i: string(name(i)),
        before=int32(1) + int8(2) + string("x"),
    )
    yield shape("AlterConfigs", 33, 0, lambda i: int8(2) + string(name(i)) + one_config, b"\1")
    yield shape(
        "AlterConfigs of one",
        33,
        0,
        lambda i: string(name(i)) + string("1"),
        b"\1",
        int32(1) + int8(2) + string("x"),
    )
    yield shape("CreatePartitions", 37, 0, lambda i: string(name(i)) + int32(2) + int32(-1),
                int32(0) + b"\1")  # fmt: skip
    yield shape(
        "IncrementalAlterConfigs", 44, 0, lambda i: int8(2) + string(name(i)) + one_change, b"\1"
    )
    yield shape(
        "IncrementalAlterConfigs of one",
        44,
        0,
        lambda i: string(name(i)) + int8(0) + string("1"),
        b"\1",
        int32(1) + int8(2) + string("x"),
    )


def _update_features(kind: str, name: Callable[[int], str]) -> Shape:
    return Shape(
        f"UpdateFeatures: {kind}",
        57,
        1,
        lambda size: (
            int32(200)
            + compact_array(compact(name(i)) + int16(1) + int8(1) + b"\0" for i in range(size))
            + b"\1\0"
        ),
        True,
    )


def _find_coordinator(kind: str, name: Callable[[int], str]) -> Shape:
    return Shape(
        f"FindCoordinator: {kind}",
        10,
        4,
        lambda size: int8(0) + compact_array(compact(name(i)) for i in range(size)) + b"\0",
        True,
    )


def _others() -> Iterator[Shape]:
    def new_topic(lists: Iterable[bytes]) -> bytes:
        topic = string("new") + int32(-1) + int16(-1) + array(lists) + array([])
        return array([topic]) + int32(0) + b"\1"

    def reassigned(replicas: Iterable[bytes]) -> bytes:
        partition = int32(0) + compact_array(replicas) + b"\0"
        topic = compact("x") + compact_array([partition]) + b"\0"
        return int32(200) + compact_array([topic]) + b"\0"

    yield Shape(
        "ApiVersions",
        18,
        3,
        lambda size: compact("x" * min(size, 30_000)) + compact("1") + b"\0",
        True,
    )
    yield Shape("DescribeCluster", 60, 0, lambda size: b"\0\0", True)
    yield Shape(
        "AlterReplicaLogDirs to many directories", 34, 1,
        lambda size: array(
            string(f"/d{i}") + array([string("x") + array([int32(0)])]) for i in range(size)
        ),
    )  # fmt: skip
    yield Shape(
        "CreateTopics with lists", 19, 1,
        lambda size: new_topic(int32(i) + array([int32(1)]) for i in range(size)),
    )  # fmt: skip
    yield Shape(
        "CreateTopics with replicas", 19, 1,
        lambda size: new_topic([int32(0) + array(int32(i) for i in range(size))]),
    )  # fmt: skip
    yield Shape(
        "CreatePartitions with lists", 37, 0,
        lambda size: array(
            [string("x") + int32(size + 4) + array(array([int32(1)]) for _ in range(size))]
        ) + int32(0) + b"\1",
    )  # fmt: skip
    yield Shape(
        "AlterPartitionReassignments", 45, 0,
        lambda size: reassigned(int32(i) for i in range(size)), True,
    )  # fmt: skip
    yield Shape(
        "ListPartitionReassignments", 46, 0,
        lambda size: int32(200) + compact_array(
            [compact("x") + compact_array(int32(i) for i in range(size)) + b"\0"]
        ) + b"\0", True,
    )  # fmt: skip
    yield Shape(
        "OffsetFetch of many groups", 9, 8,
        lambda size: compact_array(compact(f"g{i}") + b"\0\0" for i in range(size)) + b"\0\0", True,
    )  # fmt: skip
    yield Shape(
        "Produce with tagged fields", 0, 9,
        lambda size: b"\0" + int16(1) + int32(100) + compact_array([]) + varint(size)
        + b"".join(varint(i) + b"\0" for i in range(size)), True,
    )  # fmt: skip
    yield Shape(
        "IncrementalAlterConfigs of a list", 44, 0,
        lambda size: array(
            [int8(2) + string("x") + array([
                string("leader.replication.throttled.replicas") + int8(2)
                + string(",".join(map(str, range(min(size, 6000)))))
            ])]
        ) + b"\1",
    )  # fmt: skip


def _security() -> Iterator[Shape]:
    """Without SASL a listener answers that this is not the time."""
    yield Shape("SaslHandshake", 17, 1, lambda size: string("x" * min(size, 30_000)))
    yield Shape("SaslAuthenticate", 36, 0, lambda size: int32(size) + bytes(size))
    yield Shape(
        "DescribeUserScramCredentials", 50, 0,
        lambda size: compact_array(compact(f"u{i}") + b"\0" for i in range(size)) + b"\0", True,
    )  # fmt: skip
    yield Shape(
        "AlterUserScramCredentials of nobody's", 51, 0,
        lambda size: compact_array(compact(f"u{i}") + b"\3\0" for i in range(size)) + b"\1\0",
        True,
    )  # fmt: skip
    everything = int8(1) + b"\0" + int8(1) + b"\0\0" + int8(1) + int8(1) + b"\0"
    yield Shape("DescribeAcls", 29, 2, lambda size: everything, True)
    yield Shape(
        "CreateAcls", 30, 2,
        lambda size: compact_array(
            int8(2) + compact(f"t{i}") + int8(3) + compact("User:a") + compact("*") + int8(3)
            + int8(3) + b"\0" for i in range(size)
        ) + b"\0", True,
    )  # fmt: skip
    yield Shape(
        "DeleteAcls", 31, 2,
        lambda size: compact_array(everything for _ in range(size)) + b"\0", True,
    )  # fmt: skip
    yield Shape(
        "DescribeClientQuotas of nothing known", 48, 1,
        lambda size: compact_array(
            compact(f"k{i}") + int8(2) + b"\0\0" for i in range(size)
        ) + b"\0\0", True,
    )  # fmt: skip
    yield Shape(
        "AlterClientQuotas, validated only", 49, 1,
        lambda size: compact_array(
            b"\2" + compact("user") + compact("u") + b"\0\1\0" for _ in range(min(size, 500))
        ) + b"\1\0", True,
    )  # fmt: skip
    yield Shape(
        "CreateDelegationToken", 38, 2,
        lambda size: compact_array(
            compact("User") + compact(f"u{i}") + b"\0" for i in range(size)
        ) + int64(-1) + b"\0", True,
    )  # fmt: skip
    yield Shape("RenewDelegationToken", 39, 0, lambda size: int32(size) + bytes(size) + int64(1))
    yield Shape("ExpireDelegationToken", 40, 0, lambda size: int32(size) + bytes(size) + int64(1))
    yield Shape(
        "DescribeDelegationToken", 41, 2,
        lambda size: compact_array(
            compact("User") + compact(f"u{i}") + b"\0" for i in range(size)
        ) + b"\0", True,
    )  # fmt: skip
