"""Version 0 of OffsetCommit and OffsetFetch: offsets of old consumers, stored in ZooKeeper."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from fakekafka import Cluster
from fakekafka.tests.support.wire_trees import frame, read
from fakekafka.wire.kafka.messages.table import message

UNKNOWN_TOPIC_OR_PARTITION = 3
OFFSET_METADATA_TOO_LARGE = 12


@pytest.fixture(scope="module")
def connection() -> Iterator[socket.socket]:
    with Cluster(1, topics={"t": 2}, config={"offset.metadata.max.bytes": "5"}) as cluster:
        host, port = cluster.bootstrap_servers.split(":")
        with socket.create_connection((host, int(port)), 20) as connection:
            yield connection
        assert cluster.failures == []


def ask(connection: socket.socket, key: int, version: int, **fields: Any) -> Any:
    """Send a request about topic t and return the topic's part of the answer, or None."""
    connection.sendall(frame(key, version, {"groupId": "g", **fields}, "old"))
    (size,) = struct.unpack(">i", received(connection, 4))
    data = received(connection, size)[4:]
    tree, length = read(message(key, "response"), version, data)
    assert length == len(data)
    if not tree["topics"]:
        return None
    ((found,),) = [topic["partitions"] for topic in tree["topics"]]
    return found


def received(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        data += connection.recv(size - len(data))
    return data


def commit(connection: socket.socket, partition: int, offset: int, metadata: str = "") -> int:
    entry = {"partitionIndex": partition, "committedOffset": offset, "committedMetadata": metadata}
    told = ask(connection, 8, 0, topics=[{"name": "t", "partitions": [entry]}])
    return int(told["errorCode"])


def ask_offset(connection: socket.socket, partition: int, version: int) -> Any:
    """Return the partition's answer to an OffsetFetch."""
    topics = [{"name": "t", "partitionIndexes": [partition]}]
    return ask(connection, 9, version, topics=topics)


def fetch(connection: socket.socket, partition: int) -> tuple[int, int]:
    """Return (offset, error) of a partition from ZooKeeper."""
    told = ask_offset(connection, partition, version=0)
    assert (told["partitionIndex"], told["metadata"]) == (partition, "")
    return told["committedOffset"], told["errorCode"]


def test_an_offset_committed_to_zookeeper_is_fetched_from_there(connection: socket.socket) -> None:
    """No coordinator is involved, and later versions do not see the offset."""
    assert fetch(connection, 0) == (-1, UNKNOWN_TOPIC_OR_PARTITION)
    assert commit(connection, 0, 41) == 0
    assert commit(connection, 0, 42) == 0
    assert fetch(connection, 0) == (42, 0)
    # Version 1 asks the coordinator, and no broker coordinates the group yet.
    assert ask_offset(connection, 0, version=1) is None


def test_commits_to_unknown_partitions_or_with_long_metadata_are_refused(
    connection: socket.socket,
) -> None:
    assert commit(connection, 9, 1) == UNKNOWN_TOPIC_OR_PARTITION
    assert commit(connection, 1, 1, "too long") == OFFSET_METADATA_TOO_LARGE
    assert fetch(connection, 9) == (-1, UNKNOWN_TOPIC_OR_PARTITION)
