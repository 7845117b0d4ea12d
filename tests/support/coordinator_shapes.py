"""Requests of any size to the coordinators of groups and transactions.

A sender that is no member or has no transaction is refused early. With a real member and
transaction the requests reach the code that processes their arrays.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from fakekafka.tests.support.growing_requests import (
    INDEX,
    NAMES,
    PARTITION_KINDS,
    Many,
    Shape,
    partitions,
    text,
)

# fmt: off


class Sender(NamedTuple):
    """A sender of requests: a group's leader and a transaction."""

    group_id: str = "g"
    generation: int = 1
    member_id: str = "m"
    transactional_id: str = "t"
    producer_id: int = 5
    producer_epoch: int = 0

    @property
    def member(self) -> dict[str, Any]:
        return {
            "groupId": self.group_id, "generationId": self.generation, "memberId": self.member_id,
        }

    @property
    def producer(self) -> dict[str, Any]:
        return {"producerId": self.producer_id, "producerEpoch": self.producer_epoch}

    @property
    def transaction(self) -> dict[str, Any]:
        return {"transactionalId": self.transactional_id, **self.producer}


_NOBODY = Sender()
_MARKER = {
    **_NOBODY.producer, "transactionResult": True,
    "topics": [{"name": "x", "partitionIndexes": [0]}],
}
_ADDED = {
    **_NOBODY.producer, "transactionalId": "{name}",
    "topics": [{"name": "t_0", "partitions": [0]}],
}
_NEW_MEMBER = {"groupId": "g", "memberId": "m", "rebalanceTimeoutMs": 9000}


def coordinator_shapes() -> Iterator[Shape]:
    """Yield all requests to coordinators."""
    for kind in PARTITION_KINDS:
        yield from transaction_shapes(_NOBODY, kind)
        deleted = partitions(kind, {"partitionIndex": INDEX})
        yield Shape("OffsetDelete", 47, 0, {"groupId": "g", "topics": deleted}, kind)
        described = partitions(kind, array="partitionIndexes")
        yield Shape("DescribeProducers", 61, 0, {"topics": described}, kind)
    for kind in NAMES:
        yield from member_shapes(_NOBODY, kind)
        for title, key, version, tree in _OF_NAMES:
            yield Shape(title, key, version, tree, kind)
        # In a group of its own, as a join would wait for another member.
        joined = join_group(f"{kind} {{size}}", 9000, Many({"name": "{name}"}))
        yield Shape("JoinGroup", 11, 0, joined, kind)
    yield init_producer_id(None)
    for title, key, version, tree in _OTHERS:
        yield Shape(title, key, version, tree)


def find_coordinator(key_type: int, key: str) -> Shape:
    """Return FindCoordinator in version 1; key type 0 is a group, 1 a transactional id."""
    return Shape("FindCoordinator", 10, 1, {"key": key, "keyType": key_type})


def join_group(group_id: str, timeout_ms: int, protocols: Any) -> dict[str, Any]:
    """Return the fields of a new member's JoinGroup request."""
    return {
        "groupId": group_id, "sessionTimeoutMs": timeout_ms, "protocolType": "consumer",
        "protocols": protocols,
    }


def init_producer_id(transactional_id: str | None) -> Shape:
    """Return the InitProducerId request of a new producer."""
    tree = {"transactionalId": transactional_id, "transactionTimeoutMs": 60_000}
    return Shape("InitProducerId", 22, 0, tree)


def member_shapes(sender: Sender, kind: str) -> Iterator[Shape]:
    """Yield a member's requests that have arrays of members."""
    assigned = Many({"memberId": "{name}", "assignment": b"x"})
    yield Shape("SyncGroup", 14, 1, {**sender.member, "assignments": assigned}, kind)
    member = {"memberId": "{name}", "groupInstanceId": "{name}"}
    left = {"groupId": sender.group_id, "members": Many(member, odd={**member, "memberId": ""})}
    yield Shape("LeaveGroup", 13, 3, left, kind)


def transaction_shapes(sender: Sender, kind: str) -> Iterator[Shape]:
    """Yield the requests of one transaction."""
    topics = partitions(kind)
    yield Shape("AddPartitionsToTxn", 24, 0, {
        "v3AndBelowTransactionalId": sender.transactional_id,
        "v3AndBelowProducerId": sender.producer_id,
        "v3AndBelowProducerEpoch": sender.producer_epoch,
        "v3AndBelowTopics": topics,
    }, kind)
    yield Shape("AddPartitionsToTxn, verified only", 24, 4, {
        "transactions": [{**sender.transaction, "verifyOnly": True, "topics": topics}],
    }, kind)
    yield Shape("TxnOffsetCommit", 28, 0, {
        **sender.transaction, "groupId": sender.group_id,
        "topics": partitions(kind, {"partitionIndex": INDEX, "committedOffset": 5}),
    }, kind)
    marked = partitions(kind, array="partitionIndexes")
    marker = {**sender.producer, "transactionResult": True, "topics": marked}
    yield Shape("WriteTxnMarkers", 27, 0, {"markers": [marker]}, kind)


_OF_NAMES: tuple[tuple[str, int, int, Any], ...] = (
    ("DescribeGroups", 15, 5, {"groups": Many("{name}")}),
    ("ListGroups by state", 16, 4, {"statesFilter": Many("{name}")}),
    ("ListGroups by type", 16, 5, {"typesFilter": Many("{name}")}),
    ("DeleteGroups", 42, 2, {"groupsNames": Many("{name}")}),
    ("ConsumerGroupDescribe", 69, 0, {"groupIds": Many("{name}")}),
    ("DescribeTransactions", 65, 0, {"transactionalIds": Many("{name}")}),
    ("ListTransactions by state", 66, 0, {"stateFilters": Many("{name}")}),
    ("AddPartitionsToTxn of many", 24, 4, {
        "transactions": Many(_ADDED, odd={**_ADDED, "verifyOnly": True}),
    }),
)
_OTHERS: tuple[tuple[str, int, int, Any], ...] = (
    ("Heartbeat", 12, 1, {**_NOBODY.member, "memberId": text("m")}),
    ("AddOffsetsToTxn", 25, 0, {**_NOBODY.transaction, "groupId": text("g")}),
    ("EndTxn", 26, 0, {**_NOBODY.producer, "transactionalId": text("t"), "committed": True}),
    ("ListTransactions by producer", 66, 1, {"producerIdFilters": Many(INDEX)}),
    ("WriteTxnMarkers of many producers", 27, 0, {
        "markers": Many({**_MARKER, "producerId": INDEX}),
    }),
    ("WriteTxnMarkers of one producer", 27, 0, {"markers": Many(_MARKER)}),
    ("ConsumerGroupHeartbeat by topic", 68, 0, {
        **_NEW_MEMBER, "subscribedTopicNames": Many("t{i}"),
    }),
    ("ConsumerGroupHeartbeat by partition", 68, 0, {
        **_NEW_MEMBER, "topicPartitions": Many({"partitions": [0]}),
    }),
)
