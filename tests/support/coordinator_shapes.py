"""Requests to the coordinators of groups and of transactions, as large as wanted.

Who is no member and has no transaction is soon refused. So a member and a transaction may be given:
then requests go on to where arrays are worked on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

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
)


class Sender(NamedTuple):
    """Who sends: a member of a group, which it leads, and a transaction."""

    group_id: str = "g"
    generation: int = 1
    member_id: str = "m"
    transactional_id: str = "t"
    producer_id: int = 5
    producer_epoch: int = 0

    @property
    def producer(self) -> bytes:
        """Id and epoch."""
        return int64(self.producer_id) + int16(self.producer_epoch)


def coordinator_shapes() -> Iterator[Shape]:
    """Everything that may be asked of them."""
    nobody = Sender()
    for kind in PARTITION_KINDS:
        yield from of_transactions(nobody, kind)
        yield offset_delete("g", kind)
        yield _describe_producers(kind)
    for kind, name in NAMES.items():
        yield from _of_groups(kind, name)
        yield from _of_transactional_ids(kind, name)
        yield from of_members(nobody, kind, name)
    yield from _of_one()
    yield from _new_protocol()


def find_coordinator(key_type: int, key: str) -> Shape:
    """Asked by version 1: 0 stands for a group, 1 for a transactional id."""
    return Shape("FindCoordinator", 10, 1, lambda size: string(key) + int8(key_type))


def join_group(group_id: str, timeout_ms: int, protocols: Iterable[bytes]) -> bytes:
    """The body of version 0, of a new member."""
    head = string(group_id) + int32(timeout_ms) + string("") + string("consumer")
    return head + array(protocols)


def init_producer_id(transactional_id: str | None) -> Shape:
    """A producer begins."""
    name = int16(-1) if transactional_id is None else string(transactional_id)
    return Shape("InitProducerId", 22, 0, lambda size: name + int32(60_000))


def of_members(sender: Sender, kind: str, name: Callable[[int], str]) -> Iterator[Shape]:
    """What a member sends that has arrays of members."""
    member = string(sender.group_id) + int32(sender.generation) + string(sender.member_id)
    yield Shape(
        f"SyncGroup: {kind}", 14, 1,
        lambda size: member + array(string(name(i)) + int32(1) + b"x" for i in range(size)),
    )  # fmt: skip
    yield Shape(
        f"LeaveGroup: {kind}", 13, 3,
        lambda size: string(sender.group_id) + array(
            string("" if i % 2 else name(i)) + string(name(i)) for i in range(size)
        ),
    )  # fmt: skip


def of_transactions(sender: Sender, kind: str) -> Iterator[Shape]:
    """What belongs to one transaction."""
    name, group = string(sender.transactional_id), string(sender.group_id)
    yield Shape(
        f"AddPartitionsToTxn: {kind}", 24, 0,
        lambda size: name + sender.producer + partitions(kind, size, int32),
    )  # fmt: skip
    yield Shape(
        f"AddPartitionsToTxn, verified only: {kind}", 24, 4,
        lambda size: compact_array([
            compact(sender.transactional_id) + sender.producer + b"\1"
            + compact_partitions(kind, size, int32) + b"\0"
        ]) + b"\0", True,
    )  # fmt: skip
    yield Shape(
        f"TxnOffsetCommit: {kind}", 28, 0,
        lambda size: name + group + sender.producer
        + partitions(kind, size, lambda n: int32(n) + int64(5) + string("")),
    )  # fmt: skip
    yield Shape(
        f"WriteTxnMarkers: {kind}", 27, 0,
        lambda size: array(
            [sender.producer + int8(1) + partitions(kind, size, int32) + int32(0)]
        ),
    )  # fmt: skip


def offset_delete(group_id: str, kind: str) -> Shape:
    """Offsets of a group, by partition."""
    return Shape(
        f"OffsetDelete: {kind}",
        47,
        0,
        lambda size: string(group_id) + partitions(kind, size, int32),
    )


def _describe_producers(kind: str) -> Shape:
    return Shape(
        f"DescribeProducers: {kind}",
        61,
        0,
        lambda size: compact_partitions(kind, size, int32) + b"\0",
        True,
    )


def _of_groups(kind: str, name: Callable[[int], str]) -> Iterator[Shape]:
    def names(size: int) -> bytes:
        return compact_array(compact(name(i)) for i in range(size))

    yield Shape(
        f"JoinGroup: {kind}", 11, 0,
        # A group of its own: where another member is, it would be waited for.
        lambda size: join_group(
            f"{kind} {size}", 9000, (string(name(i)) + int32(0) for i in range(size))
        ),
    )  # fmt: skip
    yield Shape(f"DescribeGroups: {kind}", 15, 5, lambda size: names(size) + b"\0\0", True)
    yield Shape(f"ListGroups by state: {kind}", 16, 4, lambda size: names(size) + b"\0", True)
    yield Shape(f"ListGroups by type: {kind}", 16, 5, lambda n: b"\1" + names(n) + b"\0", True)
    yield Shape(f"DeleteGroups: {kind}", 42, 2, lambda size: names(size) + b"\0", True)
    yield Shape(f"ConsumerGroupDescribe: {kind}", 69, 0, lambda size: names(size) + b"\0\0", True)


def _of_transactional_ids(kind: str, name: Callable[[int], str]) -> Iterator[Shape]:
    def names(size: int) -> bytes:
        return compact_array(compact(name(i)) for i in range(size))

    yield Shape(f"DescribeTransactions: {kind}", 65, 0, lambda size: names(size) + b"\0", True)
    yield Shape(f"ListTransactions by state: {kind}", 66, 0, lambda n: names(n) + b"\1\0", True)
    yield Shape(
        f"AddPartitionsToTxn of many: {kind}", 24, 4,
        lambda size: compact_array(
            compact(name(i)) + int64(5) + int16(0) + int8(i % 2)
            + compact_partitions("topics", 1, int32) + b"\0"
            for i in range(size)
        ) + b"\0", True,
    )  # fmt: skip


def _of_one() -> Iterator[Shape]:
    """Without an array, or with one of numbers."""
    sender = Sender()
    member = string(sender.group_id) + int32(sender.generation)
    yield init_producer_id(None)
    yield Shape("Heartbeat", 12, 1, lambda size: member + string("m" * min(size, 30_000)))
    yield Shape(
        "AddOffsetsToTxn", 25, 0,
        lambda size: string("t") + sender.producer + string("g" * min(size, 30_000)),
    )  # fmt: skip
    yield Shape(
        "EndTxn", 26, 0, lambda size: string("t" * min(size, 30_000)) + sender.producer + b"\1"
    )
    yield Shape(
        "ListTransactions by producer", 66, 1,
        lambda size: b"\1" + compact_array(int64(i) for i in range(size)) + int64(-1) + b"\0", True,
    )  # fmt: skip
    yield Shape(
        "WriteTxnMarkers of many producers", 27, 0,
        lambda size: array(
            int64(i) + int16(0) + int8(1) + partitions("partitions", 1, int32) + int32(0)
            for i in range(size)
        ),
    )  # fmt: skip
    yield Shape(
        "WriteTxnMarkers of one producer", 27, 0,
        lambda size: array(
            sender.producer + int8(1) + partitions("partitions", 1, int32) + int32(0)
            for _ in range(size)
        ),
    )  # fmt: skip


def _new_protocol() -> Iterator[Shape]:
    head = compact("g") + compact("m") + int32(0) + b"\0\0" + int32(9000)
    yield Shape(
        "ConsumerGroupHeartbeat by topic", 68, 0,
        lambda size: head + compact_array(compact(f"t{i}") for i in range(size)) + b"\0\0\0", True,
    )  # fmt: skip
    yield Shape(
        "ConsumerGroupHeartbeat by partition", 68, 0,
        lambda size: head + b"\0\0"
        + compact_array(bytes(16) + compact_array([int32(0)]) + b"\0" for _ in range(size))
        + b"\0", True,
    )  # fmt: skip
